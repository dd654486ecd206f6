"""All valid runs of a study, and why the other pairs are not among them."""

from dataclasses import dataclass, replace

from plumbline.config.masking import Masked, Point, baseline, masked_variants, points
from plumbline.config.resolved import Resolved
from plumbline.config.seeds import parse_seeds
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.registry import PAIRED, Declaration, Kind, covered, needed


@dataclass(frozen=True, order=True)
class Cell:
    """A block of models: one dataset, variant, model and block of seeds."""

    dataset: str
    variant: str
    model: str
    seeds: str


@dataclass(frozen=True)
class Excluded:
    """A pair that cannot run. `dataset` or `measure` is empty when it does not matter."""

    dataset: str
    model: str
    measure: str
    reason: str


# What measures and protocols do with texts.
DOES = {"measure": "explains", "protocol": "scores"}


@dataclass(frozen=True)
class Runs:
    """What a study runs: its cells, of plain and manipulated datasets, those of adversaries, those of texts with words
    masked and the points of the curves that these make, the measures that explain each model, the cells that each
    protocol scores, what was left out."""

    cells: list[Cell]
    adversaries: list[Cell]
    masked: dict[Cell, Masked]
    curves: dict[Cell, list[Point]]
    measures: dict[str, list[str]]
    scored: dict[str, list[Cell]]
    excluded: list[Excluded]


def _missing(resolved: Resolved, kind: Kind, name: str, model: str) -> str:
    """Why a measure or protocol cannot have a model, if so."""
    declaration, of_model = resolved.declarations[kind, name], resolved.declarations["model", model]
    if of_model.reads == "pixels" and not declaration.pixels:
        return f"{kind} '{name}' {DOES[kind]} texts, and model '{model}' reads pictures"
    needs = needed(declaration, resolved.options[kind, name])
    lacking = sorted(needs - set(resolved.declarations["model", model].provides))
    return f"{kind} '{name}' needs {' and '.join(lacking)}, which model '{model}' does not provide" if lacking else ""


# So many others are named where a measure cannot be had.
MOST_NAMED = 6


def _instead(resolved: Resolved, measure: str, models: list[str]) -> str:
    """The measures that would explain the models, those first that need the same of them."""
    needs = set(needed(resolved.declarations["measure", measure], resolved.options["measure", measure]))

    def fits(declaration: Declaration, model: str) -> bool:
        of_model = resolved.declarations["model", model]
        usual = {name: option.default for name, option in declaration.options.items()}
        reads = declaration.pixels or of_model.reads != "pixels"
        return reads and not declaration.required and needed(declaration, usual) <= set(of_model.provides)

    able = [one for one in resolved.registry.all("measure") if all(fits(one, model) for model in models)]
    able = [one for one in able if one.name not in resolved.study.measures and not one.name.endswith("-published")]
    close = sorted(able, key=lambda one: -len(needs & set(one.needs)))[:MOST_NAMED]
    return f" (measures that would do: {', '.join(sorted(one.name for one in close))})" if close else ""


def _unreadable(resolved: Resolved, dataset: str, model: str) -> str:
    task, tasks = resolved.declarations["dataset", dataset].task, resolved.declarations["model", model].tasks
    derived = resolved.derived.get(model)
    if task in tasks and derived and dataset not in derived.datasets:
        return f"model '{model}' has the attention of '{derived.base}', which is not trained on dataset '{dataset}'"
    return "" if task in tasks else f"model '{model}' does {' and '.join(tasks)}, dataset '{dataset}' is {task}"


