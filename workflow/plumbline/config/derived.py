"""Models whose training reads another model: adversaries, and models with another model's attention."""

from collections.abc import Iterator

from plumbline.config.entries import STRENGTHS, AdversaryEntry
from plumbline.config.recipes import OBJECTIVE_TRAINING
from plumbline.config.resolved import Derived, Resolved, check_listed
from plumbline.config.seeds import parse_seeds
from plumbline.errors import PlumblineError, nearest


def derive(resolved: Resolved) -> Iterator[Derived]:
    """All derived models of a study: adversaries, named `MODEL.ADVERSARY` or `MODEL.ADVERSARY.STRENGTH`, first."""
    adversaries: dict[str, Derived] = {}
    for name, entry in resolved.study.adversaries.items():
        for derived in _adversaries(resolved, name, entry):
            adversaries[derived.name] = derived
            yield derived
    for name, model in resolved.study.models.items():
        if model.attention_of:
            yield _guided(resolved, name, model.attention_of, adversaries, f"models.{name}.attention_of")


def _adversaries(resolved: Resolved, name: str, entry: AdversaryEntry) -> Iterator[Derived]:
    study, where = resolved.study, f"adversaries.{name}"
    objective = entry.objective or name
    if objective not in OBJECTIVE_TRAINING:
        hint = nearest(objective, list(OBJECTIVE_TRAINING))
        if entry.objective:
            raise PlumblineError(f"`{where}.objective` is '{objective}', which does not exist; {hint}")
        raise PlumblineError(
            f"`{where}` has no `objective`, and its name '{objective}' is not one either; set `objective`: {hint}"
        )
    if objective == "attefa" and entry.strength is not None:
        raise PlumblineError(f"`{where}.strength`: the objective 'attefa' has no strength; remove it.")
    check_listed(entry, where, of=study.models, datasets=study.datasets)
    strengths = [None] if objective == "attefa" else (STRENGTHS if entry.strength is None else entry.strength)
    for model in entry.of or study.models:
        reason = _no_adversary(resolved, model)
        if reason and entry.of:
            raise PlumblineError(f"`{where}.of`: {reason}; remove it from the list.")
        base_seed, block = _find_seed(study.blocks(model), entry.base_seed, f"{where}.base_seed")
        for strength in [] if reason else strengths:
            full_name = f"{model}.{name}" if strength is None else f"{model}.{name}.{strength:g}"
            datasets = [
                dataset for dataset in _datasets(resolved, model) if not entry.datasets or dataset in entry.datasets
            ]
            seeds = entry.seeds or study.blocks(model)
            yield Derived(full_name, model, base_seed, block, objective, strength, name, seeds, datasets)


def _no_adversary(resolved: Resolved, model: str) -> str:
    """Why a model cannot have an adversary, or an empty string."""
    if resolved.study.models[model].attention_of:
        return f"model '{model}' takes its attention from another model"
    if resolved.options["model", model].get("attention") == "uniform":
        return f"the attention of model '{model}' is uniform and not trained"
    provides = resolved.declarations["model", model].provides
    return "" if {"attention", "heads"} & set(provides) else f"model '{model}' provides no attention"


def _guided(resolved: Resolved, name: str, base: str, adversaries: dict[str, Derived], where: str) -> Derived:
    study = resolved.study
    if name in (base, base in adversaries and adversaries[base].base):
        raise PlumblineError(f"`{where}` names '{base}'; a model cannot take its attention from itself.")
    known = [*(model for model in study.models if model != name), *adversaries]
    if base not in known:
        raise PlumblineError(f"`{where}` names '{base}', which is not a model of the study; {nearest(base, known)}")
    source = adversaries[base].base if base in adversaries else base
    if study.models[source].attention_of:
        raise PlumblineError(
            f"`{where}`: model '{source}' takes its attention from another model; name that other model instead."
        )
    for model in (name, source):
        if "attention" not in resolved.declarations["model", model].provides:
            raise PlumblineError(
                f"`{where}`: model '{model}' does not provide single-head attention; choose another model."
            )
    blocks = adversaries[base].seeds if base in adversaries else study.blocks(source)
    seed, block = _find_seed(blocks, None, where)
    readable = {*_datasets(resolved, name)} & {*_datasets(resolved, source)}
    if base in adversaries:
        readable &= {*adversaries[base].datasets}
    datasets = [dataset for dataset in study.datasets if dataset in readable]
    return Derived(name, base, seed, block, "guided", None, "", study.blocks(name), datasets)


def _datasets(resolved: Resolved, model: str) -> list[str]:
    """The datasets that a model is trained on: those listed in its entry, by default all, if it can read them."""
    listed, tasks = resolved.study.models[model].datasets, resolved.declarations["model", model].tasks
    return [
        dataset
        for dataset in (resolved.study.datasets if listed is None else listed)
        if resolved.declarations["dataset", dataset].task in tasks
    ]


def _find_seed(blocks: list[str], seed: int | None, where: str) -> tuple[int, str]:
    """The seed of the base model, by default the first, and its block."""
    for block in blocks:
        seeds = parse_seeds(block)
        if seed is None or seed in seeds:
            return (seeds[0] if seed is None else seed), block
    raise PlumblineError(f"`{where}` is {seed}; choose one of the base model's seeds ({', '.join(blocks)}).")
