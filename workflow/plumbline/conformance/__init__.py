"""What every registered object must do, the user's too. Each check returns sentences about what is wrong; none is good.

A new measure that passes gives one finite number per word, the same whatever the batch, the padding and the order.
The command `plumbline check` runs this for the user's files.
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
from plumbline.conformance.notes import Note, Tried, Untried, failure
from plumbline.conformance.run import check, examine

__all__ = [
    "ANSWERS",
    "CLASSES",
    "DIMENSIONS",
    "FEW_STEPS",
    "SIDE",
    "WORDS",
    "Note",
    "Tried",
    "Untried",
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
