"""Side-by-side timings against the libraries one would use instead: ``python -m benchmarks``."""
