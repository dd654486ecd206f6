"""Bad input ends in one clear message and a failing exit, before any training where possible.

A row of the table is one fault: what is done, and the message. Faults of the config are reported by the functions that
the Snakefile calls, here in the test's own process, and some of them by Snakemake itself to show that it prints the
same. Faults that only a job can find come from a few runs of Snakemake with many broken jobs each, which `keep-going`
runs all.
"""

import copy
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from plumbline.cli import main
from plumbline.errors import PlumblineError
from tests.parsed import parsed

from .conftest import CONFIG, copy_project, run_snakemake, write_config

pytestmark = pytest.mark.pipeline
# A long name, and one that is longer than any file's may be.
LONG, ENDLESS = "a" * 65, "a" * 300
UNSAFE = "a name may contain only letters from a to z, digits, '-', '_' and '.'"
TAKEN = "is reserved; choose another name."


@dataclass
class Study:
    """What a fault may break: a folder with the user's files, and the config."""

    folder: Path
    config: dict[str, Any]

    def put(self, value: Any, *keys: Any) -> None:
        """Set the value under these keys."""
        at = self.config
        for key in keys[:-1]:
            at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
        at[keys[-1]] = value

    def plugin(self, text: str) -> None:
        """Add a plug-in file."""
        (self.folder / "own.py").write_text(text)
        self.config["plugins"] = ["plugin.py", "own.py"]

    def bert(self, change: Callable[[Path], object]) -> None:
        """Add a checkpoint that is broken in some way."""
        save_bert(self.folder / "bert")
        change(self.folder / "bert")
        self.put({"checkpoint": "bert"}, "models", "my-bert")


Edit = Callable[[Study], object]


def own_table(text: str | bytes = "body,stars\ngood,1\nbad,0\n", **options: Any) -> Edit:
    """Add a table of the user's own."""
    entry = {"kind": "table", "path": "own.csv", "text": "body", "label": "stars", **options}
    return both(written("own.csv", text), put(entry, "datasets", "own"))