def list_runs(resolved: Resolved) -> Runs:
    """Every valid run. A pair that the config names outright and that cannot be is refused."""
    study = resolved.study
    excluded: list[Excluded] = []
    cells: list[Cell] = []
    able: dict[str, list[str]] = {}
    for model, entry in study.models.items():
        able[model] = []
        for measure in entry.measures if entry.measures is not None else study.measures:
            reason = _given(resolved, model) or _missing(resolved, "measure", measure, model)
            if reason and entry.measures is not None:
                others = "" if _given(resolved, model) else _instead(resolved, measure, [model])
                raise PlumblineError(f"`models.{model}.measures`: {reason}; take it off the list{others}.")
            if reason:
                excluded.append(Excluded("", model, measure, reason))
            else:
                able[model].append(measure)
        for dataset in entry.datasets if entry.datasets is not None else study.datasets:
            reason = _unreadable(resolved, dataset, model)
            if reason and entry.datasets is not None:
                raise PlumblineError(f"`models.{model}.datasets`: {reason}; take it off the list.")
            if reason:
                excluded.append(Excluded(dataset, model, "", reason))
            else:
                variants = _variants(resolved, dataset, model)
                cells += [Cell(dataset, variant, model, seeds) for variant in variants for seeds in study.blocks(model)]
    for measure in study.measures:
        if not any(measure in explained for explained in able.values()):
            reasons = [e.reason for e in excluded if e.measure == measure] or ["no model's list of measures names it"]
            others = _instead(resolved, measure, list(study.models))
            raise PlumblineError(
                f"`measures.{measure}` can explain no model of this study: {'; '.join(reasons)}{others}."
            )
    for dataset in study.datasets:
        if not any(cell.dataset == dataset for cell in cells):
            reasons = [e.reason for e in excluded if e.dataset == dataset]
            reasons = reasons or ["no model's list of datasets names it, or none of its variants"]
            raise PlumblineError(f"`datasets.{dataset}` can train no model of this study: {'; '.join(reasons)}.")
    adversaries = [
        Cell(dataset, "plain", derived.name, seeds)
        for derived in resolved.derived.values()
        for dataset in derived.datasets
        for seeds in derived.seeds
        if derived.adversary
    ]
    for name, adversary in study.adversaries.items():
        found = [derived.name for derived in resolved.derived.values() if derived.adversary == name]
        if not any(cell.model in found for cell in adversaries):
            told = f" on {', '.join(adversary.datasets)}" if adversary.datasets else ""
            raise PlumblineError(f"`adversaries.{name}`: no model of this study has attention{told}.")
    measures, unexplained = _explained(resolved, able)
    excluded += unexplained
    for name in study.manipulations:
        if not any(resolved.manipulated[c.variant].name == name for c in cells if c.variant != PLAIN):
            raise PlumblineError(f"`manipulations.{name}`: no dataset and model of this study take it as a variant.")
    masked, curves = _masked(resolved, sorted(cell for cell in cells if cell.variant == PLAIN), able)
    scored = {}
    for protocol in study.protocols:
        if not study.explain:
            raise PlumblineError(
                f"`protocols.{protocol}` scores texts that are explained, and `explain` names no split."
            )
        unscored = {model: _unscored(resolved, protocol, model, measures[model]) for model in study.models}
        _check_tokens(resolved, protocol, cells, measures)
        small = _small_blocks(resolved, protocol)
        variants = resolved.declarations["protocol", protocol].variants
        plain = variants != "manipulated"
        datasets = study.protocols[protocol].datasets or study.datasets
        candidates = [
            cell
            for cell in sorted(cells)
            if cell.dataset in datasets and (variants == "every" or (cell.variant == PLAIN) == plain)
        ]
        scored[protocol] = [cell for cell in candidates if not unscored[cell.model] and cell.seeds not in small]
        if not scored[protocol]:
            told = "; ".join(reason for reason in (*small.values(), *unscored.values()) if reason)
            lacking = (
                "no model is trained on a plain dataset" if plain else "nothing is trained on a manipulated dataset"
            )
            lacking += f" of `datasets` ({', '.join(datasets)})" if study.protocols[protocol].datasets else ""
            told = told if candidates else lacking
            raise PlumblineError(f"`protocols.{protocol}` can score no model of this study: {told}.")
        excluded += [Excluded("", model, "", reason) for model, reason in unscored.items() if reason]
        excluded += [Excluded("", "", "", reason) for reason in small.values()]
    return Runs(sorted(cells), sorted(adversaries), masked, curves, measures, scored, excluded)


def _variants(resolved: Resolved, dataset: str, model: str) -> list[str]:
    """The variants of a dataset that a model is trained on."""
    asked = [resolved.study.datasets[dataset].variants, resolved.study.models[model].variants]
    found = {PLAIN: PLAIN} | {v.variant: v.name for v in resolved.manipulated.values() if dataset in v.datasets}
    return [variant for variant, name in found.items() if all(some is None or name in some for some in asked)]


def _explained(resolved: Resolved, able: dict[str, list[str]]) -> tuple[dict[str, list[str]], list[Excluded]]:
    """The measures that explain each model's plain texts: those that it can have and that have the splits they need."""
    explain, excluded = resolved.study.explain, []
    found: dict[str, list[str]] = {}
    for model, measures in able.items():
        found[model] = []
        for measure in measures if explain else []:
            absent = [split for split in resolved.declarations["measure", measure].splits if split not in explain]
            if absent:
                reason = f"measure '{measure}' needs split '{absent[0]}', which is not among those that are explained"
                excluded.append(Excluded("", model, measure, reason))
            else:
                found[model].append(measure)
    return found, excluded


