"""Which model is meant when none is named; readable without torch."""

DEFAULT_MODEL = "bertology-mini-uncased"
#: environment variable that names another default model
MODEL_VARIABLE = "BERTOLOGY_MODEL"
