"""Paths, params and targets of a study for the rules; imports neither torch nor pandas nor Snakemake."""
