"""Tests of the protocol my-protocol; run them with pytest."""

from pathlib import Path

import numpy as np

from plumbline import store
from plumbline.conformance import check, example_explained
from plumbline.protocols.schemas import SCORES
from plumbline.registry import Registry, load

FILE = Path(__file__).with_name("my_protocol.py")


def test_it_conforms() -> None:
    assert check("protocol", "my-protocol", Registry([FILE])) == []


def test_its_table_holds_the_mean_share_of_the_most_important_word(tmp_path: Path) -> None:
    explained, protocol = example_explained(tmp_path), load(f"{FILE}:MyProtocol")()
    store.write_table(tmp_path / "scores.parquet", SCORES, protocol.score(explained))
    table = protocol.summarise(store.read_table(tmp_path / "scores.parquet", SCORES))
    means = table.set_index(["seed", "measure"])["mean"]
    for seed in explained.by_seed():
        for measure, texts in seed.scores.items():
            shares = [max(abs(text)) / sum(abs(text)) for text in texts]
            assert np.isclose(means[seed.seed, measure], np.mean(shares), rtol=1e-5)
