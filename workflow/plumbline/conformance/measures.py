"""Checks of measures on every model that they support."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import is_prompted
from plumbline.conformance.declarations import check_documentation, with_few_steps
from plumbline.conformance.examples import (
    LARGE_BUDGET,
    TOLERANCE,
    example_model,
    example_options,
    examples_for,
    needs_pairs,
)
from plumbline.conformance.notes import Checked, Unchecked, failure, type_name
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Declaration, Registry, covered, lacking, load, needed

# The number of examples. Images all have the same size, and occlusion needs a forward pass for each pixel.
TEXT_COUNT, IMAGE_COUNT = 12, 4
# The faults of scores that are not reproducible.
RANDOM = "its scores differ between runs; draw random numbers only from `instances.generator(i, evaluator.seed)`."
BATCH = (
    "its scores depend on the batch: the token budget, the padding or the other texts; ignore tokens that are not "
    "`batch.present`, and explain each text independently."
)
STOCHASTIC = "its scores depend on `evaluator.seed`; state stochastic=True in its declaration."
DETERMINISTIC = "its declaration states stochastic=True, but its scores do not depend on `evaluator.seed`."
ORDER = "its scores depend on the order of the texts; put those of text i at index i, and explain each independently."
OTHERS = "its scores depend on which other texts are explained; explain each independently, or state whole=True."


def check_measure(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A measure returns one finite number per word, the same for any budget, order and other texts, on every model."""
    yield from check_documentation(declaration, "direction", "equation")
    options = declaration.defaults
    unset = [name for name in declaration.required if not options[name]]
    if unset:
        yield Unchecked(f"it was not checked, because only a config can set its option '{unset[0]}'")
        return
    models = [model for model in registry.all("model") if not lacking(declaration, options, model.provides)]
    models = [model for model in models if model.reads != "pixels" or declaration.pixels]
    if not models:
        yield f"no registered model provides what it needs: {', '.join(sorted(needed(declaration, options)))}."
        return
    results: dict[str, list[str]] = {}
    # Models with the same code and options, such as those that differ only in their checkpoint, are checked once.
    equivalent: dict[str, list[Declaration]] = {}
    for model in models:
        model_options = "" if model.reads == "pixels" else f" {example_options(model)}"
        equivalent.setdefault(f"{model.pointer}{model_options}", []).append(model)
    few = with_few_steps(options)
    for group in tqdm(equivalent.values(), f"measure {declaration.name}", unit="model", leave=False, disable=None):
        faults = list(_check_measure_on(declaration, few, group[0]))
        # A measure may need more steps.
        if faults and few != options:
            faults = list(_check_measure_on(declaration, options, group[0]))
        for fault in faults:
            results.setdefault(fault, []).extend(f"'{model.name}'" for model in group)
    if all(isinstance(fault, Unchecked) for fault in results):
        yield from _check_draws(declaration, few, [group[0] for group in equivalent.values()])
    for fault, names in results.items():
        where = "every model" if len(names) == len(models) > 1 else f"model {', '.join(names)}"
        yield type(fault)(f"on {where} {fault}")
    yield Checked(f"{len(models)} {'model' if len(models) == 1 else 'models'}")


def _check_measure_on(declaration: Declaration, options: dict[str, Any], model: Declaration) -> Iterator[str]:
    """The faults of a measure on one model; it may refuse second texts."""
    count = IMAGE_COUNT if model.reads == "pixels" else TEXT_COUNT
    instances = examples_for(model, count, [*declaration.splits, "test"])
    try:
        yield from _check_explaining(declaration, options, model, instances)
    except Exception as error:
        refuses = isinstance(error, PlumblineError) and instances.pair is not None
        yield Unchecked(f"it fails on pairs of texts: {error}") if refuses else failure(error, declaration.path)


