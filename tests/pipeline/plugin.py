"""A plug-in file: a dataset, a measure and a protocol, each in a few lines."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from plumbline import store
from plumbline.attribution.importances import Importances
from plumbline.data.corpus import Corpus, Example
from plumbline.registry import dataset, measure, protocol


@dataset("echo", source="nowhere, it is generated", licence="MIT", preparation={"embedding": {"dimensions": 8}})
def echo(raw: Path, seed: int, *, size: int = 40) -> Corpus:
    """Texts whose label is their last word."""
    random = np.random.default_rng(seed)
    examples = []
    for split, count in {"train": size, "dev": 20, "test": 20}.items():
        for i in range(count):
            words = random.choice(["red", "green", "blue"], size=random.integers(2, 7)).tolist()
            examples.append(Example(split, i % 2, [*words, ["no", "yes"][i % 2]]))
    return Corpus(examples, ["no", "yes"])


@measure("position", equation="t / n", range=[0, 1])
def position(evaluator, instances):
    """How late in the text a word comes."""
    scores = [np.empty(0)] * len(instances)

    def work(index, batch):
        # As if a pass of more tokens did not fit into memory.
        if batch.ids.numel() > 100:
            raise torch.OutOfMemoryError("out of memory")
        for i in index:
            scores[i] = np.linspace(0, 1, instances.maskable[i].sum(), dtype=np.float32)

    evaluator.each(instances, work)
    return Importances(scores)


TABLE = store.declare(
    "concentration",
    1,
    {**store.CELL, "seed": pa.int64(), "measure_a": store.WORD, "mean": pa.float64()},
    required=["dataset", "model", "seed", "measure_a"],
)


@protocol("concentration", equation="max_t s_t / Σ_t s_t")
class Concentration:
    """The share of the most important word."""

    table = TABLE

    def score(self, explained):
        """One row per seed, instance and measure."""
        rows = []
        for seed in explained.by_seed():
            for name, scores in sorted(seed.scores.items()):
                for i, values in enumerate(scores):
                    rows.append(
                        {
                            "seed": seed.seed, "split": seed.split[i], "instance": seed.instance[i],
                            "predicted_class": seed.predicted_class[i], "measure_a": name, "measure_b": None,
                            "statistic": "concentration", "value": values.max() / max(values.sum(), 1e-9),
                            "p_value": None, "length": len(values), "status": "ok", "reason": None,
                        }
                    )  # fmt: skip
        return pd.DataFrame(rows).to_dict("list")

    def summarise(self, scores):
        """Mean over instances."""
        frame = scores.to_pandas()
        return frame.groupby(["seed", "measure_a"], observed=True)["value"].mean().rename("mean").reset_index()
