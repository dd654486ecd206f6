"""Measures, on every model that they fit."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from plumbline.attribution.importances import Importances
from plumbline.conformance.declarations import check_documentation, default_options, with_few_steps
from plumbline.conformance.examples import ENOUGH, TOLERANCE, example_model, example_options, examples_for, needs_pairs
from plumbline.conformance.notes import Tried, Untried, failure, type_name
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Declaration, Registry, covered, load, needed

# How many examples a measure explains. Texts differ in length; images are all of one size, and occlusion takes a pass
# for each pixel of each.
TEXT_COUNT, IMAGE_COUNT = 12, 4
# What is wrong with scores that are not the same each time, and what to do.
AGAIN = "its scores differ when it is run again; draw at random by `instances.generator(i, evaluator.seed)` alone."
BATCH = (
    "its scores depend on the batch, that is on the token budget, the padding or the texts beside; leave out what "
    "`batch.present` says is padding, and explain each text by itself."
)
ORDER = "its scores depend on the order of the texts; put those of text i at place i, and explain each by itself."


def check_measure(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A measure gives one finite number per word, the same for any budget and order, on every model it fits."""
    yield from check_documentation(declaration, "direction", "equation")
    options = default_options(declaration)
    unset = [name for name in declaration.required if not options[name]]
    if unset:
        yield Untried(f"it was not tried, because only a config can set its option '{unset[0]}'")
        return
    fitting = [model for model in registry.all("model") if needed(declaration, options) <= set(model.provides)]
    models = [model for model in fitting if model.reads != "pixels" or declaration.pixels]
    if not models:
        yield f"no registered model provides what it needs: {', '.join(sorted(needed(declaration, options)))}."
        return
    told: dict[str, list[str]] = {}
    # Models that differ in their checkpoint alone are the same here, and those of pictures that differ in size.
    alike: dict[str, list[Declaration]] = {}
    for model in models:
        made = "" if model.reads == "pixels" else f" {example_options(model)}"
        alike.setdefault(f"{model.pointer}{made}", []).append(model)
    few = with_few_steps(options)
    for same in tqdm(alike.values(), f"measure {declaration.name}", unit="model", leave=False, disable=None):
        faults = list(_check_measure_on(declaration, few, same[0]))
        # A measure may ask for more steps than that.
        if faults and few != options:
            faults = list(_check_measure_on(declaration, options, same[0]))
        for fault in faults:
            told.setdefault(fault, []).extend(f"'{model.name}'" for model in same)
    for fault, names in told.items():
        where = "every model" if len(names) == len(models) > 1 else f"model {', '.join(names)}"
        yield type(fault)(f"on {where} {fault}")
    yield Tried(f"{len(models)} {'model' if len(models) == 1 else 'models'}")


def _check_measure_on(declaration: Declaration, options: dict[str, Any], model: Declaration) -> Iterator[str]:
    """One model's faults of a measure. What it cannot explain of second texts, it may decline."""
    count = IMAGE_COUNT if model.reads == "pixels" else TEXT_COUNT
    instances = examples_for(model, count, [*declaration.splits, "test"])
    try:
        yield from _check_explaining(declaration, options, model, instances)
    except Exception as error:
        declined = isinstance(error, PlumblineError) and instances.pair is not None
        yield Untried(f"it explains nothing: {error}") if declined else failure(error, declaration.path)


def _check_explaining(
    declaration: Declaration, options: dict[str, Any], model: Declaration, instances: Instances
) -> Iterator[str]:
    measure = load(declaration.pointer)
    seconds = 0 if instances.pair is None else [len(ids) for ids in instances.pair]
    # Two of the longest texts at a time.
    few = 2 * int((instances.lengths + np.array(seconds)).max())

    def evaluator(budget: int) -> Evaluator:
        """A model as measures meet it: its parameters take no gradients."""
        return Evaluator(example_model(model, paired=needs_pairs(model)).requires_grad_(False), 0, budget)

    def explain(asked: Evaluator, some: Instances) -> Any:
        with torch.enable_grad():
            return measure(asked, some, **options)

    asked, given = evaluator(ENOUGH), deepcopy(instances)
    state, before = deepcopy(asked.model.state_dict()), asked.probabilities(instances)
    found = explain(asked, given)
    faults = [*_check_inputs(asked, state, before, given, instances), *_check_told(found, instances)]
    faults += [
        f"it tells of '{part}', but its Importances have no `{part}`."
        for part in sorted(covered(declaration, options) - ({"pair"} if instances.pair is None else set()))
        if not faults and getattr(found, part, None) is None
    ]
    yield from faults
    if faults:
        return
    whole = _parts(found)
    values = np.concatenate(whole["scores"])
    least, greatest = declaration.range or (None, None)
    if (least is not None and values.min() < least - TOLERANCE) or (
        greatest is not None and values.max() > greatest + TOLERANCE
    ):
        reach = f"from {values.min():.3g} to {values.max():.3g}"
        yield f"its scores reach {reach}, outside its declared range {declaration.range}."
    everything, shuffled = np.arange(len(instances)), np.random.default_rng(1).permutation(len(instances))

    def same(index: np.ndarray, budget: int) -> bool:
        """Whether another run, with the texts in this order and this budget, gives the same scores."""
        others = _parts(explain(evaluator(budget), instances.take(index)))
        return all(_alike([rows[i] for i in index], others.get(part)) for part, rows in whole.items())

    # One run in another order, a few at a time, shows that none of the three matters; only a fault asks which does.
    if not same(shuffled, few):
        causes = {AGAIN: (everything, ENOUGH), ORDER: (shuffled, ENOUGH), BATCH: (everything, few)}
        yield next((fault for fault, run in causes.items() if not same(*run)), BATCH)


