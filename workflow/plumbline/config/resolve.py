"""From a config to a resolved study: every error is one sentence, raised before any job runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from plumbline.config.degraded import expand_degraded, inherit_declarations
from plumbline.config.derived import derive
from plumbline.config.entries import ManipulationEntry
from plumbline.config.external import check_epochs, check_external
from plumbline.config.manipulations import applicable_datasets, check_variants, expand
from plumbline.config.masking import check_roar
from plumbline.config.messages import validation_message
from plumbline.config.names import check_name
from plumbline.config.own_data import refine_own
from plumbline.config.prompts import check_prompt
from plumbline.config.recipes import OBJECTIVE_TRAINING, PAIRED_TRAINING, Training
from plumbline.config.resolved import Derived, Resolved, check_options, merge_recipe
from plumbline.config.schema import Study
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PAIRED, holds


def resolve(config: dict[str, Any], external: bool = True) -> Resolved:
    """Check the whole config before any job runs; the first error is raised as one sentence.

    Without `external`, checkpoints and files of importances are not checked: a finished study can do without them.
    """
    try:
        study = Study(**config)
    except ValidationError as error:
        raise PlumblineError(validation_message(error, "", Study)) from None
    study = expand_degraded(study)
    resolved = Resolved(study)
    inherit_declarations(resolved)
    refine_own(resolved)
    for name in study.compute.jobs:
        if name not in study.datasets:
            raise PlumblineError(
                f"`compute.jobs` names '{name}', which is not a dataset of the study; {nearest(name, study.datasets)}"
            )
    for name, entry in study.manipulations.items():
        _add_manipulation(resolved, name, entry)
    check_variants(study)
    for dataset in study.datasets:
        for model in study.models:
            _set_training(resolved, dataset, model)
    if external:
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
    """Add the variants of a manipulation, with typed options."""
    where = f"manipulations.{name}"
    check_name(name, where)
    declaration = resolved.declared("manipulation", name, entry, where)
    resolved.declarations["manipulation", name] = declaration
    for variant in expand(name, entry, declaration, applicable_datasets(resolved, name, entry, declaration)):
        if variant.variant in (PLAIN, *resolved.manipulated):
            raise PlumblineError(f"`{where}`: there are two variants named '{variant.variant}'; rename one.")
        typed = check_options(declaration, variant.options, where, type(entry).model_fields)
        resolved.manipulated[variant.variant] = replace(variant, options=typed)


def _add_adversary(resolved: Resolved, derived: Derived) -> None:
    """Add an adversary: the object, options and training of its base model, with the training of its objective."""
    if derived.name in resolved.study.models or derived.name in resolved.derived:
        raise PlumblineError(f"`adversaries.{derived.adversary}`: two models are named '{derived.name}'; rename one.")
    resolved.declarations["model", derived.name] = resolved.declarations["model", derived.base]
    resolved.options["model", derived.name] = resolved.options["model", derived.base]
    overrides = resolved.study.adversaries[derived.adversary].training
    where = f"adversaries.{derived.adversary}.training"
    for dataset in resolved.study.datasets:
        base = resolved.trainings[dataset, derived.base].model_dump()
        layers = [base, OBJECTIVE_TRAINING[derived.objective], overrides]
        training = resolved.trainings[dataset, derived.name] = merge_recipe(Training, layers, where)
        if training.select_by != "loss":
            raise PlumblineError(
                f"`{where}.select_by` is '{training.select_by}'; adversaries select by loss, so omit it."
            )
        if training.masking != "none":
            raise PlumblineError(
                f"`{where}.masking` is '{training.masking}'; adversaries imitate outputs of unmasked texts, so omit it."
            )
        check_epochs(f"adversaries.{derived.adversary}", training.epochs, {})
        resolved.model_options[dataset, derived.name] = resolved.model_options[dataset, derived.base]


def _set_training(resolved: Resolved, dataset: str, model: str) -> None:
    """Set the training and options of a model on a dataset: what the two declare, then what the config sets."""
    declared_data, declared_model = resolved.declarations["dataset", dataset], resolved.declarations["model", model]
    data_entry, model_entry = resolved.study.datasets[dataset], resolved.study.models[model]
    defaults: dict[str, Any] = dict(PAIRED_TRAINING) if declared_data.task in PAIRED else {}
    data_training = declared_data.training
    if declared_model.reads == "subwords":
        # Fine-tuning has a recipe of its own; the task only decides by which metric the epoch is selected.
        defaults = {key: value for key, value in defaults.items() if key == "select_by"}
        data_training = declared_data.subword_training
    layers = [defaults, declared_model.training, data_training, model_entry.training]
    resolved.trainings[dataset, model] = merge_recipe(Training, layers, f"models.{model}.training")
    if data_entry.training:
        layers.append(data_entry.training)
        resolved.trainings[dataset, model] = merge_recipe(Training, layers, f"datasets.{dataset}.training")
    masking = resolved.trainings[dataset, model].masking
    if masking != "none" and declared_model.reads == "pixels" and declared_data.task in declared_model.tasks:
        raise PlumblineError(
            f"`training.masking` is '{masking}', but model '{model}' reads images, which have no mask token; remove it."
        )
    options = dict(resolved.options["model", model])
    for key, value in declared_data.model_options.items():
        name = key.rpartition(":")[2]
        if name in options and name not in model_entry.options and holds(key, options):
            options[name] = value
    resolved.model_options[dataset, model] = options
    check_epochs(f"models.{model}", resolved.trainings[dataset, model].epochs, options)
    if "prompt" in options and dataset in (model_entry.datasets or [dataset]):
        check_prompt(f"models.{model}", options["prompt"], dataset, declared_data.task in PAIRED)


def read_config(path: Path) -> dict[str, Any]:
    """The content of a config file."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PlumblineError(f"There is no config file '{path}'; check the path.") from error
    except IsADirectoryError as error:
        raise PlumblineError(f"'{path}' is a folder; give a config file.") from error
    except OSError as error:
        raise PlumblineError(f"The config file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PlumblineError(f"'{path}' is not a config file: it is not UTF-8 text.") from error
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PlumblineError(f"'{path}'{where} is not valid YAML: {error.problem}.") from error
    # Characters that YAML forbids, and values such as a date that does not exist.
    except (yaml.YAMLError, ValueError) as error:
        raise PlumblineError(f"'{path}' is not valid YAML: {str(error).splitlines()[0]}.") from error
    if not isinstance(config, dict):
        raise PlumblineError(f"'{path}' must contain keys and values, like config.yaml.")
    return config
