"""What a study will cost before it runs: its jobs from Snakemake, their seconds from measured ones, and its hours on a
machine from a simulation."""
