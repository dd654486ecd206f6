"""What the arithmetic of training does to scores: test F1 and the agreement of attention with gradients."""

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
        for seed, one in zip(
            seeds,
            train_seeds(SeedSetup(task.build, rows, changed.training, record=device == "cuda"), seeds, Budget()),
            strict=True,
        ):
            model = task.build()
            model.load_state_dict(one.state)
            asked = Evaluator(model.requires_grad_(False), seed, None, device)
            pairs = zip(attention(asked, test).scores, gradient(asked, test).scores, strict=True)
            f1.append(PERFORMANCE_METRICS["f1"](one.probabilities["test"], test.label))
            tau.append(np.nanmean([kendall_tau(np.stack(pair)[None])[0][0, 0, 1] for pair in pairs]))
        told = [f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" for values in (f1, tau)]
        yield f"{precision}, {task.name}, bilstm-tanh, {device}: test F1 {told[0]}, tau(attention, gradient) {told[1]}"