def save_bert(folder: Path) -> None:
    """A checkpoint as a job would read it, but for its weights, of which there is one and of a wrong shape; made by
    hand, because transformers takes seconds to import."""
    subwords = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "green", "blue", "no", "yes"]
    tokenizer = Tokenizer(
        models.WordPiece({subword: number for number, subword in enumerate(subwords)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(subwords[:5])
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {f"{subword[1:-1].lower()}_token": subword for subword in subwords[:5]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **named}))
    config = {"model_type": "bert", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1}
    sizes = {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps({**config, **sizes}))
    save_file({"embeddings.word_embeddings.weight": np.zeros((10, 4), np.float32)}, folder / "model.safetensors")


def put(value: Any, *keys: Any) -> Edit:
    return lambda study: study.put(copy.deepcopy(value), *keys)


def drop(*keys: str) -> Edit:
    def edit(study: Study) -> None:
        at = study.config
        for key in keys[:-1]:
            at = at[key]
        del at[keys[-1]]

    return edit


def plugin(text: str) -> Edit:
    return lambda study: study.plugin(text)


def bert(change: Callable[[Path], object]) -> Edit:
    return lambda study: study.bert(change)


def both(*edits: Edit) -> Edit:
    return lambda study: [edit(study) for edit in edits]


def write(name: str, text: str | bytes) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return edit


def written(name: str, text: str | bytes) -> Edit:
    return lambda study: write(name, text)(study.folder)


def cut(name: str, size: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def changed(name: str, **values: Any) -> Callable[[Path], object]:
    """Set keys of a JSON file."""
    return lambda folder: (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | values))


def removed(*patterns: str) -> Callable[[Path], object]:
    return lambda folder: [path.unlink() for pattern in patterns for path in folder.glob(pattern)]


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def imported(**columns: Any) -> Edit:
    """Importances from a file with these columns."""

    def edit(study: Study) -> None:
        pd.DataFrame(columns).to_parquet(study.folder / "theirs.parquet")
        study.put({"kind": "imported", "path": "theirs.parquet"}, "measures", "theirs")

    return edit


def measures(study: Study) -> None:
    """The list of measures as a section."""
    study.config["measures"] = {name: {} for name in CONFIG["measures"]}


def measure(name: str, **entry: Any) -> Edit:
    return both(measures, put(entry, "measures", name))


def manipulation(name: str = "articles", **entry: Any) -> Edit:
    return both(put({}, "datasets", "reviews"), put({"datasets": ["reviews"], **entry}, "manipulations", name))


def roar(**entry: Any) -> Edit:
    return both(measure("random"), put({"models": ["average-tanh"], **entry}, "roar", "relative"))


MEASURE = (
    'from plumbline.registry import measure\n@measure("own"{})\ndef own(evaluator, instances{}):\n    """Own."""\n'
)

# What is done, and the message before any job.
CONFIG_FAULTS: dict[str, tuple[Edit, str]] = {
    # The whole config.
    "unknown key": (put(3, "seed"), "`seed` (set to 3) is not a known key; did you mean 'seeds'?"),
    "key that is a number": (put({}, 3), "The config has the key 3, which is not text; put it in quotation marks."),
    "key that is nothing": (put({}, "models", None), "`models` has the key None, which is not text"),
    "key that is yes": (put({}, "datasets", True), "`datasets` has the key True, which is not text"),
    "number that is none": (
        put(float("nan"), "models", "average-tanh", "training", "learning_rate"),
        "`models.average-tanh.training.learning_rate` is nan; write a finite number.",
    ),
    "number without end": (
        put(float("inf"), "models", "average-tanh", "training", "weight_decay"),
        "`models.average-tanh.training.weight_decay` is inf; write a finite number.",
    ),
    "null byte": (put("a\0", "raw"), "`raw` contains the unprintable character '\\x00'; remove it."),
    "line break in a name": (put({}, "datasets", "a\nb"), "A key of `datasets` contains a line break; remove it."),
    "title that is a number": (put(3, "name"), "`name` is 3: it must be text."),
    "empty title": (put("", "name"), "`name` is '': it must not be empty."),
    "raw that is a list": (put(["raw"], "raw"), "`raw` is ['raw']: it must be text."),
    "raw that is missing": (
        both(
            put("elsewhere", "raw"),
            put({"embedding": {"kind": "file", "path": "v.txt"}}, "datasets", "echo", "preparation"),
        ),
        "not in the folder 'elsewhere'",
    ),
    "raw with an endless name": (put(ENDLESS, "raw"), "a folder name may have at most 255 bytes."),
    "sample of nothing": (put(0, "sample"), "`sample` is 0: input should be greater than or equal to 1."),
    "sample that is text": (put("all", "sample"), "`sample` is 'all': it must be a whole number."),
    "chance above certainty": (
        put(1.5, "least_above_chance"),
        "`least_above_chance` is 1.5: input should be less than",
    ),
    "split that is none": (put(["tset"], "explain"), "`explain.0` is 'tset'; did you mean 'test'?"),
    "nothing explained": (put([], "explain"), "scores explanations, but `explain` lists no split; add one."),
    # Seeds.
    "repeated seeds": (put(["0-1", "1"], "seeds"), "seed 1 occurs twice"),
    "seeds backwards": (put(["3-1"], "seeds"), "'3-1' is not a block of seeds; write '0-4' or '10,50,257'."),
    "seeds below zero": (put([-1], "seeds"), "'-1' is not a block of seeds"),
    "seeds in words": (put(["one"], "seeds"), "'one' is not a block of seeds"),
    "seeds with a gap": (put(["1,,2"], "seeds"), "'1,,2' is not a block of seeds"),
    "seeds in other digits": (put(["1²"], "seeds"), "'1²' is not a block of seeds"),
    "no seeds": (put([], "seeds"), "`seeds` is []: it must not be empty."),
    "seeds nested": (put([["0"]], "seeds"), "is not a block of seeds"),
    "block too long for a folder": (
        put([",".join(map(str, range(90)))], "seeds"),
        "but may have at most 100; write '0-4' for consecutive seeds, or split it into several blocks.",
    ),
    "block of a billion seeds": (put(["0-999999999"], "seeds"), "holds 1000000000 seeds, but may hold at most 10000;"),
    "seed beyond the generators": (put(["9" * 20], "seeds"), "the largest is 4294967295."),
    "seeds of a model": (put(["2-1"], "models", "average-tanh", "seeds"), "`models.average-tanh.seeds` is ['2-1']"),
    # Names.
    "reserved dataset": (put({"kind": "echo"}, "datasets", "plain"), f"`datasets.plain`: 'plain' {TAKEN}"),
    "reserved model": (put({"kind": "bag-of-words"}, "models", "subwords"), f"`models.subwords`: 'subwords' {TAKEN}"),
    "reserved measure": (measure("unmasked", kind="gradient"), f"`measures.unmasked`: 'unmasked' {TAKEN}"),
    "reserved protocol": (put({"kind": "erasure"}, "protocols", "trace"), f"`protocols.trace`: 'trace' {TAKEN}"),
    "reserved adversary": (
        put({"objective": "attefa"}, "adversaries", "train"),
        f"`adversaries.train`: 'train' {TAKEN}",
    ),
    "reserved manipulation": (
        manipulation("positions", kind="articles"),
        f"`manipulations.positions`: 'positions' {TAKEN}",
    ),
    "long name": (put({"kind": "echo"}, "datasets", LONG), "a name may have at most 64 characters, not 65."),
    "endless name": (put({"kind": "bag-of-words"}, "models", ENDLESS), "at most 64 characters, not 300."),
    "name with a dollar": (put({"kind": "echo"}, "datasets", "a$b"), f"`datasets.a$b`: {UNSAFE}"),
    "name with a slash": (put({"kind": "echo"}, "datasets", "a/b"), f"`datasets.a/b`: {UNSAFE}"),
    "name with a space": (measure("a b", kind="gradient"), f"`measures.a b`: {UNSAFE}"),
    "name beyond ASCII": (put({"kind": "erasure"}, "protocols", "böse"), f"`protocols.böse`: {UNSAFE}"),
    "name that begins with a dot": (put({"kind": "bag-of-words"}, "models", ".a"), f"`models..a`: {UNSAFE}"),
    "name that ends with a dot": (put({"kind": "bag-of-words"}, "models", "a."), f"`models.a.`: {UNSAFE}"),
    "name of nothing": (put({"kind": "echo"}, "datasets", ""), f"`datasets.`: {UNSAFE}"),
    # Datasets.
    "no datasets": (put(None, "datasets"), "`datasets` is None: a study needs at least one entry."),
    "datasets of a number": (put(3, "datasets"), "`datasets` is 3: it must be keys and values."),
    "datasets as a list of sections": (
        put([{"echo": {"size": 3}}], "datasets"),
        "a list may contain only names, and {'echo': {'size': 3}} is not a name; write `name: {...}` without dashes.",
    ),
    "misspelt dataset": (
        put({}, "datasets", "mock-22"),
        "`datasets.mock-22`: There is no dataset 'mock-22'; did you mean 'mock-2'?",
    ),
    "misspelt kind of a dataset": (
        put({"kind": "ecko"}, "datasets", "mine"),
        "`datasets.mine.kind`: There is no dataset",
    ),
    "dataset that is a number": (put(3, "datasets", "echo"), "`datasets.echo` is 3: it must be keys and values."),
    "unknown option of a dataset": (
        put({"sise": 3}, "datasets", "echo"),
        "`datasets.echo.sise` (set to 3) is not a known key; did you mean 'size'?",
    ),
    "wrong option of a dataset": (put({"size": "big"}, "datasets", "echo"), "`datasets.echo.size` is 'big'"),
    "unknown key of a preparation": (
        put({"longer": 3}, "datasets", "echo", "preparation"),
        "`datasets.echo.preparation.longer` (set to 3) is not a known key; did you mean 'longer_than'?",
    ),
    "preparation that is a number": (put(3, "datasets", "echo", "preparation"), "`datasets.echo.preparation` is 3"),
    "frequency below one": (
        put({"minimum_document_frequency": 0}, "datasets", "echo", "preparation"),
        "`datasets.echo.preparation.minimum_document_frequency` is 0: input should be greater than or equal to 1.",
    ),
    "unknown vectors": (
        put({"embedding": {"kind": "glove"}}, "datasets", "echo", "preparation"),
        "`datasets.echo.preparation.embedding.kind` is 'glove'",
    ),
    "vectors without numbers": (
        put({"embedding": {"dimensions": 0}}, "datasets", "echo", "preparation"),
        "`datasets.echo.preparation.embedding.dimensions` is 0: input should be greater than 0.",
    ),
    "unknown variant": (
        put({"variants": ["articels"]}, "datasets", "echo"),
        "`datasets.echo.variants` names 'articels'",
    ),
    "dataset that no model reads": (
        put({}, "datasets", "textures"),
        "`datasets.textures` cannot train any model of this study",
    ),
    "missing raw file": (
        put({"words": "opinion-lexicon"}, "datasets", "mock-1"),
        "Dataset 'mock-1' needs the files 'opinion_lexicon/positive-words.txt'",
    ),
    "raw file that is a folder": (
        both(
            put({"words": "opinion-lexicon"}, "datasets", "mock-1"),
            written("raw/opinion_lexicon/positive-words.txt/x", ""),
            written("raw/opinion_lexicon/negative-words.txt", ""),
        ),
        "but in 'raw' that is a folder: move the folder away and put the file there.",
    ),
    "missing vectors": (
        put({"embedding": {"kind": "file", "path": "none.txt"}}, "datasets", "echo", "preparation"),
        "`datasets.echo.preparation.embedding`: ",
    ),
    # Manipulations.
    "unknown manipulation": (
        manipulation("artikles"),
        "`manipulations.artikles`: There is no manipulation 'artikles'; did you mean 'articles'?",
    ),
    "unknown option of a manipulation": (
        manipulation(rate=3),
        "`manipulations.articles.rate` is not a known key;",
    ),
    "manipulation of images": (
        manipulation("watermark"),
        "`manipulations.watermark.datasets`: 'reviews' consists of texts, which 'watermark' cannot change; remove it "
        "from the list.",
    ),
    "probability above one": (manipulation(r=2), "it must be a probability or a list of distinct probabilities."),
    "probability in words": (manipulation(r="often"), "`manipulations.articles.r` is 'often'"),
    "matrix that is not square": (
        manipulation(matrix=[[1, 0]]),
        "it must be a square matrix whose rows are probabilities that sum to 1.",
    ),
    "matrix with an empty row": (
        manipulation(matrix=[[]]),
        "it must be a square matrix whose rows are probabilities that sum to 1.",
    ),
    "no draws": (
        manipulation(draws=0),
        "`manipulations.articles.draws` is 0: input should be greater than or equal to 1.",
    ),
    "a billion draws": (manipulation(draws=10**9), "`manipulations.articles.draws` is 1000000000"),
    "levels in words": (
        both(put({}, "datasets", "textures"), put({"font": {"levels": ["big"]}}, "manipulations", "watermark")),
        "`manipulations.watermark.font.levels` holds 'big'; levels must be numbers.",
    ),
    "bounds that fall": (
        both(put({}, "datasets", "textures"), put({"font": {"between": [9, 3]}}, "manipulations", "watermark")),
        "write a value, {between: [low, high]} or {levels: [...]}.",
    ),
    # Models.
    "no models": (drop("models"), "`models` is missing; add it, because every study needs it."),
    "empty models": (put({}, "models"), "`models` is {}: a study needs at least one entry."),
    "misspelt model": (put({}, "models", "bilstm-tan"), "There is no model 'bilstm-tan'; did you mean 'bilstm-tanh'?"),
    "unknown option of a model": (
        put({"hiden": 3}, "models", "average-tanh"),
        "`models.average-tanh.hiden` (set to 3) is not a known key; did you mean 'hidden'?",
    ),
    "wrong option of a model": (
        put("big", "models", "average-tanh", "hidden"),
        "`models.average-tanh.hidden` is 'big'",
    ),
    "model of a number": (put(8, "models", "average-tanh"), "`models.average-tanh` is 8: it must be keys and values."),
    "unknown key of a training": (
        put({"epoch": 3}, "models", "average-tanh", "training"),
        "`models.average-tanh.training.epoch` (set to 3) is not a known key; did you mean 'epochs'?",
    ),
    "no epochs": (
        put({"epochs": 0}, "models", "average-tanh", "training"),
        "training.epochs` is 0: it must be 1 or more",
    ),
    "epochs below zero": (put({"epochs": -1}, "models", "average-tanh", "training"), "training.epochs` is -1"),
    "batches of nothing": (put({"batch_size": 0}, "models", "average-tanh", "training"), "training.batch_size` is 0"),
    "no step": (put({"learning_rate": 0}, "models", "average-tanh", "training"), "training.learning_rate` is 0"),
    "unknown optimiser": (
        put({"optimiser": "sgd"}, "models", "average-tanh", "training"),
        "training.optimiser` is 'sgd'",
    ),
    "warm-up without a schedule": (
        put({"warmup": 0.1}, "models", "average-tanh", "training"),
        "`warmup` is 0.1, but `schedule` is constant; set `schedule` to linear or `warmup` to 0.",
    ),
    "unknown dataset of a model": (
        put(["mock-22"], "models", "average-tanh", "datasets"),
        "`models.average-tanh.datasets` names 'mock-22', which is not defined in the study; did you mean 'mock-2'?",
    ),
    "unknown measure of a model": (
        put(["gradent"], "models", "average-tanh", "measures"),
        "`models.average-tanh.measures` names 'gradent', which is not defined in the study; did you mean 'gradient'?",
    ),
    "impossible measure": (
        put(["attention"], "models", "bag-of-words", "measures"),
        "measure 'attention' needs attention, which model 'bag-of-words' does not provide",
    ),
    "measure that a transformer cannot have": (
        both(put({"minilm": {}}, "models"), put({}, "adversaries"), put(["gradient"], "measures")),
        "(supported measures: ",
    ),
    "own attention": (
        put("given", "models", "given", "attention_of"),
        "`models.given.attention_of` names 'given'; a model cannot take its attention from itself.",
    ),
    "unknown attention": (
        put("nobody", "models", "given", "attention_of"),
        "`models.given.attention_of` names 'nobody'",
    ),
    # Adversaries.
    "unknown key of an adversary": (
        put(3, "adversaries", "attefa", "strenght"),
        "`adversaries.attefa.strenght` (set to 3) is not a known key; did you mean 'strength'?",
    ),
    "unknown objective": (
        put({"objective": "atefa"}, "adversaries", "mine"),
        "`adversaries.mine.objective` is 'atefa', which does not exist; did you mean 'attefa'?",
    ),
    "adversary of a model without attention": (
        put(["bag-of-words"], "adversaries", "attefa", "of"),
        "`adversaries.attefa.of`: model 'bag-of-words' provides no attention",
    ),
    "adversary of nobody": (put(["bilstm"], "adversaries", "attefa", "of"), "`adversaries.attefa.of` names 'bilstm'"),
    "strength below zero": (
        put([-1], "adversaries", "wiegreffe-pinter", "strength"),
        "`adversaries.wiegreffe-pinter.strength` is [-1]: it must contain different numbers, each 0 or more.",
    ),
    "strength of attefa": (
        put([1], "adversaries", "attefa", "strength"),
        "the objective 'attefa' has no strength; remove it.",
    ),
    "seed of no base": (
        put(7, "adversaries", "attefa", "base_seed"),
        "`adversaries.attefa.base_seed` is 7; choose one of the base model's seeds",
    ),
    "adversaries of a number": (put(3, "adversaries"), "`adversaries` is 3: it must be keys and values."),
    # Masking.
    "unknown unit": (both(measure("random"), put({}, "roar", "percent")), "`roar.percent` is 'percent'"),
    "unknown key of masking": (roar(level=[50]), "`roar.relative.level` (set to [50]) is not a known key"),
    "levels above a hundred": (
        roar(levels=[50, 120]),
        "`roar.relative.levels` contains 120; a percentage is at most 100.",
    ),
    "levels that fall": (roar(levels=[50, 10]), "`levels` must be increasing whole numbers of 1 or more"),
    "level of a half": (roar(levels=[0.5]), "`roar.relative.levels.0` is 0.5"),
    "masking without random": (put({"levels": [50]}, "roar", "relative"), "add `random` to `measures`."),
    "masking by an unknown measure": (roar(measures=["gradent"]), "`roar.relative.measures` names 'gradent'"),
    # Measures.
    "no measures": (
        put([], "measures"),
        "`protocols.agreement` cannot score any model of this study: protocol 'agreement' compares at least 2",
    ),
    "misspelt measure": (
        measure("gradent"),
        "`measures.gradent`: There is no measure 'gradent'; did you mean 'gradient'?",
    ),
    "unknown option of a measure": (measure("lime", sample=3), "`measures.lime.sample` (set to 3) is not a known key"),
    "option of a measure below its limit": (measure("lime", samples=0), "`measures.lime.samples` is 0; it must be"),
    "measure that is text": (measure("lime", samples="many"), "`measures.lime.samples` is 'many'"),
    "unknown method of Captum": (
        measure("mine", kind="captum", method="Salience"),
        "`measures.mine.method` is 'Salience', which is not a method of captum.attr for a model's input;",
    ),
    "no method of Captum": (measure("mine", kind="captum"), "`measures.mine.method` is missing"),
    "method of Captum inside of a model": (
        measure("mine", kind="captum", method="LayerDeepLift"),
        "which attributes to an internal layer; use 'DeepLift', which attributes to the input.",
    ),
    "argument of Captum": (
        measure("mine", kind="captum", method="Lime", arguments={"n_sample": 3}),
        "`measures.mine.arguments` has 'n_sample', which 'Lime' does not take; did you mean 'n_samples'?",
    ),
    "method of a missing file": (
        measure("mine", kind="captum", method="gone.py:Mine"),
        "`measures.mine.method`: there is no file 'gone.py'.",
    ),
    "method of a missing module": (
        measure("mine", kind="captum", method="gone.Mine"),
        "`measures.mine.method`: there is no module 'gone', and no file 'gone.py'",
    ),
    "importances of a missing file": (
        measure("theirs", kind="imported", path="gone.parquet"),
        "`measures.theirs.path`: there is no file 'gone.parquet'.",
    ),
    "importances without a file": (measure("theirs", kind="imported"), "`measures.theirs.path` is missing"),
    "importances that are not Parquet": (
        both(written("theirs.parquet", "no table"), measure("theirs", kind="imported", path="theirs.parquet")),
        "`measures.theirs.path`: the file 'theirs.parquet' is not Parquet",
    ),
    "importances without scores": (
        both(measures, imported(split=["test"], instance=[0])),
        "`measures.theirs.path`: the file 'theirs.parquet' has no column 'scores'; it must have split,",
    ),
    # Protocols.
    "misspelt protocol": (
        put({}, "protocols", "agrement"),
        "There is no protocol 'agrement'; did you mean 'agreement'?",
    ),
    "protocols of a number": (put(3, "protocols"), "`protocols` is 3: it must be keys and values."),
    "unknown option of a protocol": (put(3, "protocols", "erasure", "draw"), "`protocols.erasure.draw` (set to 3)"),
    "unknown statistic": (
        put(["kendal"], "protocols", "agreement", "statistics"),
        "`protocols.agreement.statistics.0` is 'kendal'; did you mean 'kendall'?",
    ),
    "protocol of an unknown dataset": (
        put(["mock-22"], "protocols", "erasure", "datasets"),
        "`protocols.erasure.datasets` names 'mock-22', which is not defined in the study; did you mean 'mock-2'?",
    ),
    "protocol that can score nothing": (
        put({}, "protocols", "ground_truth"),
        "`protocols.ground_truth` cannot score any model of this study",
    ),
    # How work is cut, and the report.
    "unknown key of compute": (
        put({"tokens": 3}, "compute"),
        "`compute.tokens` (set to 3) is not a known key",
    ),
    "budget of nothing": (
        put({"token_budget": 0}, "compute"),
        "must be 'auto' or a whole number of tokens, 1 or more.",
    ),
    "no slots": (put({"slots_per_gpu": 0}, "compute"), "`compute.slots_per_gpu` is 0: input should be greater than or"),
    "flag in words": (put({"keep_variants": "perhaps"}, "compute"), "`compute.keep_variants` is 'perhaps'"),
    "compute of a number": (put(3, "compute"), "`compute` is 3: it must be keys and values."),
    "unknown key of the report": (put({"example": 3}, "report"), "`report.example` (set to 3)"),
    "examples below zero": (put({"examples": -1}, "report"), "must be 'all' or a whole number, 0 or more."),
    # Plug-ins.
    "plug-ins as text": (put("plugin.py", "plugins"), "`plugins` is 'plugin.py': it must be a list."),
    "plug-in that is a number": (put([3], "plugins"), "`plugins.0` is 3: it must be text."),
    "missing plug-in": (put(["gone.py"], "plugins"), "The plug-in file 'gone.py' does not exist."),
    "plug-in that is a folder": (put(["raw"], "plugins"), "The plug-in file 'raw' is a folder; name a Python file."),
    "plug-in that is not Python": (plugin("def x(:"), "The plug-in file 'own.py' is not valid Python: "),
    "plug-in that is not text": (
        both(written("own.py", b"\xff\xfe\x00"), put(["own.py"], "plugins")),
        "'own.py' is not a Python file: it is not UTF-8 text.",
    ),
    "plug-in with a null byte": (plugin("x = '\0'"), "The plug-in file 'own.py' is not valid Python: "),
    "plug-in with an endless name": (put([ENDLESS], "plugins"), "File name too long"),
    "declaration without a name": (
        plugin("from plumbline.registry import measure\n@measure()\ndef own(): ...\n"),
        'must be declared with its name first, such as @measure("my-measure").',
    ),
    "declaration that is not a literal": (
        plugin(MEASURE.format(", equation='a' + 'b'", "")),
        "`equation` is `'a' + 'b'`, which is not a literal; declarations are read without running the file, so write "
        "the value itself: 'ab'.",
    ),
    "declaration of an unknown fact": (
        plugin(MEASURE.format(", need=[]", "")),
        "states 'need', which is not a known argument; did you mean 'needs'?",
    ),
    "fact of a wrong type": (plugin(MEASURE.format(", cheap=1", "")), "states cheap=1; it must be True or False."),
    "needs as text": (
        plugin(MEASURE.format(", needs='gradient'", "")),
        "states needs='gradient'; it must be a list, such as ['gradient'].",
    ),
    "limits as a list": (
        plugin(MEASURE.format(", limits=[1, 2]", "")),
        "states limits=[1, 2]; it must be keys and values",
    ),
    "option without a default": (
        plugin(MEASURE.format("", ", *, power: int")),
        "own.py, line 2: the measure 'own': option 'power' needs a type and a default.",
    ),
    "option of a strange type": (
        plugin(MEASURE.format("", ", *, power: set = ()")),
        "option 'power: set' must be typed with Literal, int,",
    ),
    "declared twice": (
        plugin(MEASURE.format("", "") + MEASURE.format("", "")),
        "The measure 'own' is declared twice, in 'own.py' and 'own.py'; rename one.",
    ),
    "declared as plumbline's own": (
        plugin(MEASURE.format("", "").replace('"own"', '"gradient"')),
        "The measure 'gradient' is declared twice, in 'gradient.py' and 'own.py'; rename one.",
    ),
    # Checkpoints.
    "checkpoint that is missing": (
        put({"checkpoint": "./gone"}, "models", "my-bert"),
        "`models.my-bert.checkpoint`: there is no folder './gone'; give the folder of a saved checkpoint.",
    ),
    "checkpoint of nobody": (
        put({"checkpoint": "~nobody/x"}, "models", "my-bert"),
        "`models.my-bert.checkpoint`: there is no folder '~nobody/x'; give the folder of a saved checkpoint.",
    ),
    "checkpoint without a name": (
        put({"kind": "pretrained", "checkpoint": ""}, "models", "my-bert"),
        "`models.my-bert.checkpoint` is missing; model 'pretrained' needs it.",
    ),
    "checkpoint that is a number": (put({"checkpoint": 3}, "models", "my-bert"), "`models.my-bert.checkpoint` is 3"),
    "hub name of odd signs": (
        put({"checkpoint": "my bert!"}, "models", "my-bert"),
        "or a valid name of a model on the Hugging Face Hub; write `owner/model`.",
    ),
    "hub name of three parts": (put({"checkpoint": "a/b/c"}, "models", "my-bert"), "there is no folder 'a/b/c';"),
    "hub name too long": (
        put({"checkpoint": f"a/{LONG}{LONG}"}, "models", "my-bert"),
        "or a valid name of a model on the Hugging Face Hub",
    ),
    "endless hub name": (
        put({"checkpoint": ENDLESS}, "models", "my-bert"),
        "or a valid name of a model on the Hugging Face Hub",
    ),
    "checkpoint without config.json": (
        bert(removed("config.json")),
        "the folder 'bert' has no config.json; save the model",
    ),
    "checkpoint with a broken config.json": (
        bert(write("config.json", "{")),
        "the config.json of 'bert' is not the config of a model.",
    ),
    "config.json that is not text": (
        bert(write("config.json", b"\xff")),
        "the config.json of 'bert' is not the config of a model.",
    ),
    "checkpoint of a language model": (
        bert(changed("config.json", architectures=["GPT2LMHeadModel"])),
        "'bert' is a causal language model (GPT2LMHeadModel); write `kind: causal` with a `prompt` and `answers`.",
    ),
    "checkpoint with a decoder": (
        bert(changed("config.json", model_type="t5", is_encoder_decoder=True)),
        "'bert' has the type 't5', an encoder with a decoder, which is not supported; use an encoder or a causal",
    ),
    "checkpoint of a type that is no text": (
        bert(changed("config.json", model_type=[])),
        "the config.json of 'bert' does not name the type of its model (`model_type`).",
    ),
    "language model without a prompt": (
        put({"kind": "causal", "checkpoint": "my/gpt"}, "models", "my-gpt"),
        "`models.my-gpt.prompt` is missing; model 'causal' needs it.",
    ),
    "prompt without a text": (
        put({"kind": "causal", "checkpoint": "my/gpt", "prompt": "Sentiment:"}, "models", "my-gpt"),
        "`prompt` is 'Sentiment:'; for single texts it must contain {text}, once each, and no other placeholder.",
    ),
    "checkpoint without a tokenizer": (bert(removed("*token*", "vocab*")), "the folder 'bert' has no tokenizer"),
    "broken tokenizer.json": (bert(write("tokenizer.json", "{")), "the tokenizer.json of 'bert' is damaged; save it"),
    "tokenizer.json of another form": (bert(write("tokenizer.json", "{}")), "the tokenizer.json of 'bert' is damaged"),
    "more tokens than vectors": (
        bert(changed("config.json", vocab_size=5)),
        "but the model has only 5 embeddings; save the pair that was trained together",
    ),
    "checkpoint without weights": (bert(removed("*.safetensors")), "the folder 'bert' has no weights (such as model"),
    "pickled weights": (
        bert(pickled),
        "the weights of 'bert' are pickled ('pytorch_model.bin') and not loaded, because a pickle can run any code",
    ),
    "weights cut off": (bert(cut("model.safetensors", -10)), "model.safetensors' is truncated: it has "),
    "weights of nothing": (
        bert(write("model.safetensors", b"")),
        "is truncated or not a safetensors file; copy it",
    ),
    "table without a column": (
        own_table(label="star"),
        "`datasets.own.label`: 'own.csv' has no column 'star'; did you mean 'stars'? Its columns are body, stars.",
    ),
    "missing table": (own_table(path="gone.csv"), "`datasets.own.path`: there is no 'gone.csv' in the working folder"),
    "table of another encoding": (
        own_table("naïveté,stars\n".encode("latin-1")),
        "`datasets.own.text`: 'own.csv', line 1 is not utf-8 text: write its `encoding:`, such as cp1252",
    ),
    "spreadsheet": (own_table(path="own.xlsx"), "'own.xlsx', which does not end in one of .csv, .tsv"),
    "split by column and by share": (
        own_table(split="part", shares={"train": 0.8, "dev": 0.1, "test": 0.1}),
        "`datasets.own.split` names a column and `datasets.own.shares` draws all splits; remove one.",
    ),
    "hub without a revision": (
        put({"kind": "hub", "name": "a/b", "text": "t", "label": "l"}, "datasets", "own"),
        "`datasets.own.revision` is missing; write the commit hash of 'a/b'",
    ),
}
# One or two faults of each section that are also tried with Snakemake.
SHOWN = [
    "unknown key", "key that is a number", "raw that is a list", "block too long for a folder", "misspelt dataset",
    "missing raw file", "missing table", "bounds that fall", "measure that a transformer cannot have",
    "strength below zero", "masking without random", "unknown method of Captum", "unknown statistic",
    "budget of nothing", "examples below zero", "plug-in that is not Python",
]  # fmt: skip


@pytest.fixture
def study(tmp_path, monkeypatch) -> Study:
    """The user's part of the tiny study, with a result of an earlier run."""
    folder = tmp_path / "fresh"
    write("raw/vader/vader_lexicon.txt", "")(folder)
    write("raw/vader/movieReviewSnippets_GroundTruth.txt", "")(folder)
    write("results/data/kept.parquet", "kept")(folder)
    shutil.copy2(Path(__file__).with_name("plugin.py"), folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.setenv("PLUMBLINE_OFFLINE", "1")
    return Study(folder, copy.deepcopy(CONFIG))


def results(folder: Path) -> dict[Path, bytes]:
    """Every file of the results but logs."""
    found = (folder / "results").rglob("*")
    return {path: path.read_bytes() for path in found if path.is_file() and "logs" not in path.parts}


def one_sentence(output: str, sentence: str, prefix: str = "") -> None:
    """Exactly one line has the message, and there is no traceback."""
    assert "Traceback" not in output, output
    lines = [line for line in output.splitlines() if line.startswith(prefix) and sentence in line]
    assert len(lines) == 1, output


@pytest.fixture
def counted(record_property):
    """Count a fault for the summary of the test run: whether one message reported it, and before any job."""
    record_property("fault", "tried")
    return lambda before: record_property("fault", "before any job" if before else "in a job")


@pytest.mark.parametrize("fault", CONFIG_FAULTS)
def test_config_fault(study, fault, counted):
    edit, sentence = CONFIG_FAULTS[fault]
    edit(study)
    before = results(study.folder)
    with pytest.raises(PlumblineError) as caught:
        parsed(study.config, [study.folder])
    one_sentence(str(caught.value), sentence)
    assert "\n" not in str(caught.value) and results(study.folder) == before
    counted(before=True)


@pytest.mark.parametrize("fault", SHOWN)
def test_snakemake_prints_the_same(fresh, fault, counted, monkeypatch):
    edit, sentence = CONFIG_FAULTS[fault]
    study = Study(fresh, copy.deepcopy(CONFIG))
    edit(study)
    write_config(fresh, study.config)
    write("results/data/kept.parquet", "kept")(fresh)
    before = results(fresh)
    monkeypatch.setenv("PLUMBLINE_OFFLINE", "1")
    done = run_snakemake(fresh, "all", "--cores", "2")
    assert done.returncode != 0
    one_sentence(done.stdout, sentence)
    assert "WorkflowError" in done.stdout and "Building DAG" not in done.stdout and results(fresh) == before
    counted(before=True)


# Arguments of Snakemake, and its own message before it reads the Snakefile.
ASKED: dict[str, tuple[list[str], str]] = {
    "config of invalid YAML": (["--configfile", "bad.yaml"], "Config file is not valid JSON or YAML."),
    "config that is a list": (["--configfile", "list.yaml"], "Config file must be given as JSON or YAML with keys"),
    "unknown key on the command line": (["--config", "seed=3"], "`seed` (set to 3) is not a known key"),
    "target that there is not": (["results/nothing.parquet"], "No rule to produce results/nothing.parquet"),
}


@pytest.mark.parametrize("fault", ASKED)
def test_command_line_of_snakemake(fresh, fault, counted):
    arguments, sentence = ASKED[fault]
    for name, text in {"bad.yaml": "a: [1", "list.yaml": "- a"}.items():
        write(name, text)(fresh)
    write("results/data/kept.parquet", "kept")(fresh)
    before = results(fresh)
    done = run_snakemake(fresh, *arguments, "--cores", "2")
    assert done.returncode != 0
    one_sentence(done.stdout, sentence)
    assert "started" not in done.stdout and results(fresh) == before
    counted(before=True)


@pytest.mark.parametrize("name", ["gone.yaml", "raw", "bytes.yaml"])
def test_config_file_that_cannot_be_opened(fresh, name, counted):
    """Snakemake opens it before the Snakefile, and shows where its own code failed; `plumbline plan` does not."""
    write("bytes.yaml", b"\xff\xfe")(fresh)
    done = run_snakemake(fresh, "-n", "--configfile", name)
    last_line = done.stdout.strip().splitlines()[-1]
    assert done.returncode != 0 and ("codec can't decode" if name == "bytes.yaml" else f"'{name}'") in last_line, (
        done.stdout
    )
    assert "Building DAG" not in done.stdout and not (fresh / "results").exists()


# Arguments of the command `plumbline`, and what it says.
COMMANDS: dict[str, tuple[list[str], str]] = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "unknown command": (["runn"], "invalid choice: 'runn'"),
    "run of an unknown study": (
        ["run", "jain-walace"],
        "There is no study or file 'jain-walace'; did you mean 'jain-wallace'?",
    ),
    "run of a missing config": (["run", "gone.yaml"], "There is no config file 'gone.yaml'; check the path."),
    "run of a folder": (["run", "raw"], "'raw' is a folder; give a config file."),
    "run of invalid YAML": (["run", "bad.yaml"], "'bad.yaml', line 1 is not valid YAML: "),
    "run of a config without datasets": (["run", "empty.yaml"], "`datasets` is missing"),
    "run without cores": (["run", "--cores", "0"], "'0' is not a whole number of 1 or more"),
    "run of GPUs in words": (["run", "--gpus", "many"], "'many' is not a whole number of 0 or more"),
    "run on SLURM without GPUs": (["run", "--slurm", "--gpus", "0"], "set `gpu: 0` under `train` in the profile"),
    "run with GPUs named twice": (
        ["run", "good.yaml", "--gpus", "2", "--", "--resources", "mem_mb=9"],
        "`--resources` replaces `--gpus`: write gpu=2 among the resources instead.",
    ),
    "plan of a missing config": (["plan", "gone.yaml"], "There is no config file 'gone.yaml'; check the path."),
    "plan of a folder": (["plan", "raw"], "'raw' is a folder; give a config file."),
    "plan of invalid YAML": (["plan", "bad.yaml"], "'bad.yaml', line 1 is not valid YAML: "),
    "plan of a date that there is not": (["plan", "date.yaml"], "'date.yaml' is not valid YAML: "),
    "plan of a list": (["plan", "list.yaml"], "'list.yaml' must contain keys and values, like config.yaml."),
    "plan of bytes": (["plan", "bytes.yaml"], "'bytes.yaml' is not a config file: it is not UTF-8 text."),
    "plan of an unknown study": (["plan", "atefa"], "There is no study or file 'atefa'; did you mean"),
    "plan without cores": (["plan", "--cores", "0"], "'0' is not a whole number of 1 or more"),
    "plan of GPUs in words": (["plan", "--gpus", "many"], "'many' is not a whole number of 0 or more"),
    "plan into a folder": (["plan", "--json", "raw"], "`--json` is 'raw', a folder; give the name of a file."),
    "plan from no timings": (["plan", "--timings", "gone"], "There are no timings in 'gone'; give a run's"),
    "runs of a missing config": (["runs", "gone.yaml"], "There is no config file 'gone.yaml'; check the path."),
    "runs of a folder": (["runs", "raw"], "'raw' is a folder; give a config file."),
    "runs of bytes": (["runs", "bytes.yaml"], "'bytes.yaml' is not a config file: it is not UTF-8 text."),
    "runs of an odd key": (["runs", "key.yaml"], "The config has the key 3, which is not text"),
    "check of nothing": (["check"], "the following arguments are required: file"),
    "check of a missing file": (["check", "gone.py"], "The plug-in file 'gone.py' does not exist."),
    "check of a folder": (["check", "raw"], "'raw' is a folder; give the Python file of your method."),
    "check of YAML": (["check", "list.yaml"], "'list.yaml' must contain keys and values, like config.yaml."),
    "check of text": (["check", "notes.txt"], "'notes.txt' is not a Python file; its name must end in '.py', or in"),
    "check of a missing config": (["check", "gone.yaml"], "There is no config file 'gone.yaml'; check the path."),
    "check of a bad config": (["check", "key.yaml"], "key.yaml: The config has the key 3, which is not text"),
    "check of bytes": (["check", "bytes.py"], "'bytes.py' is not a Python file: it is not UTF-8 text."),
    "verify of a missing folder": (
        ["verify", "gone"],
        "There is no folder 'gone'; give the results folder of a study.",
    ),
    "verify of a file": (
        ["verify", "list.yaml"],
        "There is no folder 'list.yaml'; give the results folder of a study.",
    ),
    "progress of a missing folder": (
        ["progress", "gone"],
        "There is no folder 'gone'; give the results folder of a study.",
    ),
    "list of nothing": (["list"], "the following arguments are required: kind"),
    "list of an unknown kind": (["list", "nothing"], "argument kind: invalid choice: "),
    "list of a missing plug-in": (
        ["list", "measures", "--plugin", "gone.py"],
        "The plug-in file 'gone.py' does not exist.",
    ),
    "list of a plug-in that is a folder": (
        ["list", "measures", "--plugin", "raw"],
        "The plug-in file 'raw' is a folder;",
    ),
    "list of bytes": (["list", "measures", "--plugin", "bytes.py"], "'bytes.py' is not a Python file"),
    "new of an unknown kind": (["new", "nothing", "x"], "argument kind: invalid choice: 'nothing'"),
    "new of an odd name": (["new", "measure", "a b"], "'a b' cannot be the name of a measure: use lower-case letters,"),
    "new of a name that is taken": (["new", "measure", "gradient"], "plumbline already uses it; choose another name."),
    "new of a reserved name": (["new", "dataset", "plain"], "plumbline already uses it; choose another name."),
    "new into a file": (["new", "measure", "mine", "--folder", "list.yaml"], "'list.yaml' is a file; give a folder."),
    "generate elsewhere": (
        ["generate", "--project", "gone"],
        "'gone' is not a clone of plumbline: it has no config.yaml",
    ),
}


@pytest.mark.parametrize("fault", COMMANDS)
def test_command_line_of_plumbline(study, fault, capsys, counted):
    arguments, sentence = COMMANDS[fault]
    files = {
        "bad.yaml": "a: [1",
        "list.yaml": "- a",
        "key.yaml": "3: a",
        "date.yaml": "a: 2020-13-40",
        "notes.txt": "a",
        "empty.yaml": "name: nothing",
    }
    for name, text in {**files, "bytes.yaml": b"\xff\xfe", "bytes.py": b"\xff\xfe"}.items():
        write(name, text)(study.folder)
    (study.folder / "good.yaml").write_text("datasets: [echo]")
    before = results(study.folder)
    try:
        status = main(arguments)
    except SystemExit as end:  # What argparse says of arguments.
        status = end.code
    assert status
    output = capsys.readouterr()
    one_sentence(output.out + output.err, sentence)
    assert results(study.folder) == before
    counted(before=True)


# Runs of Snakemake with many failing jobs, each run once and kept with its output.

SMALL = {"hidden": 4, "training": {"epochs": 2}}
INSTANCES, VECTORS = "results/data/{}/plain/instances.parquet", "results/data/{}/embedding.safetensors"
WEIGHTS, SCORES = (
    "results/models/{}/plain/{}/0/weights.safetensors",
    "results/attributions/echo/plain/average-tanh/0/{}.parquet",
)
GOOD, BAD = "(3 (2 A) (3 fine))", "(1 (2 A) (1 bore))"
READ = [
    "labels-of-text", "labels-outside", "nothing", "tuples", "corpus-of-tuples", "tokens-as-string", "tokens-missing",
    "empty-word", "empty-class", "empty-corpus", "no-classes", "same-classes", "unknown-split", "unequal-pair",
    "pair-as-string", "pair-missing", "evidence-short", "oblong", "grey", "not-bytes", "no-images",
    "images-as-texts",
]  # fmt: skip
MEASURED = ["too-few", "too-few-instances", "half", "worded", "no-return", "bare"]
BUILT = ["no-embedding", "bare-logits", "no-module"]


def prepared(folder: Path, config: dict[str, Any], train: str) -> None:
    """A copy of the project with the broken plug-in, a tree bank and a config."""
    copy_project(folder)
    shutil.copy2(Path(__file__).with_name("broken.py"), folder)
    for split in ("dev", "test"):
        write(f"raw/sst/trees/{split}.txt", f"{GOOD}\n{BAD}\n")(folder)
    write("raw/sst/trees/train.txt", train)(folder)
    write_config(folder, {"plugins": ["plugin.py", "broken.py"], **config})


def failed(folder: Path, *targets: str) -> None:
    """Run Snakemake as users do, with retries, and keep its output; other results must not change."""
    before = results(folder)
    done = run_snakemake(folder, *targets, "--cores", "2")
    (folder / "output.txt").write_text(done.stdout)
    assert done.returncode != 0, done.stdout
    after = results(folder)
    changed = [
        path
        for path in before
        if after.get(path) != before[path] and f"'{path.relative_to(folder)}' is damaged" not in done.stdout
    ]
    assert not changed, changed


def read_datasets(folder: Path) -> None:
    config = {
        "datasets": {"sst": {"preparation": {"longer_than": None}}, **dict.fromkeys(READ)},
        "models": {"average-tanh": SMALL, "bag-of-words": {}, "minilm": {}, "resnet-small": {}},
        "measures": ["random"],
    }
    prepared(folder, config, f"{GOOD}\n{BAD}\n(3 (2 A) (2 fine)\n")
    failed(folder, *map(INSTANCES.format, ["sst", *READ]))


def explained_models(folder: Path) -> None:
    vectors = {"kind": "file", "path": "v.txt", "dimensions": 3}
    built = {name: {"training": {"epochs": 2}} for name in BUILT}
    config = {
        "datasets": {
            "echo": {}, "sst": {"preparation": {"longer_than": None}},
            "vectors": {"kind": "echo", "preparation": {"embedding": vectors}},
        },
        "manipulations": {"articles": {"datasets": ["echo"], "classes": [["no", "maybe"]]}},
        "models": {"average-tanh": SMALL, **built, "my-bert": {"checkpoint": "bert"}},
        "measures": {"random": {}, "theirs": {"kind": "imported", "path": "theirs.parquet"}, **dict.fromkeys(MEASURED)},
    }  # fmt: skip
    prepared(folder, config, f"{GOOD}\n{GOOD}\n")
    write("raw/v.txt", "a 0.1 0.2 0.3\nred 0.1 0.2")(folder)
    save_bert(folder / "bert")
    pd.DataFrame({"split": ["test"], "instance": [0], "scores": [[1.0]]}).to_parquet(folder / "theirs.parquet")
    targets = [INSTANCES.format("sst"), VECTORS.format("vectors"), "results/data/echo/articles/instances.parquet"]
    targets += [
        *map(SCORES.format, [*MEASURED, "theirs"]),
        *(WEIGHTS.format("echo", name) for name in [*BUILT, "my-bert"]),
    ]
    failed(folder, *targets)


def cut_results(folder: Path) -> None:
    config = {
        "datasets": {name: {"kind": "echo"} for name in DAMAGED},
        "models": {"average-tanh": SMALL},
        "measures": ["random"],
    }
    prepared(folder, config, "")
    done = run_snakemake(folder, *map(VECTORS.format, DAMAGED), "--cores", "2")
    assert done.returncode == 0, done.stdout
    for name, (file, spoil) in DAMAGED.items():
        path = folder / "results/data" / name / file
        times = path.stat()
        path.write_bytes(spoil(path.read_bytes()))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    failed(folder, *(WEIGHTS.format(name, "average-tanh") for name in DAMAGED))


DAMAGED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "short-table": ("plain/instances.parquet", lambda whole: whole[:200]),
    "no-table": ("plain/instances.parquet", lambda whole: b"split,instance\n"),
    "short-vectors": ("embedding.safetensors", lambda whole: whole[:-20]),
    "no-vectors": ("embedding.safetensors", lambda whole: b"0.1 0.2"),
    "other-record": ("dataset.json", lambda whole: b'{"dataset": "other-record"}'),
    "list-record": ("dataset.json", lambda whole: b"[]"),
    "no-record": ("dataset.json", lambda whole: whole[:20]),
}
RUNS = {"datasets": read_datasets, "models": explained_models, "results": cut_results}
AGAIN = "Run again, and it is set aside and regenerated."
# The run of a fault, its job as named in the log, and the message.
JOB_FAULTS: dict[str, tuple[str, str, str]] = {
    "malformed tree": ("datasets", "prepare sst", "line 3"),
    "text as labels": (
        "datasets",
        "prepare labels-of-text",
        "the label 'yes' is not a whole number; it must be the index",
    ),
    "label of no class": ("datasets", "prepare labels-outside", "label 2 is not one of the 2 classes (no, yes)."),
    "reader of nothing": (
        "datasets",
        "prepare nothing",
        "Dataset 'nothing': its reader returns nothing; it must return a",
    ),
    "reader of a list": (
        "datasets",
        "prepare tuples",
        "Dataset 'tuples': its reader returns a list; it must return a Corpus",
    ),
    "texts that are tuples": (
        "datasets",
        "prepare corpus-of-tuples",
        "text 0: it is a tuple; each text must be an Example.",
    ),
    "text as one string": (
        "datasets",
        "prepare tokens-as-string",
        "`tokens` must be a list of words; `tokenize` splits a",
    ),
    "text of nothing": ("datasets", "prepare tokens-missing", "`tokens` must be a list of words"),
    "empty word": (
        "datasets",
        "prepare empty-word",
        "a word is the empty string; the dataset's reader must leave it out.",
    ),
    "class without texts": ("datasets", "prepare empty-class", "split 'train' holds no text of class 'no'"),
    "no texts": ("datasets", "prepare empty-corpus", "Dataset 'empty-corpus', split 'train' holds no text with words"),
    "classes that are numbers": (
        "datasets",
        "prepare no-classes",
        "its classes are [0, 1]; they must be a list of different",
    ),
    "classes of one name": ("datasets", "prepare same-classes", "its classes are ['no', 'no']; they must be a list of"),
    "unknown split": ("datasets", "prepare unknown-split", "the split must be one of train, dev, test."),
    "some pairs": (
        "datasets",
        "prepare unequal-pair",
        "some texts have `pair` and some do not; give it to all or none.",
    ),
    "pair as one string": (
        "datasets",
        "prepare pair-as-string",
        "`pair` must be a list of words; `tokenize` splits a",
    ),
    "no pairs": ("datasets", "prepare pair-missing", "its task is inference, so its texts must each have a `pair`."),
    "evidence too short": (
        "datasets",
        "prepare evidence-short",
        "`evidence` must have one flag per word.",
    ),
    "oblong images": (
        "datasets",
        "prepare oblong",
        "has the shape [4, 6, 3], not [4, 4, 3]; the dataset's reader must",
    ),
    "grey images": ("datasets", "prepare grey", "has the shape [4, 4], not [4, 4, 3]; the dataset's reader must"),
    "images not of bytes": ("datasets", "prepare not-bytes", "`pixels` must be a NumPy array of bytes (uint8)"),
    "arrays as images": (
        "datasets",
        "prepare no-images",
        "0: it is a ndarray; each must be an ImageExample.",
    ),
    "images as texts": (
        "datasets",
        "prepare images-as-texts",
        "but it consists of images; declare task='image classification'.",
    ),
    "class of trees missing": (
        "models",
        "prepare sst",
        "Dataset 'sst', split 'train' holds no text of class 'negative'",
    ),
    "vectors cut off": ("models", "embed vectors", "line 2"),
    "unknown class of a manipulation": (
        "models",
        "manipulate echo articles",
        "`manipulations.articles.classes` name 'maybe', which is not a class of the dataset; did",
    ),
    "too few scores": (
        "models",
        "attribute echo average-tanh seeds 0 too-few",
        "The measure 'too-few' gave scores of shape",
    ),
    "too few instances": (
        "models",
        "attribute echo average-tanh seeds 0 too-few-instances",
        "gave scores for 1 of 20 instances.",
    ),
    "half precision": (
        "models",
        "attribute echo average-tanh seeds 0 half",
        "The measure 'half' gave scores of type torch.bfloat16",
    ),
    "words as scores": (
        "models",
        "attribute echo average-tanh seeds 0 worded",
        "The measure 'worded' gave scores of type <U4",
    ),
    "measure of nothing": (
        "models",
        "attribute echo average-tanh seeds 0 no-return",
        "must return Importances, not NoneType.",
    ),
    "measure of a list": ("models", "attribute echo average-tanh seeds 0 bare", "must return Importances, not list."),
    "importances that lack instances": (
        "models",
        "attribute echo average-tanh seeds 0 theirs",
        "lacks 19 of 20 instances, such as",
    ),
    "model without vectors": (
        "models",
        "train echo no-embedding seeds 0",
        "must store its word vectors as `self.embedding`.",
    ),
    "model without Output": (
        "models",
        "train echo bare-logits seeds 0",
        "returns a Tensor; its `forward` must return Output(logits)",
    ),
    "model not of PyTorch": ("models", "train echo no-module seeds 0", "must be a subclass of torch.nn.Module."),
    "weights of another shape": (
        "models",
        "train echo my-bert seeds 0",
        "The weights of the checkpoint 'bert' do not fit its config",
    ),
    "table cut off": (
        "results",
        "train short-table average-tanh seeds 0",
        f"is damaged and cannot be read as Parquet. {AGAIN}",
    ),
    "table of text": (
        "results",
        "train no-table average-tanh seeds 0",
        f"is damaged and cannot be read as Parquet. {AGAIN}",
    ),
    "tensors cut off": (
        "results",
        "train short-vectors average-tanh seeds 0",
        f"cannot be read as safetensors. {AGAIN}",
    ),
    "tensors of text": ("results", "train no-vectors average-tanh seeds 0", f"cannot be read as safetensors. {AGAIN}"),
    "record of another form": (
        "results",
        "train other-record average-tanh seeds 0",
        "is not the record of a dataset: it has no",
    ),
    "record that is a list": ("results", "train list-record average-tanh seeds 0", "is not the record of a dataset"),
    "record that is no JSON": ("results", "train no-record average-tanh seeds 0", f"cannot be read as JSON. {AGAIN}"),
}


