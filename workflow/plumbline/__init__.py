"""plumbline measures how faithful explanations of neural models are."""

__version__ = "0.1.0"
