"""Services around a job: events, progress, GPUs, damaged files, orphans and provenance."""
