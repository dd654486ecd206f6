"""Predictions and importances from the stored weights, one text at a time."""

from itertools import product
from typing import Any

import torch
from torch import Tensor

from tests.oracle.check import Checks, apart, grouped
from tests.oracle.models import Model, known
from tests.oracle.store import UNK, Cell, Results, Row, Text, read, record

# Single precision leaves so much of a probability, and of a product of vectors with gradients.
PROBABILITY, PRODUCT = 1e-5, 1e-4
# Points of the midpoint rule: so many at first, and more until the scores sum to the change of the output.
POINTS, MOST_POINTS, TOGETHER = 64, 4096, 256
COMPLETE = 1e-5
# An integral that misses more is known to be wrong, and says so. Errors of tokens cancel in their sum, so that one of
# them may be many times as large.
LARGE, CANCELLED = 1e-3, 100
# So many tokens have few enough signs to try them all.
FEW_TOKENS = 9


def models(results: Results, cell: Cell, checks: Checks) -> dict[int, Model]:
    """The models of a cell by seed; none if they are not written down here."""
    config = results.model(cell)
    if config["base"].get("objective") == "guided":
        checks.skip(f"the model {cell.model} has another's attention")
        return {}
    if not known(config):
        checks.skip(f"the model {cell.model} is not known: {config['object']}")
        return {}
    return {seed: Model(weights, config) for seed, weights in results.weights(cell).items()}


