"""Statistics in plain loops."""

from collections.abc import Sequence
from math import ceil, comb, exp, floor, isfinite, isnan, lgamma, nan, pi, sqrt

import numpy as np

Numbers = Sequence[float]


def mean(values: Numbers) -> float:
    """The mean; no number if there are no values."""
    return sum(values) / len(values) if values else nan


def deviation(values: Numbers) -> float:
    """The population's standard deviation."""
    middle = mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / len(values)) if values else nan


def quantile(values: Numbers, share: float) -> float:
    """A quantile, between two values in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = ordered[floor(place)], ordered[ceil(place)]
    return low + (place - floor(place)) * (high - low)


def kendall(one: Numbers, other: Numbers, resolution: float = 0.0) -> float:
    """τ-b: concordant less discordant pairs over the root of the pairs that each does not tie."""
    concordance = ordered_a = ordered_b = 0
    for i in range(len(one)):
        for j in range(i):
            up, across = one[i] - one[j], other[i] - other[j]
            in_a, in_b = abs(up) > resolution, abs(across) > resolution
            ordered_a += in_a
            ordered_b += in_b
            if in_a and in_b:
                concordance += 1 if (up > 0) == (across > 0) else -1
    return concordance / sqrt(ordered_a * ordered_b) if ordered_a and ordered_b else nan


def long_kendall(one: Numbers, other: Numbers) -> float:
    """The same of long lists, a row of pairs at a time."""
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    concordance = ordered_a = ordered_b = 0.0
    for i in range(len(a) - 1):
        up, across = np.sign(a[i + 1 :] - a[i]), np.sign(b[i + 1 :] - b[i])
        concordance += float(up @ across)
        ordered_a += float(np.abs(up).sum())
        ordered_b += float(np.abs(across).sum())
    return concordance / sqrt(ordered_a * ordered_b) if ordered_a and ordered_b else nan


def pearson(one: Numbers, other: Numbers) -> float:
    """Covariance over the product of the deviations."""
    a, b = mean(one), mean(other)
    shared = sum((x - a) * (y - b) for x, y in zip(one, other, strict=True))
    spreads = sum((x - a) ** 2 for x in one) * sum((y - b) ** 2 for y in other)
    return shared / sqrt(spreads) if len(set(one)) > 1 and len(set(other)) > 1 else nan


def ranks(values: Numbers) -> list[float]:
    """The rank of each value from 1 on; equal ones share the mean of their ranks."""
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def top_k_jain_wallace(one: Numbers, other: Numbers, k: int) -> float:
    """The study's code: discordant shared items, items overtaken by one that only one list has, and pairs that only
    one list has at ½; pairs of one item in each list cost nothing."""
    a, b = (set(sorted(range(len(scores)), key=lambda i, s=scores: (-s[i], i))[:k]) for scores in (one, other))
    shared, only_a, only_b = sorted(a & b), a - b, b - a
    tau = kendall([one[i] for i in shared], [other[i] for i in shared])
    reordered = 0.0 if isnan(tau) else (1 - tau) / 2 * len(shared) ** 2
    overtaken = sum(one[i] < one[j] for i in shared for j in only_a)
    overtaken += sum(other[i] < other[j] for i in shared for j in only_b)
    unknown = len(only_a) * (len(only_a) - 1) / 2
    return (reordered + overtaken + unknown) / len(a | b) ** 2


def top_k_fagin(one: Numbers, other: Numbers, k: int) -> float:
    """Fagin, Kumar and Sivakumar's K^(1/2) of two lists of the k highest, over its value for disjoint lists."""
    a, b = (sorted(range(len(scores)), key=lambda i, s=scores: (-s[i], i))[:k] for scores in (one, other))
    in_a, in_b = set(a), set(b)
    union = sorted(in_a | in_b)
    penalty = 0.0
    for x in range(len(union)):
        for y in range(x + 1, len(union)):
            i, j = union[x], union[y]
            known_a, known_b = ({i, j} & in_a, {i, j} & in_b)
            if len(known_a) == 2 and len(known_b) == 2:
                first, second = one[i] - one[j], other[i] - other[j]
                if first * second < 0:
                    penalty += 1
                elif (first == 0) != (second == 0):
                    penalty += 0.5
            elif len(known_a) == 2 and len(known_b) == 1:
                penalty += mixed(one, next(iter(known_b)), ({i, j} - known_b).pop())
            elif len(known_b) == 2 and len(known_a) == 1:
                penalty += mixed(other, next(iter(known_a)), ({i, j} - known_a).pop())
            elif len(known_a) == 2 or len(known_b) == 2:
                penalty += 0.5
            else:
                penalty += 1
    size = len(a)
    return penalty / (size**2 + size * (size - 1) / 2)


def mixed(scores: Numbers, shared: int, alone: int) -> float:
    """What it costs that a list has both items and the other only the shared one, which it so ranks first."""
    return 1.0 if scores[shared] < scores[alone] else 0.5 if scores[shared] == scores[alone] else 0.0


def student(freedom: int, share: float = 0.975) -> float:
    """The quantile of Student's distribution, by halving over its integrated density."""
    factor = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)

    def below(end: float, steps: int = 4000) -> float:
        places = (np.arange(steps) + 0.5) * end / steps
        return 0.5 + float((factor * (1 + places**2 / freedom) ** (-(freedom + 1) / 2)).sum()) * end / steps

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return low


def interval(values: Numbers) -> tuple[float, float]:
    """Student's 95 % interval of the mean of three values or more."""
    if len(values) < 3 or not all(map(isfinite, values)):
        return nan, nan
    middle = mean(values)
    spread = sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))
    reach = student(len(values) - 1) * spread / sqrt(len(values))
    return middle - reach, middle + reach


def wilson_low(hits: int, n: int) -> float:
    """The lower end of Wilson's 95 % interval of a share."""
    z = 1.959964
    share = hits / n
    return (share + z**2 / (2 * n) - z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))) / (1 + z**2 / n)


def binomial_tail(least: int, n: int, p: float) -> float:
    """P(X ≥ least) of n draws."""
    return min(1.0, sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1)))


def performance(probabilities: Sequence[Numbers], labels: Sequence[int]) -> dict[str, float]:
    """Scores of probabilities against labels."""
    classes, n = len(probabilities[0]), len(labels)
    predicted = [max(range(classes), key=lambda c, row=row: (row[c], -c)) for row in probabilities]
    hits = sum(p == y for p, y in zip(predicted, labels, strict=True))

    def f1(of: int) -> float:
        both = sum(p == of and y == of for p, y in zip(predicted, labels, strict=True))
        either = sum(p == of for p in predicted) + sum(y == of for y in labels)
        return 2 * both / either if either else 0.0

    def area(of: int) -> float:
        wins, pairs = 0.0, 0
        for row, y in zip(probabilities, labels, strict=True):
            for other_row, other in zip(probabilities, labels, strict=True):
                if y == of and other != of:
                    pairs += 1
                    wins += 1.0 if row[of] > other_row[of] else 0.5 if row[of] == other_row[of] else 0.0
        return wins / pairs

    macro = mean([f1(of) for of in sorted({*predicted, *labels})])
    against = [1] if classes == 2 else list(range(classes))
    guessed = sum(predicted.count(of) / n * list(labels).count(of) / n for of in set(labels))
    return {
        "accuracy": hits / n,
        "f1": f1(1) if classes == 2 else macro,
        "macro_f1": macro,
        "roc_auc": mean([area(of) for of in against]) if len(set(labels)) == classes else nan,
        "above_chance": (wilson_low(hits, n) - guessed) / (1 - guessed) if guessed < 1 else nan,
    }
