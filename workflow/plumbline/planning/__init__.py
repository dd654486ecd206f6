"""Estimates of what a study will cost before it runs.

Its jobs come from a Snakemake dry run, their seconds from earlier measurements, and the wall-clock time from a
simulated schedule.
"""
