"""All valid runs of a study, and the reasons why other combinations are excluded."""

from dataclasses import dataclass, replace

from plumbline.config.masking import Masked, Point, baseline, masked_variants, points
from plumbline.config.resolved import Resolved
from plumbline.config.seeds import parse_seeds
from plumbline.config.support import scorecard_needs, suggestions, unsupported, untrainable
from plumbline.config.variants import PLAIN
from plumbline.errors import PlumblineError
from plumbline.registry import PAIRED, covered


@dataclass(frozen=True, order=True)
class Cell:
    """The models of one dataset, variant, architecture and block of seeds."""

    dataset: str
    variant: str
    model: str
    seeds: str


@dataclass(frozen=True)
class Excluded:
    """A combination that cannot run; fields that do not matter are empty."""

    dataset: str
    model: str
    measure: str
    reason: str


@dataclass(frozen=True)
class Runs:
    """What a study runs: cells of plain and manipulated datasets, of adversaries and of masked texts; the points of the
    masking curves of each plain cell; the measures of each model; the cells of each protocol; and what is excluded."""

    cells: list[Cell]
    adversaries: list[Cell]
    masked: dict[Cell, Masked]
    curves: dict[Cell, list[Point]]
    measures: dict[str, list[str]]
    scored: dict[str, list[Cell]]
    excluded: list[Excluded]


def list_runs(resolved: Resolved) -> Runs:
    """Every valid run; an impossible combination that the config names explicitly is refused."""
    study = resolved.study
    excluded: list[Excluded] = []
    cells: list[Cell] = []
    supported: dict[str, list[str]] = {}
    for model, entry in study.models.items():
        supported[model] = []
        for measure in entry.measures if entry.measures is not None else study.measures:
            reason = _guided(resolved, model) or unsupported(resolved, "measure", measure, model)
            if reason and entry.measures is not None:
                others = "" if _guided(resolved, model) else suggestions(resolved, measure, [model])
                raise PlumblineError(f"`models.{model}.measures`: {reason}; remove it from the list{others}.")
            if reason:
                excluded.append(Excluded("", model, measure, reason))
            else:
                supported[model].append(measure)
        for dataset in entry.datasets if entry.datasets is not None else study.datasets:
            reason = untrainable(resolved, dataset, model)
            if reason and entry.datasets is not None:
                raise PlumblineError(f"`models.{model}.datasets`: {reason}; remove it from the list.")
            if reason:
                excluded.append(Excluded(dataset, model, "", reason))
            else:
                variants = _variants(resolved, dataset, model)
                blocks = study.cut(dataset, study.blocks(model))
                cells += [Cell(dataset, variant, model, seeds) for variant in variants for seeds in blocks]
    for measure in study.measures:
        if not any(measure in measures for measures in supported.values()):
            reasons = [e.reason for e in excluded if e.measure == measure] or ["no model lists it in `measures`"]
            others = suggestions(resolved, measure, list(study.models))
            raise PlumblineError(
                f"`measures.{measure}` cannot explain any model of this study: {'; '.join(reasons)}{others}."
            )
    for dataset in study.datasets:
        if not any(cell.dataset == dataset for cell in cells):
            reasons = [e.reason for e in excluded if e.dataset == dataset]
            reasons = reasons or ["no model lists it in `datasets` and one of its variants in `variants`"]
            raise PlumblineError(f"`datasets.{dataset}` cannot train any model of this study: {'; '.join(reasons)}.")
    adversaries = [
        Cell(dataset, "plain", derived.name, seeds)
        for derived in resolved.derived.values()
        for dataset in derived.datasets
        for seeds in study.cut(dataset, derived.seeds)
        if derived.adversary
    ]
    for name, adversary in study.adversaries.items():
        if not any(resolved.derived[cell.model].adversary == name for cell in adversaries):
            where = f" on {', '.join(adversary.datasets)}" if adversary.datasets else ""
            raise PlumblineError(
                f"`adversaries.{name}`: no model of this study has trained attention{where}; remove it or add such a "
                "model."
            )
    measures, unexplained = _explained(resolved, supported)
    excluded += unexplained
    for name in study.manipulations:
        if not any(resolved.manipulated[c.variant].name == name for c in cells if c.variant != PLAIN):
            raise PlumblineError(f"`manipulations.{name}`: no model is trained on it; add it to `variants`.")
    masked, curves = _masked(resolved, sorted(cell for cell in cells if cell.variant == PLAIN), supported)
    scored = {}
    for protocol in study.protocols:
        if not study.explain:
            raise PlumblineError(f"`protocols.{protocol}` scores explanations, but `explain` lists no split; add one.")
        unscored = {model: _unscored(resolved, protocol, model, measures[model]) for model in study.models}
        _check_tokens(resolved, protocol, cells, measures)
        small, unmarked = _small_blocks(resolved, protocol), _unmarked(resolved, protocol)
        variants = resolved.declarations["protocol", protocol].variants
        plain = variants != "manipulated"
        datasets = study.protocols[protocol].datasets or [name for name in study.datasets if name not in unmarked]
        candidates = [
            cell
            for cell in sorted(cells)
            if cell.dataset in datasets and (variants == "every" or (cell.variant == PLAIN) == plain)
        ]
        _check_whole_blocks(resolved, protocol, {cell.dataset for cell in candidates if not unscored[cell.model]})
        scored[protocol] = [cell for cell in candidates if not unscored[cell.model] and cell.seeds not in small]
        if not scored[protocol]:
            reason = "; ".join(filter(None, (*small.values(), *unscored.values())))
            if not candidates:
                reason = f"no model is trained on a {'plain' if plain else 'manipulated'} dataset"
                reason += f" of `datasets` ({', '.join(datasets)})" if study.protocols[protocol].datasets else ""
                reason = "; ".join(unmarked.values()) or reason
            raise PlumblineError(f"`protocols.{protocol}` cannot score any model of this study: {reason}.")
        excluded += [Excluded("", model, "", reason) for model, reason in unscored.items() if reason]
        excluded += [Excluded("", "", "", reason) for reason in small.values()]
        excluded += [Excluded(dataset, "", "", reason) for dataset, reason in unmarked.items()]
    return Runs(sorted(cells), sorted(adversaries), masked, curves, measures, scored, excluded)


