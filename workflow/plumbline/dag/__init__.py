"""What the rules ask of a study: paths, params and targets. It imports neither torch nor pandas nor Snakemake."""
