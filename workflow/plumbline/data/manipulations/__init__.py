"""Manipulations: changes of texts and images that follow the label, so that the ground truth is known."""
