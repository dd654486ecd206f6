"""Conformance checks of registered objects, plug-ins included; each check returns sentences about what is wrong.

The command `plumbline check` runs them on the user's files.
"""

from plumbline.conformance.checkpoints import DIMENSIONS, WORDS
from plumbline.conformance.examples import (
    ANSWERS,
    CLASSES,
    SIDE,
    example_explained,
    example_images,
    example_instances,
    example_model,
    reads_one_text,
    whole_batch,
)
from plumbline.conformance.run import check

__all__ = [
    "ANSWERS",
    "CLASSES",
    "DIMENSIONS",
    "SIDE",
    "WORDS",
    "check",
    "example_explained",
    "example_images",
    "example_instances",
    "example_model",
    "reads_one_text",
    "whole_batch",
]
