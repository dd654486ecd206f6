"""The trainer of a block of seeds, its optimisers, metrics and selection of an epoch."""
