"""Training: pretraining, fine-tuning and their schedules."""