def _masked(
    resolved: Resolved, cells: list[Cell], able: dict[str, list[str]]
) -> tuple[dict[Cell, Masked], dict[Cell, list[Point]]]:
    """The cells of texts with words masked, and the points of the curves of each plain cell."""
    masked: dict[Cell, Masked] = {}
    curves: dict[Cell, list[Point]] = {}
    random = baseline(resolved)
    for unit, entry in resolved.study.roar.items():
        where, found = f"roar.{unit}", False
        for cell in cells:
            chosen = (entry.models is None or cell.model in entry.models) and not _given(resolved, cell.model)
            if not chosen or not (entry.datasets is None or cell.dataset in entry.datasets):
                continue
            if not resolved.trainings[cell.dataset, cell.model].epochs:
                raise PlumblineError(
                    f"`{where}` trains models anew, and model '{cell.model}' is not trained (`training.epochs` is 0); "
                    "name others by `models`."
                )
            asked = able[cell.model] if entry.measures is None else entry.measures
            measures = [random, *(measure for measure in asked if measure in able[cell.model] and measure != random)]
            if len(measures) < 2:
                raise PlumblineError(f"`{where}`: model '{cell.model}' has no measure to mask by but '{random}'.")
            found = True
            for one in masked_variants(unit, entry, measures, random):
                masked[replace(cell, variant=one.variant)] = one
            curves.setdefault(cell, []).extend(points(unit, entry, measures, random))
        if not found:
            raise PlumblineError(f"`{where}` names no model and dataset that go together.")
    return masked, curves


def _given(resolved: Resolved, model: str) -> str:
    """Why a model with another's attention is neither explained nor scored by itself."""
    derived = resolved.derived.get(model)
    return f"the attention of model '{model}' is that of '{derived.base}'" if derived else ""


def _small_blocks(resolved: Resolved, protocol: str) -> dict[str, str]:
    """The blocks that have too few seeds for a protocol that compares them, and why."""
    least = resolved.declarations["protocol", protocol].least_seeds
    needs = f"protocol '{protocol}' needs blocks of {least} seeds or more, and '{{}}' has fewer"
    blocks = dict.fromkeys(block for model in resolved.study.models for block in resolved.study.blocks(model))
    return {block: needs.format(block) for block in blocks if len(parse_seeds(block)) < least}


def _check_tokens(resolved: Resolved, protocol: str, cells: list[Cell], measures: dict[str, list[str]]) -> None:
    """Refuse a protocol that ranks tokens of which a measure that it compares tells nothing."""
    ranked = set(resolved.options["protocol", protocol].get("tokens", ["text"]))
    if not ranked:
        raise PlumblineError(f"`protocols.{protocol}.tokens` names none; write [text], [texts], [all] or several.")
    for cell in cells:
        paired = resolved.declarations["dataset", cell.dataset].task in PAIRED
        wanted = {"specials": "special tokens"} if "all" in ranked else {}
        wanted |= {"pair": "second texts"} if paired and ranked & {"texts", "all"} else {}
        for measure in measures[cell.model] if len(measures[cell.model]) > 1 else []:
            covers = covered(resolved.declarations["measure", measure], resolved.options["measure", measure])
            for part, what in wanted.items():
                if part not in covers:
                    raise PlumblineError(
                        f"`protocols.{protocol}.tokens` ranks {what}, of which measure '{measure}' of model "
                        f"'{cell.model}' tells nothing; set `tokens` or the measure's options otherwise, or leave the "
                        "measure out."
                    )


def _unscored(resolved: Resolved, protocol: str, model: str, measures: list[str]) -> str:
    """Why a protocol cannot score a model, if so."""
    if given := _given(resolved, model):
        return given
    wanted = resolved.options["protocol", protocol].get("measure")
    if wanted is not None and wanted not in measures:
        return f"protocol '{protocol}' reads measure '{wanted}', which does not explain model '{model}'"
    least = resolved.declarations["protocol", protocol].least_measures
    if len(measures) < least:
        return f"protocol '{protocol}' compares at least {least} measures, and model '{model}' has {len(measures)}"
    return _missing(resolved, "protocol", protocol, model)
