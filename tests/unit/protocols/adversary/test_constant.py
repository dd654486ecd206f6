"""The best constant output and its distance from a base model."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from plumbline.protocols.adversary.constant import NO_OUTPUT, best_constant, constant_rows
from plumbline.protocols.adversary.table import output_distance

KEYS = {"dataset": "sst", "variant": "plain", "model": "average-tanh", "base_seed": 3}


def least_distance(outputs):
    """The least mean TVD of one output, as a linear program: t_ic ≥ |p_ic - q_c|."""
    count, classes = outputs.shape
    bounds, limits = [], []
    for (i, c), value in np.ndenumerate(outputs):
        for sign in (1, -1):
            row = np.zeros(classes + count * classes)
            row[c], row[classes + i * classes + c] = -sign, -1
            bounds.append(row)
            limits.append(-sign * value)
    cost = np.r_[np.zeros(classes), np.full(count * classes, 1 / (4 * count))]
    whole = [np.r_[np.ones(classes), np.zeros(count * classes)]]
    return linprog(cost, np.array(bounds), limits, whole, [1]).fun


@pytest.mark.parametrize(("count", "classes"), [(1, 3), (2, 2), (5, 2), (7, 4), (30, 3), (31, 5)])
@pytest.mark.parametrize("concentration", [0.2, 1, 5])
def test_no_other_constant_is_nearer(count, classes, concentration):
    outputs = np.random.default_rng(count).dirichlet(np.full(classes, concentration), count)
    constant = best_constant(outputs)
    assert constant.sum() == pytest.approx(1) and (constant >= 0).all()
    assert output_distance(outputs, constant).mean() == pytest.approx(least_distance(outputs), abs=1e-12)


def test_of_two_classes_it_is_the_median():
    outputs = np.array([[0.1, 0.9], [0.3, 0.7], [0.8, 0.2]])
    np.testing.assert_allclose(best_constant(outputs), [0.3, 0.7])


def test_equal_outputs_are_the_constant():
    outputs = np.tile([0.2, 0.5, 0.3 + 1e-7], (4, 1))
    np.testing.assert_allclose(best_constant(outputs), outputs[0], atol=1e-6)


def predictions(*rows):
    return pd.DataFrame(rows, columns=["seed", "split", "probabilities"])


def test_the_row_of_a_base_model_is_of_its_seed_and_of_test():
    frame = predictions(
        (3, "test", [0.2, 0.8]), (3, "test", [0.4, 0.6]), (3, "test", [0.9, 0.1]), (3, "dev", [1.0, 0.0]),
        (4, "test", [1.0, 0.0]),
    )  # fmt: skip
    # ½ |0.2 - 0.4| and ½ |0.9 - 0.4|, over three texts.
    expected = {**KEYS, "n": 3, "tvd": pytest.approx(0.35 / 3), "status": "ok", "reason": None}
    assert list(constant_rows(frame, KEYS)) == [expected]


@pytest.mark.parametrize("rows", [[(3, "test", [np.nan, np.nan])], [(3, "dev", [1.0, 0.0])]])
def test_a_base_model_without_outputs_is_undefined(rows):
    (row,) = constant_rows(predictions(*rows), KEYS)
    assert (row["status"], row["reason"]) == ("undefined", NO_OUTPUT) and np.isnan(row["tvd"])
