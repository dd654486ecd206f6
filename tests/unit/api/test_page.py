"""The code of docs/how-to/python.md runs."""

import re
from pathlib import Path

import matplotlib.figure
import pandas as pd

from ..models.test_causal import folder_of  # noqa: F401
from .conftest import TEXTS
from .test_trained import study  # noqa: F401

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "python.md"
BLOCKS = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", PAGE.read_text(encoding="utf-8"), re.M)


def test_the_code_of_the_page_runs(classifier, saved_classifier, folder_of, study, tmp_path, monkeypatch):  # noqa: F811
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-bert").symlink_to(saved_classifier)
    given = {
        "model": classifier[0],
        "tokenizer": classifier[1],
        "texts": TEXTS[2:4],
        "labels": [1, 0],
        "language_model": AutoModelForCausalLM.from_pretrained(folder_of("gpt2")),
        "its_tokenizer": AutoTokenizer.from_pretrained(folder_of("gpt2")),
        "training_texts": [f"{text} {i}" for i in range(5) for text in TEXTS],
        "training_labels": ["positive", "negative"] * 15,
    }
    code = [re.sub(r"^    ", "", block, flags=re.M) for block in BLOCKS if not block.startswith("    plumbline run")]
    assert len(code) == 10
    for block in code:
        if ".model(" in block:
            assert isinstance(given["results"].plot(), matplotlib.figure.Figure)
            monkeypatch.chdir(study[0].parent)
        elif "plumbline.load" in block:
            given["result"].save("results")
        exec(compile(block, str(PAGE), "exec"), given)
    assert isinstance(given["explained"].importances, pd.DataFrame) and (tmp_path / "my.yaml").is_file()
    assert given["result"].predictions["seed"].unique().tolist() == given["trained"].seeds