def scorecard_gaps(resolved: Resolved, runs: Runs) -> list[str]:
    """A sentence about each protocol that gives explained models no score in the scorecard, for lack of measures."""
    gaps: dict[tuple[str, int, int], list[str]] = {}
    for model, measures in runs.measures.items():
        count, needs = scorecard_needs(resolved, measures)
        for protocol, least in needs.items():
            if measures and any(cell.model == model for cell in runs.scored[protocol]):
                gaps.setdefault((protocol, least, count), []).append(f"'{model}'")
    return [
        f"`protocols.{protocol}` adds no score of model{'s' if len(models) > 1 else ''} {', '.join(models)} to the "
        f"scorecard: it needs {least} measure{'s' if least > 1 else ''} or more besides random, but there is "
        f"{count or 'none'}; add a measure, or remove the protocol."
        for (protocol, least, count), models in gaps.items()
    ]


def _variants(resolved: Resolved, dataset: str, model: str) -> list[str]:
    """The variants of a dataset that a model is trained on."""
    listed = [resolved.study.datasets[dataset].variants, resolved.study.models[model].variants]
    names = {PLAIN: PLAIN} | {v.variant: v.name for v in resolved.manipulated.values() if dataset in v.datasets}
    return [variant for variant, name in names.items() if all(some is None or name in some for some in listed)]


def _explained(resolved: Resolved, supported: dict[str, list[str]]) -> tuple[dict[str, list[str]], list[Excluded]]:
    """The measures that explain each model's plain texts: the supported ones whose splits are explained."""
    explain, excluded = resolved.study.explain, []
    explaining: dict[str, list[str]] = {}
    for model, measures in supported.items():
        explaining[model] = []
        for measure in measures if explain else []:
            absent = [split for split in resolved.declarations["measure", measure].splits if split not in explain]
            if absent:
                reason = f"measure '{measure}' needs split '{absent[0]}', which `explain` does not list"
                excluded.append(Excluded("", model, measure, reason))
            else:
                explaining[model].append(measure)
    return explaining, excluded


def _masked(
    resolved: Resolved, cells: list[Cell], supported: dict[str, list[str]]
) -> tuple[dict[Cell, Masked], dict[Cell, list[Point]]]:
    """The cells of masked texts, and the points of the curves of each plain cell."""
    masked: dict[Cell, Masked] = {}
    curves: dict[Cell, list[Point]] = {}
    random = baseline(resolved)
    for unit, entry in resolved.study.roar.items():
        selected = [
            cell
            for cell in cells
            if (entry.models is None or cell.model in entry.models)
            and (entry.datasets is None or cell.dataset in entry.datasets)
            and not _guided(resolved, cell.model)
        ]
        if not selected:
            raise PlumblineError(
                f"`roar.{unit}`: none of its models is trained on any of its datasets; change `models` or `datasets`."
            )
        for cell in selected:
            if not resolved.trainings[cell.dataset, cell.model].epochs:
                raise PlumblineError(
                    f"`roar.{unit}` retrains models, but model '{cell.model}' is not trained (`training.epochs` is 0); "
                    "list other models in `models`."
                )
            listed = supported[cell.model] if entry.measures is None else entry.measures
            measures = [random, *(name for name in listed if name in supported[cell.model] and name != random)]
            if len(measures) < 2:
                raise PlumblineError(
                    f"`roar.{unit}`: model '{cell.model}' needs a measure to mask by besides '{random}'; add one to "
                    "`measures`."
                )
            for variant in masked_variants(unit, entry, measures, random):
                masked[replace(cell, variant=variant.variant)] = variant
            curves.setdefault(cell, []).extend(points(unit, entry, measures, random))
    return masked, curves


