"""Conformance checks of registered objects, plug-ins included; each check returns sentences about what is wrong.

The command `plumbline check` runs them on the user's files.
"""

from plumbline.conformance.declarations import FEW_STEPS
from plumbline.conformance.examples import (
    ANSWERS,
    CLASSES,
    DIMENSIONS,
    SIDE,
    WORDS,
    example_explained,
    example_images,
    example_instances,
    example_model,
    examples_for,
    needs_pairs,
    reads_one_text,
    whole_batch,
)
from plumbline.conformance.measures import check_measure
from plumbline.conformance.notes import Checked, Note, Unchecked, failure
from plumbline.conformance.run import check, examine

__all__ = [
    "ANSWERS",
    "CLASSES",
    "DIMENSIONS",
    "FEW_STEPS",
    "SIDE",
    "WORDS",
    "Checked",
    "Note",
    "Unchecked",
    "check",
    "check_measure",
    "examine",
    "example_explained",
    "example_images",
    "example_instances",
    "example_model",
    "examples_for",
    "failure",
    "needs_pairs",
    "reads_one_text",
    "whole_batch",
]