@pytest.mark.parametrize("fault", JOB_FAULTS)
def test_job_fault(once, fault, counted):
    run, job, sentence = JOB_FAULTS[fault]
    output = (once(f"faults-of-{run}", RUNS[run]) / "output.txt").read_text()
    lines = output.splitlines()
    assert "Traceback" not in output, output
    (end,) = [line for line in lines if f"] failed   {job}: " in line]
    assert sentence in end, end
    message = end.partition(f"failed   {job}: ")[2].rpartition(" (results/logs/")[0]
    # The job says it once, and it is not started again.
    assert lines.count(f"plumbline: {message}") == 1, output
    assert len([line for line in lines if line.endswith(f"] started  {job}")]) == 1, output
    counted(before=False)


def test_what_must_not_fail(tmp_path, monkeypatch):
    """Class names with special characters of LaTeX, and missing home and temporary folders."""
    config = {
        "datasets": {"signs": {}},
        "models": {"average-tanh": SMALL},
        "measures": ["attention", "gradient", "random"],
        "protocols": ["agreement"],
    }
    prepared(tmp_path / "study", config, "")
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    targets = ["results/tables/agreement.tex", "results/figures/tau-histogram/signs/average-tanh.svg"]
    done = run_snakemake(tmp_path / "study", *targets, "--cores", "2")
    assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
    assert list((tmp_path / "study/results/figures").rglob("*.svg"))