def _guided(resolved: Resolved, model: str) -> str:
    """Why a model with another's attention is not explained or scored, or an empty string."""
    derived = resolved.derived.get(model)
    return f"model '{model}' takes its attention from '{derived.base}'" if derived else ""


def _small_blocks(resolved: Resolved, protocol: str) -> dict[str, str]:
    """The blocks with too few seeds for a protocol that compares seeds, each with the reason."""
    least = resolved.declarations["protocol", protocol].least_seeds
    return {
        block: f"protocol '{protocol}' needs blocks of {least} seeds or more, but '{block}' has fewer"
        for model in resolved.study.models
        for block in resolved.study.blocks(model)
        if len(parse_seeds(block)) < least
    }


def _check_whole_blocks(resolved: Resolved, protocol: str, datasets: set[str]) -> None:
    """Refuse to cut the blocks whose seeds a protocol compares."""
    if resolved.declarations["protocol", protocol].least_seeds > 1:
        for dataset in sorted(datasets):
            if resolved.study.compute.job(dataset).seeds:
                raise PlumblineError(
                    f"`compute.jobs.{dataset}.seeds` splits blocks of seeds, but protocol '{protocol}' compares the "
                    "seeds of a block; remove this key or the protocol, or list other `datasets` for the protocol."
                )


def _unmarked(resolved: Resolved, protocol: str) -> dict[str, str]:
    """The datasets without evidence, each with the reason why a protocol that needs it does not score them."""
    if not resolved.declarations["protocol", protocol].evidence:
        return {}
    listed = resolved.study.protocols[protocol].datasets
    unmarked = {
        dataset: f"protocol '{protocol}' needs marked evidence, which dataset '{dataset}' does not have"
        for dataset in listed or resolved.study.datasets
        if not resolved.declarations["dataset", dataset].evidence
    }
    if listed and unmarked:
        raise PlumblineError(f"`protocols.{protocol}.datasets`: {min(unmarked.values())}; remove it from the list.")
    return unmarked


def _check_tokens(resolved: Resolved, protocol: str, cells: list[Cell], measures: dict[str, list[str]]) -> None:
    """Refuse a protocol that ranks tokens which one of the compared measures does not score."""
    ranked = set(resolved.options["protocol", protocol].get("tokens", ["text"]))
    if not ranked:
        raise PlumblineError(f"`protocols.{protocol}.tokens` is empty; write [text], [texts], [all] or several.")
    for cell in cells:
        paired = resolved.declarations["dataset", cell.dataset].task in PAIRED
        required = {"specials": "special tokens"} if "all" in ranked else {}
        required |= {"pair": "second texts"} if paired and ranked & {"texts", "all"} else {}
        for measure in measures[cell.model] if len(measures[cell.model]) > 1 else []:
            covers = covered(resolved.declarations["measure", measure], resolved.options["measure", measure])
            for part, tokens in required.items():
                if part not in covers:
                    raise PlumblineError(
                        f"`protocols.{protocol}.tokens` ranks {tokens}, which measure '{measure}' of model "
                        f"'{cell.model}' does not score; change `tokens` or the options of the measure, or remove the "
                        "measure."
                    )


def _unscored(resolved: Resolved, protocol: str, model: str, measures: list[str]) -> str:
    """Why a protocol cannot score a model, or an empty string."""
    if reason := _guided(resolved, model):
        return reason
    measure = resolved.options["protocol", protocol].get("measure")
    if measure is not None and measure not in measures:
        return f"protocol '{protocol}' reads measure '{measure}', which does not explain model '{model}'"
    least = resolved.declarations["protocol", protocol].least_measures
    if len(measures) < least:
        return f"protocol '{protocol}' compares at least {least} measures, but model '{model}' has {len(measures)}"
    return unsupported(resolved, "protocol", protocol, model)
