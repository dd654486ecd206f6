"""Datasets: readers, preparation, word vectors, own data and manipulations."""
