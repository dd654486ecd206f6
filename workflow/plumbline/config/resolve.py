"""From a config to a resolved study: every fault is one sentence, before any work."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from plumbline.config.derived import derive
from plumbline.config.external import check_epochs, check_external
from plumbline.config.manipulations import check_variants, expand, fitting
from plumbline.config.masking import check_roar
from plumbline.config.messages import validation_message
from plumbline.config.names import check_name
from plumbline.config.recipes import OBJECTIVE_TRAINING, PAIRED_TRAINING, Training
from plumbline.config.resolved import Derived, Resolved, checked_options, merged
from plumbline.config.schema import ManipulationEntry, Study
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.registry import PAIRED, Kind, holds


def resolve(config: dict[str, Any]) -> Resolved:
    """Check a config whole, before any work; the first fault is raised as one sentence."""
    try:
        study = Study(**config)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, "", Study)) from None
    resolved = Resolved(study)
    for name, entry in study.manipulations.items():
        _add_manipulation(resolved, name, entry)
    check_variants(study)
    for dataset in study.datasets:
        for model in study.models:
            _fit(resolved, dataset, model)
    check_external(resolved)
    for name in study.adversaries:
        check_name(name, f"adversaries.{name}")
    for derived in derive(resolved):
        if derived.adversary:
            _add_adversary(resolved, derived)
        resolved.derived[derived.name] = derived
    check_roar(resolved)
    return resolved


def _add_manipulation(resolved: Resolved, name: str, entry: ManipulationEntry) -> None:
    """The variants of a manipulation, each with its options typed."""
    where = f"manipulations.{name}"
    check_name(name, where)
    declaration = resolved.declared("manipulation", name, entry, where)
    resolved.declarations["manipulation", name] = declaration
    for variant in expand(name, entry, declaration, fitting(resolved, name, entry, declaration)):
        if variant.variant in (PLAIN, *resolved.manipulated):
            raise PlumblineError(f"`{where}`: a variant '{variant.variant}' is there twice; rename one.")
        typed = checked_options(declaration, variant.options, where, list(type(entry).model_fields))
        resolved.manipulated[variant.variant] = replace(variant, options=typed)


def _add_adversary(resolved: Resolved, derived: Derived) -> None:
    """An adversary's object and options are its base model's; its training is, but for what its objective asks."""
    if derived.name in resolved.study.models or derived.name in resolved.derived:
        raise PlumblineError(f"`adversaries.{derived.adversary}`: '{derived.name}' is there twice; rename one.")
    kind: Kind = "model"
    resolved.declarations[kind, derived.name] = resolved.declarations[kind, derived.base]
    resolved.options[kind, derived.name] = resolved.options[kind, derived.base]
    own = resolved.study.adversaries[derived.adversary].training
    for dataset in resolved.study.datasets:
        usual = resolved.trainings[dataset, derived.base].model_dump()
        layers = [usual, OBJECTIVE_TRAINING[derived.objective], own]
        where = f"adversaries.{derived.adversary}.training"
        training = resolved.trainings[dataset, derived.name] = merged(Training, layers, where)
        if training.select_by != "loss":
            raise PlumblineError(f"`{where}.select_by` is '{training.select_by}'; an adversary chooses by its loss.")
        check_epochs(f"adversaries.{derived.adversary}", training.epochs, {})
        resolved.model_options[dataset, derived.name] = resolved.model_options[dataset, derived.base]


def _fit(resolved: Resolved, dataset: str, model: str) -> None:
    """The training and the options of a model on a dataset: what the two declare, then what the config sets."""
    data, of_data = resolved.declarations["dataset", dataset], resolved.study.datasets[dataset]
    net, of_net = resolved.declarations["model", model], resolved.study.models[model]
    usual: dict[str, Any] = dict(PAIRED_TRAINING) if data.task in PAIRED else {}
    of_task = data.training
    if net.reads == "subwords":
        # Fine-tuning has a recipe of its own, of which the task decides only how the epoch is chosen.
        usual = {key: value for key, value in usual.items() if key == "select_by"}
        of_task = data.subword_training
    recipes = [usual, net.training, of_task, of_net.training]
    resolved.trainings[dataset, model] = merged(Training, recipes, f"models.{model}.training")
    if of_data.training:
        recipes.append(of_data.training)
        resolved.trainings[dataset, model] = merged(Training, recipes, f"datasets.{dataset}.training")
    options = dict(resolved.options["model", model])
    for key, value in data.model_options.items():
        name = key.rpartition(":")[2]
        if name in options and name not in of_net.options and holds(key, options):
            options[name] = value
    resolved.model_options[dataset, model] = options
    check_epochs(f"models.{model}", resolved.trainings[dataset, model].epochs, options)


def read_config(path: Path) -> dict[str, Any]:
    """A config file as plain values."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"There is no config file '{path}'.") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"'{path}' is a folder; name a config file.") from error
    except OSError as error:
        raise PlumblineError(f"The config file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"'{path}' is no config file: it is not UTF-8 text.") from error
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PlumblineError(f"'{path}'{where} is not valid YAML: {error.problem}.") from error
    # Signs that YAML forbids, and values such as a date that there is not.
    except (yaml.YAMLError, ValueError) as error:
        raise PlumblineError(f"'{path}' is not valid YAML: {str(error).splitlines()[0]}.") from error
    if not isinstance(config, dict):
        raise PlumblineError(f"'{path}' must hold keys and values, as config.yaml does.")
    return config
