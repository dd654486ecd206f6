"""The effect of the training precision on test F1 and on the agreement of attention with gradients."""

from collections.abc import Iterator

import numpy as np
from data import Task
from sizes import Sizes

from plumbline.attribution.attention import attention
from plumbline.attribution.gradient import gradient
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.agreement.rank_statistics import kendall_tau
from plumbline.training.performance import PERFORMANCE_METRICS
from plumbline.training.trainer import SeedSetup, split_rows, train_seeds


def lines(task: Task, device: str, sizes: Sizes) -> Iterator[str]:
    """One sentence per precision, over several seeds."""
    test, seeds = task.splits["test"], list(range(sizes.training.seeds))
    for precision in ("float32", "tf32", "bfloat16"):
        changed = task.changed(precision=precision)
        rows = split_rows(task.splits, task.classes, changed.training, device)
        f1, tau = [], []
        for seed, trained in zip(
            seeds,
            train_seeds(SeedSetup(task.build, rows, changed.training, record=device == "cuda"), seeds, Budget()),
            strict=True,
        ):
            model = task.build()
            model.load_state_dict(trained.state)
            evaluator = Evaluator(model.requires_grad_(False), seed, None, device)
            pairs = zip(attention(evaluator, test).scores, gradient(evaluator, test).scores, strict=True)
            f1.append(PERFORMANCE_METRICS["f1"](trained.probabilities["test"], test.label))
            tau.append(np.nanmean([kendall_tau(np.stack(pair)[None])[0][0, 0, 1] for pair in pairs]))
        f1_mean, tau_mean = (f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" for values in (f1, tau))
        scores = f"test F1 {f1_mean}, tau(attention, gradient) {tau_mean}"
        yield f"{precision}, {task.name}, bilstm-tanh, {device}: {scores}"