def _check_inputs(
    evaluator: Evaluator, state: dict[str, torch.Tensor], before: np.ndarray, given: Instances, instances: Instances
) -> Iterator[str]:
    """What a measure is given serves other measures too, and must be left as it is."""
    for column in (field.name for field in fields(Instances)):
        own, usual = getattr(given, column), getattr(instances, column)
        if usual is not None and not (len(own) == len(usual) and all(map(np.array_equal, own, usual))):
            yield f"it writes into the `{column}` of the instances that it is given; copy what you change."
            return
    after = evaluator.model.state_dict()
    if any(not torch.equal(tensor, after[name]) for name, tensor in state.items()):
        yield "it changes the weights of the model, which other measures read after it; work on a copy of them."
    elif evaluator.model.training or not np.array_equal(evaluator.probabilities(instances), before):
        yield "it leaves the model other than it was (in training mode, or with a hook); put back what you change."


def _check_told(found: Any, instances: Instances) -> Iterator[str]:
    """One finite number for each word; of each word of second texts, and each special token, if it tells of them."""
    if not isinstance(found, Importances):
        yield f"it returns {type_name(found)}; end with `return Importances(scores)`."
        return
    count = range(len(instances))
    words = [int(free.sum()) for free in instances.maskable]
    specials = [len(free) - n for free, n in zip(instances.maskable, words, strict=True)]
    yield from _check_rows(found.scores, words, "words")
    if found.pair is not None:
        if instances.pair is None:
            yield "it gives scores of second texts where there are none."
            return
        pair = [int(instances.pair_words(i).sum()) for i in count]
        specials = [specials[i] + len(instances.pair[i]) - pair[i] for i in count]
        yield from _check_rows(found.pair, pair, "words in its second text")
    if found.specials is not None:
        yield from _check_rows(found.specials, specials, "special tokens")
    if found.target is not None and np.shape(found.target) != (len(instances),):
        yield f"its `target` has shape {np.shape(found.target)}, not ({len(instances)},): one class for each text."
    elif found.target is not None and np.asarray(found.target).dtype.kind not in "iu":
        yield f"its `target` is of type {np.asarray(found.target).dtype}; give the numbers of classes."


def _check_rows(rows: Sequence[Any], counts: list[int], what: str) -> Iterator[str]:
    """Scores, text by text. The first fault tells enough."""
    if len(rows) != len(counts):
        yield f"it gives scores for {len(rows)} of {len(counts)} texts; give one array for each."
        return
    for i, (found, count) in enumerate(zip(rows, counts, strict=True)):
        if not isinstance(found, np.ndarray):
            yield (
                f"its scores of text {i} are {type_name(found)}; give a NumPy array, as `.detach().cpu().numpy()` of a "
                "tensor does."
            )
        elif found.dtype.kind not in "fiub":
            yield f"its scores of text {i} are of type {found.dtype}; give real numbers, such as float32."
        elif found.shape != (count,):
            yield (
                f"it gives scores of shape {found.shape} for text {i}, which has {count} {what}; give one number for "
                "each of them, and none for padding or other tokens."
            )
        elif not np.isfinite(_as_stored(found)).all():
            yield f"its scores of text {i} are not finite ({_as_stored(found)[~np.isfinite(_as_stored(found))][0]})."
        else:
            continue
        return


def _as_stored(scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _parts(found: Importances) -> dict[str, Sequence[Any]]:
    """All that a measure tells, text by text."""
    told = {part: getattr(found, part) for part in ("scores", "pair", "specials", "target")}
    return {part: rows for part, rows in told.items() if rows is not None}


def _alike(some: Sequence[Any], others: Sequence[Any] | None) -> bool:
    return (
        others is not None
        and len(some) == len(others)
        and all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, atol=TOLERANCE) for a, b in zip(some, others, strict=True)
        )
    )