def spread(rows: list[Any], limit: int) -> list[Any]:
    """At most so many of the rows, evenly spread over all."""
    count = min(limit, len(rows))
    return [rows[place * len(rows) // count] for place in range(count)]


def check_ids(results: Results, checks: Checks) -> None:
    """The ids of all words of texts are those of the vocabulary, or of an unknown word."""
    for path in sorted((results.folder / "data").glob("*/*/instances.parquet")):
        vocabulary = path.parents[1] / "vocabulary.parquet"
        if not vocabulary.exists():
            continue
        ids = {row["word"]: row["id"] for row in read(vocabulary)}
        for row in read(path):
            for tokens, stored_ids in ((row["tokens"], row["ids"]), (row["tokens_b"], row["ids_b"])):
                # Images have no words.
                if tokens:
                    expected = [ids.get(token, UNK) for token in tokens]
                    checks.same("ids by vocabulary", expected, stored_ids, 0, (path, row["split"], row["instance"]))


def check_predictions(results: Results, checks: Checks, limit: int) -> None:
    """Class probabilities of every model, and the attention of those of which it is stored."""
    for cell, path in results.cells("models", "predictions.parquet"):
        found = models(results, cell, checks)
        for (seed, _), rows in grouped(read(path), lambda row: (row["seed"], row["split"])).items():
            for row in spread(rows, limit) if found else []:
                text = results.text(cell, seed, row["split"], row["instance"])
                output = found[seed].probabilities(text)[0].tolist()
                checks.same("predictions", output, row["probabilities"], PROBABILITY, (cell, seed, row["instance"]))
                label = results.instances(cell.dataset, cell.variant)[row["split"], row["instance"]]["label"]
                checks.same("labels", [label], [row["label"]], 0, (cell, seed, row["instance"]))
    for cell, path in results.cells("models", "attention.parquet"):
        found = models(results, cell, checks)
        for (seed, _), rows in grouped(read(path), lambda row: (row["seed"], row["split"])).items():
            for row in spread(rows, limit) if found else []:
                text = results.text(cell, seed, row["split"], row["instance"])
                computed = attention_of(found[seed], text)
                where = (cell, seed, row["instance"])
                checks.same("stored attention", computed, row["attention"], PROBABILITY, where)


def attention_of(model: Model, text: Text) -> list[float]:
    """The weight of each word."""
    attention = model.run(text)[1]
    assert attention is not None
    return attention[0, text.places].tolist()


def explained(model: Model, text: Text, asked: Row, target: int, logits: Tensor) -> Tensor:
    """The output that is explained, [N], of logits [N, C] of the text as it is or changed."""
    if asked["function"] == "probability":
        return logits.softmax(-1)[:, target]
    if asked["function"] == "logit":
        return logits[:, target]
    others = model.run(text)[0][0].tolist()
    others[target] = float("-inf")
    return logits[:, target] - logits[:, others.index(max(others))]


def target_of(model: Model, text: Text, asked: Row, label: int) -> int:
    """The class that is explained."""
    target = asked.get("target", "predicted")
    if target == "gold":
        return label
    return int(model.run(text)[0][0].argmax()) if target == "predicted" else int(target)


def moving(text: Text, asked: Row) -> list[int]:
    """The tokens of both texts that are explained by measures which start from a text that says nothing."""
    specials = asked["specials"]
    own = [place for place, word in enumerate(text.words) if word or specials]
    if text.pair is None or asked["texts"] == "first":
        return own
    assert text.pair_words
    return own + [len(text.ids) + place for place, word in enumerate(text.pair_words) if word or specials]


def baseline_of(model: Model, text: Text, asked: Row) -> Tensor:
    """The vectors of the text with nothing in the place of what is explained."""
    vectors = model.vectors(text)
    nothing = model.vectors(text, padding=True) if asked["baseline"] == "pad" else torch.zeros_like(vectors)
    found = vectors.clone()
    for place in moving(text, asked):
        found[:, place] = nothing[:, place]
    return found


def gradient(model: Model, text: Text, asked: Row, target: int) -> Tensor:
    """A number for each token of the text from the derivative by its vector."""
    vectors = model.vectors(text).requires_grad_()
    logits, _ = model.run(text, vectors, detached=asked["attention"] == "detached")
    (slope,) = torch.autograd.grad(explained(model, text, asked, target, logits).sum(), vectors)
    slope, vectors = slope[0, : len(text.ids)], vectors.detach()[0, : len(text.ids)]
    if asked["reduction"] == "vocabulary":
        return (slope @ model.weights["embedding.weight"].T).pow(2).sum(-1).sqrt()
    if asked["reduction"] == "dot":
        return (slope * vectors).sum(-1)
    return slope.abs().sum(-1) if asked["reduction"] == "l1" else slope.pow(2).sum(-1).sqrt()


def attention_gradient(model: Model, text: Text, asked: Row, target: int) -> Tensor:
    """A word's attention times the derivative by it."""
    attention = model.run(text)[1]
    assert attention is not None
    attention = attention.detach().requires_grad_()
    logits, _ = model.run(text, attention=attention)
    (slope,) = torch.autograd.grad(explained(model, text, asked, target, logits).sum(), attention)
    return (attention * slope).detach()[0]


def leave_one_out(model: Model, text: Text, asked: Row, target: int) -> Tensor:
    """The change of the output without each of the words; 0 for special tokens, which stay."""
    before = model.probabilities(text)[0]
    found = torch.zeros(len(text.ids), dtype=torch.float64)
    for place in text.places:
        if len(text.places) == 1:
            found[place] = float("nan")
            continue
        fall = before - model.probabilities(text.without({place}))[0]
        found[place] = fall.abs().sum() if asked["output"] == "distribution" else fall[target]
    return found


def slopes_along(model: Model, text: Text, asked: Row, target: int, points: list[float]) -> Tensor:
    """(x - b)_t · ∇f(b + a (x - b)), [points, T]."""
    vectors, nothing = model.vectors(text), baseline_of(model, text, asked)
    way = torch.tensor(points, dtype=torch.float64)[:, None, None]
    at = (nothing + way * (vectors - nothing)).requires_grad_()
    (slope,) = torch.autograd.grad(explained(model, text, asked, target, model.run(text, at)[0]).sum(), at)
    return (slope * (vectors - nothing)).sum(-1)


def change_of(model: Model, text: Text, asked: Row, target: int) -> float:
    """The change of the output from a text of nothing to the text."""
    ends = [model.vectors(text), baseline_of(model, text, asked)]
    one, other = (explained(model, text, asked, target, model.run(text, at)[0])[0] for at in ends)
    return float(one - other)


def integrated(model: Model, text: Text, asked: Row, target: int) -> Tensor:
    """The integral of slopes from a text of nothing, by the midpoint rule."""
    change, points = change_of(model, text, asked, target), POINTS
    while True:
        places = [(i + 0.5) / points for i in range(points)]
        some = [places[start : start + TOGETHER] for start in range(0, points, TOGETHER)]
        total = sum(slopes_along(model, text, asked, target, at).sum(0) for at in some) / points
        if abs(float(total.sum()) - change) < COMPLETE or points >= MOST_POINTS:
            return total
        points *= 4


def occlusion(model: Model, text: Text, asked: Row, target: int) -> Tensor:
    """The fall of the output with nothing in the place of each token."""
    vectors, nothing, places = model.vectors(text), baseline_of(model, text, asked), moving(text, asked)
    before = explained(model, text, asked, target, model.run(text)[0])[0]
    changed = vectors.repeat(len(places), 1, 1)
    for row, place in enumerate(places):
        changed[row, place] = nothing[0, place]
    found = torch.zeros(vectors.shape[1], dtype=torch.float64)
    found[places] = before - explained(model, text, asked, target, model.run(text, changed)[0])
    return found


def rollout(model: Model, text: Text) -> Tensor:
    """What the output reads of each token if layers only mix tokens: r Â_L ⋯ Â_1."""
    read_by = model.run(text)[1]
    assert read_by is not None
    found = read_by[0]
    for layer in reversed(model.layers(text)):
        found = found @ (layer.mean(0) + torch.eye(layer.shape[-1], dtype=torch.float64)) / 2
    return found


def check_importances(results: Results, checks: Checks, limit: int) -> None:
    """The importances of all measures that have one right answer."""
    for cell, path in results.cells("attributions", "*.parquet"):
        asked = record(path.with_suffix(".json"))["config"]["measures"]
        # What masking begins with are the models of the plain texts.
        source = cell._replace(variant="plain") if cell.variant == "unmasked" else cell
        found = models(results, source, checks)
        of_measures = grouped(read(path), lambda row: (row["measure"], row["seed"]))
        stored_measures = {measure for measure, _ in of_measures}
        checks.note("importances: measures of a file", len(stored_measures ^ set(asked)), 0, path)
        for (measure, seed), rows in of_measures.items():
            kind, options = asked[measure]["object"].split(":")[1], asked[measure]["options"]
            for row in spread(rows, limit) if found else []:
                text = results.text(source, seed, row["split"], row["instance"])
                label = results.instances(cell.dataset, cell.variant)[row["split"], row["instance"]]["label"]
                where = (*cell, seed, row["split"], row["instance"])
                _check_row(checks, kind, measure, found[seed], text, options, row, label, where)


def _check_row(
    checks: Checks, kind: str, measure: str, model: Model, text: Text, asked: Row, row: Row, label: int, where: Any
) -> None:
    if kind == "attention":
        scores = [*attention_of(model, text)]
        checks.same("attention", scores, row["scores"], PROBABILITY, where)
        checks.same("attention: specials", [0.0] * (len(text.ids) - len(text.places)), row["specials"], 0, where)
        return
    if kind == "rollout" and text.pair is None:
        computed = rollout(model, text)
        checks.same("rollout", computed[text.places].tolist(), row["scores"], PROBABILITY, where)
        return
    if kind == "random":
        low, high = min(row["scores"]), max(row["scores"])
        checks.note("random: within [0, 1]", max(0.0, -low, high - 1), 0, where)
        return
    if kind not in (
        "gradient", "attention_x_gradient", "leave_one_out", "integrated_gradient_pad", "occlusion", "deep_lift"
    ):  # fmt: skip
        checks.skip(f"the measure {measure} is not recomputed")
        return
    target = label if asked.get("output") == "gold" else target_of(model, text, asked, label)
    checks.same("explained class", [target], [row["target"]], 0, (*where, measure))
    if kind == "deep_lift" and asked["rule"] == "rescale":
        _deep_lift(checks, measure, model, text, asked, row, target, where)
        return
    if kind == "deep_lift":
        found = slopes_along(model, text, asked, target, [1.0])[0]
    else:
        found = {
            "gradient": gradient,
            "attention_x_gradient": attention_gradient,
            "leave_one_out": leave_one_out,
            "integrated_gradient_pad": integrated,
            "occlusion": occlusion,
        }[kind](model, text, asked, target)
    signed = found
    found = found.abs() if asked["sign"] == "absolute" else found
    missed = 0.0
    if kind == "integrated_gradient_pad":
        change = change_of(model, text, asked, target)
        if abs(float(signed.sum()) - change) > COMPLETE:
            checks.skip(f"{measure} of texts whose output is too steep for {MOST_POINTS} points of the midpoint rule")
            return
        missed = _residual(checks, measure, signed, text, asked, row, change, where)
        if missed > LARGE:
            return
        missed *= CANCELLED
    for part, places in _parts(text, asked if "texts" in asked else None).items():
        expected = found[places].tolist()
        stored = row[part] or []
        far = max(map(apart, expected, stored), default=0.0) if len(expected) == len(stored) else float("inf")
        checks.note(measure if part == "scores" else f"{measure}: {part}", max(0.0, far - missed), PRODUCT, where)


def _residual(
    checks: Checks, measure: str, signed: Tensor, text: Text, asked: Row, row: Row, change: float, where: Any
) -> float:
    """The stored residual of the integral, compared with the signed sum of its scores."""
    total = 0.0
    for part, places in _parts(text, asked).items():
        for score, right in zip(row[part] or [], signed[places].tolist(), strict=True):
            total += score if asked["sign"] == "signed" or right > 0 else -score
    checks.same(f"{measure}: residual", [total - change], [row["residual"]], PRODUCT, where)
    return abs(row["residual"])


def _parts(text: Text, asked: Row | None) -> dict[str, list[int]]:
    """The tokens that each column of importances scores."""
    found = {"scores": text.places}
    if asked is None:
        return found
    others = [place for place, word in enumerate(text.words) if not word]
    if text.pair is not None and asked["texts"] == "both":
        assert text.pair_words
        start = len(text.ids)
        found["pair"] = [start + place for place, word in enumerate(text.pair_words) if word]
        others += [start + place for place, word in enumerate(text.pair_words) if not word]
    return found | ({"specials": others} if asked["specials"] else {})


def _deep_lift(
    checks: Checks, measure: str, model: Model, text: Text, asked: Row, row: Row, target: int, where: Any
) -> None:
    """Signed scores sum to the change of the output, which unsigned ones can only reach; of a linear model all are
    known."""
    vectors, nothing = model.vectors(text), baseline_of(model, text, asked)
    ends = [model.run(text, at)[0] for at in (vectors, nothing)]
    change = change_of(model, text, asked, target)
    scores = [*row["scores"], *(row["pair"] or []), *(row["specials"] or [])]
    if asked["sign"] == "signed":
        checks.note(f"{measure}: sum", abs(sum(scores) - change), PROBABILITY, where)
        return
    checks.note(f"{measure}: sum reaches the change", max(0.0, abs(change) - sum(scores)), PROBABILITY, where)
    if len(scores) <= FEW_TOKENS:
        nearest = min(
            abs(sum(s * score for s, score in zip(signs, scores, strict=True)) - change)
            for signs in product((-1, 1), repeat=len(scores))
        )
        checks.note(f"{measure}: some signs sum to the change", nearest, PRODUCT, where)
    if model.bag:
        # The output depends on one number z = w · x̄ + c alone, so that all tokens have the multiplier Δp / Δz.
        weight = model.weights["head.linear.weight"][0] / len(text.places)
        rise = float((ends[0][0, 1] - ends[0][0, 0]) - (ends[1][0, 1] - ends[1][0, 0]))
        parts = [abs(float((vectors - nothing)[0, place] @ weight) * change / rise) for place in text.places]
        checks.same(f"{measure}: linear model", parts, row["scores"], PROBABILITY, where)