def _check_explaining(
    declaration: Declaration, options: dict[str, Any], model: Declaration, instances: Instances
) -> Iterator[str]:
    measure = load(declaration.pointer)
    second_lengths = 0 if instances.pair is None else [len(ids) for ids in instances.pair]
    # Two of the longest texts.
    small_budget = 2 * int((instances.lengths + np.array(second_lengths)).max())

    def new_evaluator(budget: int) -> Evaluator:
        """An evaluator as measures get it, with frozen parameters."""
        return Evaluator(example_model(model, paired=needs_pairs(model)).requires_grad_(False), 0, budget)

    def explain(evaluator: Evaluator, inputs: Instances) -> Any:
        with torch.enable_grad():
            return measure(evaluator, inputs, **options)

    evaluator, inputs = new_evaluator(LARGE_BUDGET), deepcopy(instances)
    state, outputs = deepcopy(evaluator.model.state_dict()), evaluator.probabilities(instances)
    importances = explain(evaluator, inputs)
    faults = list(_check_inputs(evaluator, state, outputs, inputs, instances))
    faults += _check_importances(importances, instances)
    # The words of a prompt are not scored.
    absent = {"specials"} if is_prompted(evaluator.model) else set()
    absent |= {"pair"} if instances.pair is None else set()
    faults += [
        f"it covers '{part}', but its Importances have no `{part}`."
        for part in sorted(covered(declaration, options) - absent)
        if not faults and getattr(importances, part, None) is None
    ]
    yield from faults
    if faults:
        return
    parts = _parts(importances)
    values = np.concatenate(parts["scores"])
    least, greatest = declaration.range or (None, None)
    if (least is not None and values.min() < least - TOLERANCE) or (
        greatest is not None and values.max() > greatest + TOLERANCE
    ):
        bounds = f"from {values.min():.3g} to {values.max():.3g}"
        yield f"its scores range {bounds}, outside its declared range {declaration.range}."
    ordered, shuffled = np.arange(len(instances)), np.random.default_rng(1).permutation(len(instances))

    def reproduces(index: np.ndarray, budget: int) -> bool:
        """Whether another run, with the texts in this order and this budget, gives the same scores."""
        others = _parts(explain(new_evaluator(budget), instances.take(index)))
        return all(_all_close([rows[i] for i in index], others.get(part)) for part, rows in parts.items())

    # One run of half of the texts in another order and with a small budget covers all faults; only if it differs, each
    # is checked.
    half = shuffled if declaration.whole or declaration.splits else shuffled[: len(shuffled) // 2]
    if not reproduces(half, small_budget):
        causes = {RANDOM: (ordered, LARGE_BUDGET), ORDER: (shuffled, LARGE_BUDGET), BATCH: (ordered, small_budget)}
        causes[OTHERS] = (half, LARGE_BUDGET)
        yield next((fault for fault, run in causes.items() if not reproduces(*run)), BATCH)


def _check_draws(declaration: Declaration, options: dict[str, Any], models: Sequence[Declaration]) -> Iterator[str]:
    """A measure is `stochastic` if and only if its scores depend on the evaluator's seed: on some model, or on none of
    the first models of each kind of input. One that fails here, such as by refusing second texts, is not checked."""
    first = {model.reads: model for model in reversed(models)}.values()
    examined = models if declaration.stochastic else first
    try:
        depends = any(_depends_on_seed(load(declaration.pointer), options, model) for model in examined)
    except Exception:
        return
    if depends and not declaration.stochastic:
        yield STOCHASTIC
    # Required options may decide whether a measure draws.
    elif declaration.stochastic and not depends and not declaration.required:
        yield DETERMINISTIC


def _depends_on_seed(measure: Callable[..., Importances], options: dict[str, Any], model: Declaration) -> bool:
    instances = examples_for(model, IMAGE_COUNT, ["train", "test"])
    network = example_model(model, paired=needs_pairs(model)).requires_grad_(False)
    evaluators = (Evaluator(network, seed, LARGE_BUDGET) for seed in (0, 1))
    with torch.enable_grad():
        first, second = (measure(evaluator, instances, **options).scores for evaluator in evaluators)
    return not _all_close(first, second)


def _check_inputs(
    evaluator: Evaluator, state: dict[str, torch.Tensor], outputs: np.ndarray, inputs: Instances, instances: Instances
) -> Iterator[str]:
    """A measure leaves its inputs unchanged, because other measures use them too."""
    for column in (field.name for field in fields(Instances)):
        after, before = getattr(inputs, column), getattr(instances, column)
        if before is not None and not (len(after) == len(before) and all(map(np.array_equal, after, before))):
            yield f"it modifies the `{column}` of its input instances; change a copy."
            return
    weights = evaluator.model.state_dict()
    if any(not torch.equal(tensor, weights[name]) for name, tensor in state.items()):
        yield "it modifies the weights of the model, which other measures use too; change a copy."
    elif evaluator.model.training or not np.array_equal(evaluator.probabilities(instances), outputs):
        yield "it leaves the model changed (in training mode or with a hook); restore what you change."


def _check_importances(importances: Any, instances: Instances) -> Iterator[str]:
    """One finite number for each word and, if given, for each word of second texts and each special token."""
    if not isinstance(importances, Importances):
        yield f"it returns {type_name(importances)}; end with `return Importances(scores)`."
        return
    words = [int(maskable.sum()) for maskable in instances.maskable]
    specials = [len(maskable) - n for maskable, n in zip(instances.maskable, words, strict=True)]
    yield from _check_rows(importances.scores, words, "words")
    if importances.pair is not None:
        if instances.pair is None:
            yield "it returns scores of second texts for instances without second texts."
            return
        pair = [int(instances.pair_words(i).sum()) for i in range(len(instances))]
        specials = [specials[i] + len(ids) - pair[i] for i, ids in enumerate(instances.pair)]
        yield from _check_rows(importances.pair, pair, "words in its second text")
    if importances.specials is not None:
        yield from _check_rows(importances.specials, specials, "special tokens")
    if importances.target is not None:
        target = np.asarray(importances.target)
        if target.shape != (len(instances),):
            yield f"its `target` has shape {target.shape}, not ({len(instances)},): one class for each text."
        elif target.dtype.kind not in "iu":
            yield f"its `target` is of type {target.dtype}; return class indices."


def _check_rows(rows: Sequence[Any], counts: list[int], what: str) -> Iterator[str]:
    """The scores of each text; the first fault is reported."""
    if len(rows) != len(counts):
        yield f"it returns scores for {len(rows)} of {len(counts)} texts; return one array for each."
        return
    for i, (scores, count) in enumerate(zip(rows, counts, strict=True)):
        if not isinstance(scores, np.ndarray):
            yield (
                f"its scores of text {i} are {type_name(scores)}; return NumPy arrays, for example by "
                "`.detach().cpu().numpy()`."
            )
        elif scores.dtype.kind not in "fiub":
            yield f"its scores of text {i} are of type {scores.dtype}; return real numbers, such as float32."
        elif scores.shape != (count,):
            yield (
                f"it returns scores of shape {scores.shape} for text {i}, which has {count} {what}; return one number "
                "for each of them and none for padding or other tokens."
            )
        elif not np.isfinite(stored := _as_stored(scores)).all():
            yield f"its scores of text {i} are not finite ({stored[~np.isfinite(stored)][0]})."
        else:
            continue
        return


def _as_stored(scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _parts(importances: Importances) -> dict[str, Sequence[Any]]:
    """The non-empty fields of importances, each a sequence over texts."""
    parts = {part: getattr(importances, part) for part in ("scores", "pair", "specials", "target")}
    return {part: rows for part, rows in parts.items() if rows is not None}


def _all_close(rows: Sequence[Any], others: Sequence[Any] | None) -> bool:
    return (
        others is not None
        and len(rows) == len(others)
        and all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, atol=TOLERANCE) for a, b in zip(rows, others, strict=True)
        )
    )
