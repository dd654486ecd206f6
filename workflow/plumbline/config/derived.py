"""Models whose training also reads another model: adversaries, and models that are given another's attention."""

from collections.abc import Iterator

from plumbline.config.recipes import OBJECTIVE_TRAINING
from plumbline.config.resolved import Derived, Resolved
from plumbline.config.schema import STRENGTHS, AdversaryEntry
from plumbline.config.seeds import parse_seeds
from plumbline.errors import PlumblineError, nearest


def derive(resolved: Resolved) -> Iterator[Derived]:
    """All derived models of a study, adversaries first; their names are `MODEL.ADVERSARY` and, where the objective has
    one, a strength."""
    found: dict[str, Derived] = {}
    for name, entry in resolved.study.adversaries.items():
        for derived in _adversaries(resolved, name, entry):
            found[derived.name] = derived
            yield derived
    for name, model in resolved.study.models.items():
        if model.attention_of:
            where = f"models.{name}.attention_of"
            yield _guided(resolved, name, model.attention_of, found, where)


def _adversaries(resolved: Resolved, name: str, entry: AdversaryEntry) -> Iterator[Derived]:
    study, where = resolved.study, f"adversaries.{name}"
    objective = entry.objective or name
    if objective not in OBJECTIVE_TRAINING:
        hint = nearest(objective, list(OBJECTIVE_TRAINING))
        if entry.objective:
            raise PlumblineError(f"`{where}.objective` is '{objective}'; {hint}")
        raise PlumblineError(f"`{where}`: there is no objective '{objective}', so set `objective`; {hint}")
    if objective == "attefa" and entry.strength is not None:
        raise PlumblineError(f"`{where}.strength`: the objective 'attefa' has none; leave it out.")
    for key, known in (("of", study.models), ("datasets", study.datasets)):
        for word in getattr(entry, key) or []:
            if word not in known:
                raise PlumblineError(f"`{where}.{key}` names '{word}'; {nearest(word, known)}")
    strengths = [None] if objective == "attefa" else (STRENGTHS if entry.strength is None else entry.strength)
    for model in entry.of or study.models:
        lacks = _lacks(resolved, model)
        if lacks and entry.of:
            raise PlumblineError(f"`{where}.of`: {lacks}; take it off the list.")
        base_seed, block = _seed(study.blocks(model), entry.base_seed, f"{where}.base_seed")
        for strength in [] if lacks else strengths:
            named = f"{model}.{name}" if strength is None else f"{model}.{name}.{strength:g}"
            own = _datasets(resolved, model)
            datasets = [dataset for dataset in own if dataset in (entry.datasets or own)]
            seeds = entry.seeds or study.blocks(model)
            yield Derived(named, model, base_seed, block, objective, strength, name, seeds, datasets)


def _lacks(resolved: Resolved, model: str) -> str:
    """Why a model can have no adversary, if so."""
    if resolved.study.models[model].attention_of:
        return f"the attention of model '{model}' is another's"
    if resolved.options["model", model].get("attention") == "uniform":
        return f"the attention of model '{model}' is uniform and cannot move"
    provides = resolved.declarations["model", model].provides
    return "" if {"attention", "heads"} & set(provides) else f"model '{model}' provides no attention"


def _guided(resolved: Resolved, name: str, base: str, adversaries: dict[str, Derived], where: str) -> Derived:
    study = resolved.study
    if name in (base, base in adversaries and adversaries[base].base):
        raise PlumblineError(f"`{where}` names '{base}'; a model cannot be given its own attention.")
    known = [*(model for model in study.models if model != name), *adversaries]
    if base not in known:
        raise PlumblineError(f"`{where}` names '{base}'; {nearest(base, known)}")
    source = adversaries[base].base if base in adversaries else base
    if study.models[source].attention_of:
        raise PlumblineError(f"`{where}`: the attention of model '{source}' is itself another's; name that one.")
    for model in (name, source):
        if "attention" not in resolved.declarations["model", model].provides:
            raise PlumblineError(f"`{where}`: model '{model}' does not provide attention of one head.")
    blocks = adversaries[base].seeds if base in adversaries else study.blocks(source)
    seed, block = _seed(blocks, None, where)
    both = [adversaries[base].datasets] if base in adversaries else []
    both += [_datasets(resolved, model) for model in (name, source)]
    datasets = [dataset for dataset in study.datasets if all(dataset in some for some in both)]
    return Derived(name, base, seed, block, "guided", None, "", study.blocks(name), datasets)


def _datasets(resolved: Resolved, model: str) -> list[str]:
    """The datasets that train a model: those that it names, or all, as far as it can read them."""
    named, tasks = resolved.study.models[model].datasets, resolved.declarations["model", model].tasks
    return [
        dataset
        for dataset in (resolved.study.datasets if named is None else named)
        if resolved.declarations["dataset", dataset].task in tasks
    ]


def _seed(blocks: list[str], wanted: int | None, where: str) -> tuple[int, str]:
    """The seed of the base model, by default the first, and the block that holds it."""
    for block in blocks:
        seeds = parse_seeds(block)
        if wanted is None or wanted in seeds:
            return (seeds[0] if wanted is None else wanted), block
    raise PlumblineError(f"`{where}` is {wanted}, which is none of the study's seeds ({', '.join(blocks)}).")
