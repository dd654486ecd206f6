"""The kinds of registered objects and the facts that a declaration states about each kind."""

from typing import Any, Literal, get_args

Kind = Literal[
    "dataset", "manipulation", "model", "measure", "protocol", "metric", "table", "figure", "page", "criterion"
]
# The parts of a report. A config never names them: they follow from the study.
PARTS: tuple[Kind, ...] = ("table", "figure", "page", "criterion")
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind not in PARTS)

# What describes a measure or a protocol to its readers; no result depends on it. `cost` is the number of passes through
# the model, `misleads` when a value should not be believed, `citation` one reference or a list of them.
DESCRIPTION: dict[str, Any] = {"equation": "", "cost": "", "misleads": "", "citation": []}
# Objects of one function or class may each have a summary of their own, in place of its docstring's first paragraph.
SUMMARY: dict[str, Any] = {"summary": ""}
# The facts of each kind with their defaults. Any other keyword of the decorator presets an option. `limits` maps
# options to their least and greatest value, where None is no bound. `required` lists options that a config must set.
FACTS: dict[str, dict[str, Any]] = {
    "dataset": {
        **SUMMARY,
        "files": {},
        "source": "",
        "licence": "",
        "task": "classification",
        "counts": {},
        "preparation": {},
        "training": {},
        "subword_training": {},
        "model_options": {},
        "limits": {},
        "required": [],
        # What its `evidence` is: "rule" where it determines the label by construction, "human" where people marked it.
        "evidence": "",
    },
    "manipulation": {
        **SUMMARY,
        "reads": "words",
        "groups": [],
        "words": [],
        "visibility": "",
        "equation": "",
        "citation": [],
        "limits": {},
        # Whether importance must fall on all words of the truth, or on any of them.
        "suffices": "all",
        # Whether a text also holds the token of a random class, so that a part of the truth predicts the label.
        "decoys": False,
    },
    "model": {
        **SUMMARY,
        "citation": [],
        "provides": [],
        "tasks": ["classification"],
        "training": {},
        "reads": "words",
        "limits": {},
        "required": [],
    },
    "measure": {
        **SUMMARY,
        **DESCRIPTION,
        "needs": [],
        "splits": [],
        "covers": [],
        "pixels": False,
        "cheap": False,
        # Whether its scores depend on which other instances are explained, so that one job must explain all of them.
        "whole": False,
        # Whether its scores depend on random draws, by `instances.generator(i, evaluator.seed)`.
        "stochastic": False,
        "limits": {},
        "required": [],
        "direction": "higher",
        "range": None,
    },
    "protocol": {
        **DESCRIPTION,
        # The registered metrics that its table has.
        "metrics": [],
        "needs": [],
        "variants": "plain",
        "pixels": True,
        "least_measures": 1,
        "least_seeds": 1,
        "gpu": False,
        # Whether it computes measures itself, such as those of a changed model or text.
        "recomputes": False,
        # Whether it scores only datasets with `evidence`.
        "evidence": False,
        "limits": {},
        # The function that prints its table in LaTeX, as `module:function`, if the common layout is not enough.
        "latex": "",
    },
    "metric": {"direction": "", "range": None, "unit": "", "equation": ""},
    # `reads` names the input files of a table or figure (plumbline/dag/sources.py lists them), followed by `?` if a
    # study may lack them; `params` names the facts of the study that it needs; `of` is what a study must have. A table
    # that describes itself is the result of an experiment with a key of its own in a config, such as `roar`.
    "table": {**DESCRIPTION, "metrics": [], "reads": [], "params": [], "of": ""},
    # `per` lists the axes of `cells` with one figure for each value; `only` restricts these values.
    "figure": {
        "reads": [],
        "params": [],
        "of": "",
        "cells": "",
        "per": [],
        "only": [],
        "page": "",
        "experiment": "",
        "order": 50,
    },
    # A study has a page if it has one of its `tables`.
    "page": {"title": "", "group": "Protocols", "tables": [], "needs": [], "order": 50},
    # A column of the scorecard. `measure` is the kind of measure that it judges, if it judges only one. The
    # meta-evaluation compares criteria of `faithfulness` only. `least_measures` does not count the random measure.
    "criterion": {
        "table": "",
        "direction": "",
        "range": None,
        "variants": "plain",
        "measure": "",
        "least_measures": 1,
        "faithfulness": True,
        "order": 50,
    },
}
# How messages describe the type of a fact.
FACT_TYPES = {bool: "True or False", int: "a whole number", str: "text", list: "a list", dict: "keys and values"}

# Tasks with two texts per instance.
PAIRED = ("question answering", "inference", "paraphrase")
# The task whose instances are images, with one token per pixel.
IMAGES = "image classification"
