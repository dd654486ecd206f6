"""Architectures, padded batches, training objectives and the evaluator that queries trained models."""
