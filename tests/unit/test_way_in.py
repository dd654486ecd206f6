"""`plumbline check` reports in plain words what is wrong with the user's own methods."""

import logging
import re
from pathlib import Path

import pytest

from plumbline import store
from plumbline.cli import main
from plumbline.conformance.protocols import OWN_TABLES

PROJECT = Path(__file__).parents[2]
# A model that only the measures of these tests support, so that they are checked on it alone.
OWN_MODEL = '''
from plumbline.models.bag_of_words import BagOfWords

@model("own-model", provides=["gradient", "own"])
class OwnModel(BagOfWords):
    """A model of one's own."""
'''
HEADS = {
    "measure": """import numpy as np
import torch
from plumbline.attribution.importances import Importances
from plumbline.registry import measure, model

""",
    "model": """import torch
from torch import nn
from plumbline.models.bag_of_words import BagOfWords
from plumbline.models.classifier import Output
from plumbline.registry import model

""",
    "dataset": """import numpy as np
from plumbline.data.corpus import Corpus, Example
from plumbline.registry import dataset

""",
    "manipulation": """from plumbline.data.manipulation import ChangedText
from plumbline.registry import manipulation

""",
    "protocol": """import pandas as pd
import pyarrow as pa
from plumbline import store
from plumbline.registry import protocol

""",
}


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Write a file, check it and return the lines; `good` is whether it must pass."""
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    declared = OWN_TABLES | store.SCHEMAS

    def check(text: str, good: bool = False, name: str = "plugin.py", *options: str) -> list[str]:
        Path(name).write_text(text)
        # By its absolute path, because modules are cached by path.
        assert main(["check", str(tmp_path / name), *options]) == (not good)
        return capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()

    yield check
    store.SCHEMAS.clear()
    store.SCHEMAS.update(declared)


# docs/how-to/extending.md shows these with their messages.
SHOWN = {
    "special tokens get scores too": (
        '''@measure("with-specials", equation="1")
def with_specials(evaluator, instances):
    """Everything counts alike."""
    return Importances([np.ones(len(ids)) for ids in instances.ids])
''',
        "measure with-specials: on every model it returns scores of shape (4,) for text 0, which has 2 words; return "
        "one number for each of them and none for padding or other tokens.",
    ),
    "padding has a part in it": (
        '''@measure("padded", equation="|e_t| / L")
def padded(evaluator, instances):
    """The length of a word's vector, as a share of the batch."""
    scores = [None] * len(instances)

    def work(index, batch):
        lengths = evaluator.model.embedding(batch.ids).norm(dim=-1) / batch.ids.shape[1]
        for i, row in zip(index, lengths.numpy()):
            scores[i] = row[: len(instances.maskable[i])][instances.maskable[i]]

    evaluator.each(instances, work)
    return Importances(scores)
''',
        "measure padded: on every model its scores depend on the batch: the token budget, the padding or the other "
        "texts; ignore tokens that are not `batch.present`, and explain each text independently.",
    ),
    "an option has no type": (
        '''@measure("untyped", equation="p")
def untyped(evaluator, instances, *, power=2):
    """Everything counts alike."""
    return Importances([np.full(words.sum(), power) for words in instances.maskable])
''',
        "plugin.py, line 6: the measure 'untyped': option 'power' needs a type and a default.",
    ),
    "it raises": (
        '''@measure("raising", equation="1 / 0")
def raising(evaluator, instances):
    """Divides by zero."""
    return Importances([np.ones(words.sum()) / (1 // 0) for words in instances.maskable])
''',
        "measure raising: on every model it fails with ZeroDivisionError: integer division or modulo by zero "
        "(plugin.py, line 9).",
    ),
    "a model reads padding": (
        '''@model("leaking", provides=["gradient"])
class Leaking(BagOfWords):
    """The mean over words and padding."""

    def forward(self, batch, embedded=None):
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        return Output(self.head(embedded.mean(1)))
''',
        "model leaking: its logits depend on the padding or on the other texts of the batch; ignore tokens "
        "that are not `batch.present`.",
    ),
    "a label is of no class": (
        '''@dataset("mislabelled", source="made up", licence="MIT")
def mislabelled(raw, seed):
    """Labels counted from 1."""
    examples = [Example(split, 1 + i % 2, ["a", "b"]) for split in ("train", "dev", "test") for i in range(4)]
    return Corpus(examples, ["no", "yes"])
''',
        "dataset mislabelled: split 'train', text 1: label 2 is not one of the 2 classes (no, yes).",
    ),
    "a table is not declared": (
        '''@protocol("tableless", equation="0")
class Tableless:
    """Scores nothing."""

    table = "nothing"

    def score(self, explained):
        return {}

    def summarise(self, scores):
        return scores.to_pandas()
''',
        "protocol tableless: its `table` is 'nothing'; set it to a table returned by plumbline.store.declare.",
    ),
}  # fmt: skip


def kind_of(body: str) -> str:
    found = re.search(r"^@(\w+)\(", body, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize("fault", SHOWN)
def test_the_page_shows_the_messages_of_the_command(fault, checked):
    body, sentence = SHOWN[fault]
    assert checked(HEADS[kind_of(body)] + body) == [sentence]
    page = (PROJECT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
    assert f"- **{fault}**: {sentence} " in f"{' '.join(page.split())} "


# The body of a measure's function, and the message.
MEASURES = {
    "not finite": (
        "return Importances([np.full(m.sum(), np.nan) for m in instances.maskable])",
        "its scores of text 0 are not finite (nan).",
    ),
    "too large to store": (
        "return Importances([np.full(m.sum(), 1e300) for m in instances.maskable])",
        "its scores of text 0 are not finite (inf).",
    ),
    "returns nothing": (
        "Importances([])",
        "it returns None; end with `return Importances(scores)`.",
    ),
    "returns a list": (
        "return [np.ones(m.sum()) for m in instances.maskable]",
        "it returns a list; end with `return Importances(scores)`.",
    ),
    "returns too few": (
        "return Importances([np.ones(m.sum()) for m in instances.maskable[1:]])",
        "it returns scores for 11 of 12 texts; return one array for each.",
    ),
    "returns tensors": (
        "return Importances([torch.ones(int(m.sum())) for m in instances.maskable])",
        "its scores of text 0 are a Tensor; return NumPy arrays, for example by `.detach().cpu().numpy()`.",
    ),
    "returns objects": (
        "return Importances([np.ones(m.sum()).astype(object) for m in instances.maskable])",
        "its scores of text 0 are of type object; return real numbers, such as float32.",
    ),
    "draws": (
        "return Importances([np.random.random(m.sum()) for m in instances.maskable])",
        "its scores differ between runs; draw random numbers only from `instances.generator(i, evaluator.seed)`.",
    ),
    "counts the texts": (
        "return Importances([np.full(m.sum(), float(i)) for i, m in enumerate(instances.maskable)])",
        "its scores depend on the order of the texts; put those of text i at index i, and explain each independently.",
    ),
    "writes into texts": (
        "instances.ids[0][:] = 0\n    return Importances([np.ones(m.sum()) for m in instances.maskable])",
        "it modifies the `ids` of its input instances; change a copy.",
    ),
    "writes into weights": (
        "evaluator.model.embedding.weight.zero_()\n"
        "    return Importances([np.ones(m.sum()) for m in instances.maskable])",
        "it modifies the weights of the model, which other measures use too; change a copy.",
    ),
    "leaves a hook": (
        "evaluator.model.embedding.register_forward_hook(lambda module, given, made: 2 * made)\n"
        "    return Importances([np.ones(m.sum()) for m in instances.maskable])",
        "it leaves the model changed (in training mode or with a hook); restore what you change.",
    ),
    "leaves training on": (
        "evaluator.model.train()\n    return Importances([np.ones(m.sum()) for m in instances.maskable])",
        "it leaves the model changed (in training mode or with a hook); restore what you change.",
    ),
    "has targets that are none": (
        "scores = [np.ones(m.sum()) for m in instances.maskable]\n    return Importances(scores, np.ones(len(scores)))",
        "its `target` is of type float64; return class indices.",
    ),
    "has too few targets": (
        "scores = [np.ones(m.sum()) for m in instances.maskable]\n    return Importances(scores, np.array([1]))",
        "its `target` has shape (1,), not (12,): one class for each text.",
    ),
    "has second texts that are none": (
        "scores = [np.ones(m.sum()) for m in instances.maskable]\n    return Importances(scores, pair=scores)",
        "it returns scores of second texts for instances without second texts.",
    ),
    "has too few special tokens": (
        "scores = [np.ones(m.sum()) for m in instances.maskable]\n"
        "    return Importances(scores, specials=[np.ones(1)] * len(scores))",
        "it returns scores of shape (1,) for text 0, which has 2 special tokens; return one number for each of them "
        "and none for padding or other tokens.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", MEASURES)
def test_a_broken_measure_gets_one_sentence(fault, checked):
    body, sentence = MEASURES[fault]
    text = f"""
@measure("broken", needs=["own"], equation="?")
def broken(evaluator, instances):
    \"\"\"Broken on purpose.\"\"\"
    {body}
"""
    own, line = checked(HEADS["measure"] + OWN_MODEL + text)
    assert own.startswith("model own-model: conforms (texts, ")
    assert line == f"measure broken: on model 'own-model' {sentence}"


# The declaration of a measure, and the message.
DECLARATIONS = {
    '@measure("broken", range=[1, 0], equation="?")': "its declaration states range=[1, 0]; it must be [minimum, "
    "maximum]; None is no bound.",
    '@measure("broken", needs=["telepathy"], equation="?")': "no registered model provides what it needs: telepathy.",
    '@measure("broken", needs=["own"])': "its declaration does not state `equation`.",
    '@measure("broken", needs=["own"], covers=["specials"], equation="?")': "on model 'own-model' it covers "
    "'specials', but its Importances have no `specials`.",
    '@measure("broken", needs=["own"], k="ten", equation="?")': "its option 'k: int' has the default 'ten' of "
    "another type.",
    '@measure("broken", needs=["own"], range=[0, 1], equation="?")': "on model 'own-model' its scores range from 2 to "
    "2, outside its declared range [0, 1].",
}  # fmt: skip


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_a_wrong_declaration_gets_one_sentence(declaration, checked):
    text = f"""
{declaration}
def broken(evaluator, instances, *, k: int = 2):
    \"\"\"Every word counts as much.\"\"\"
    return Importances([np.full(m.sum(), 2.0) for m in instances.maskable])
"""
    assert checked(HEADS["measure"] + OWN_MODEL + text)[1:] == [f"measure broken: {DECLARATIONS[declaration]}"]


def test_a_measure_may_refuse_second_texts(checked):
    text = '''
from plumbline.errors import PlumblineError
from plumbline.models.paired import SharedClassifier

@model("own-pairs", provides=["own"], tasks=["inference"])
class OwnPairs(SharedClassifier):
    """A model of pairs."""

@measure("single", needs=["own"], equation="1")
def single(evaluator, instances):
    """Every word counts as much."""
    if instances.pair is not None:
        raise PlumblineError("It explains single texts only.")
    return Importances([np.ones(m.sum()) for m in instances.maskable])
'''
    *_, line = checked(HEADS["measure"] + OWN_MODEL + text, good=True)
    assert re.fullmatch(
        r"measure single: conforms so far \(2 models, \d+\.\d s\); on model 'own-pairs' it fails on pairs of texts: It "
        r"explains single texts only\.",
        line,
    )


BAG = "class Broken(BagOfWords):"
FORWARD = "def forward(self, batch, embedded=None):\n        "
MODELS = {
    "logits alone": (BAG, f"{FORWARD}return super().forward(batch, embedded).logits",
        "its forward returns a Tensor; end with `return Output(logits)`."),
    "one class too many": (BAG, f"{FORWARD}return Output(torch.zeros(len(batch.ids), 3))",
        "its logits have shape (12, 3), not (12, 2), which is [instances, classes]."),
    "not finite": (BAG, f"{FORWARD}return Output(super().forward(batch, embedded).logits / 0)",
        "its logits are not finite."),
    "writes into the batch": (BAG, f"{FORWARD}batch.ids[:] = 5\n        return super().forward(batch, embedded)",
        "it modifies its input batch; clone a tensor before you change it."),
    "draws always": (BAG, f"{FORWARD}logits = super().forward(batch, embedded).logits\n"
        "        return Output(logits + torch.randn_like(logits))",
        "its logits differ between runs; use random numbers only `if self.training`."),
    "forgets what it drew": (BAG, "def __init__(self, embedding, classes):\n"
        "        super().__init__(embedding, classes)\n        self.drawn = torch.randn(classes)\n\n"
        f"    {FORWARD}return Output(super().forward(batch, embedded).logits + self.drawn)",
        "its logits differ after its weights are saved and loaded; make random tensors parameters or buffers."),
    "learns nothing": ("class Broken(nn.Module):", "def __init__(self, embedding, classes):\n"
        "        super().__init__()\n        self.classes = classes\n"
        "        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False)\n\n"
        f"    {FORWARD}return Output(torch.zeros(len(batch.ids), self.classes))",
        "it cannot learn: no gradient of the loss reaches its parameters."),
    "keeps no vectors": ("class Broken(nn.Module):", "def __init__(self, embedding, classes):\n"
        "        super().__init__()\n        self.words = nn.Embedding.from_pretrained(embedding)",
        "The model 'Broken' must store its word vectors as `self.embedding`."),
    "raises": (BAG, f"{FORWARD}return self.missing", "it fails with AttributeError: 'Broken' object has no attribute "
        "'missing' (plugin.py, line 12)."),
}  # fmt: skip


@pytest.mark.parametrize("fault", MODELS)
def test_a_broken_model_gets_one_sentence(fault, checked):
    class_, body, sentence = MODELS[fault]
    text = f'@model("broken", provides=["own"])\n{class_}\n    """Broken on purpose."""\n\n    {body}\n'
    lines = checked(HEADS["model"] + text.replace('"own"', '"gradient"'))
    assert lines[0] == f"model broken: {sentence}"


MODEL_DECLARATIONS = {
    'provides=["gradent"]': "it provides 'gradent', which no measure or protocol needs; did you mean 'gradient'?",
    'provides=["attention"]': "it provides 'attention', but has no `encode`.",
    'provides=["gradient"], tasks=["clasification"]': "one of its tasks is 'clasification'; did you mean "
    "'classification'?",
    'provides=["gradient"], reads="letters"': "its declaration states reads='letters'; choose from: pixels, subwords, "
    "words.",
    'provides=["gradient"], training={"epoch": 3}': "in its declaration `training.epoch` (set to 3) is not a known "
    "key; did you mean 'epochs'?",
}  # fmt: skip


@pytest.mark.parametrize("declaration", MODEL_DECLARATIONS)
def test_a_wrong_declaration_of_a_model_gets_one_sentence(declaration, checked):
    text = f'@model("broken", {declaration})\n{BAG}\n    """Broken on purpose."""\n'
    assert checked(HEADS["model"] + text)[0] == f"model broken: {MODEL_DECLARATIONS[declaration]}"


TEXTS = '[Example(split, i % 2, ["a", "b"]) for split in ("train", "dev", "test") for i in range(4)]'
DATASETS = {
    "a name as label": ("", f"Corpus({TEXTS.replace('i % 2', repr('yes'))}, ['no', 'yes'])",
        "the label of text 0 is 'yes'; return the index of its class, from 0."),
    "text as one string": ("", f"""Corpus({TEXTS.replace('["a", "b"]', '"a b"')}, ["no", "yes"])""",
        "the `tokens` of text 0 are a str; return a list of words, each a str."),
    "no corpus": ("", TEXTS, "it returns a list; end with `return Corpus(examples, classes)`."),
    "a class without texts": ("", f"Corpus({TEXTS}, ['no', 'yes', 'maybe'])",
        "split 'train' holds no text of class 'maybe': the dataset's files or its reader lack it."),
    "another split": ("", f"Corpus({TEXTS.replace('dev', 'valid')}, ['no', 'yes'])",
        "split 'valid', text 4: the split must be one of train, dev, test."),
    "a task that is none": ('task="inferense", ', f"Corpus({TEXTS}, ['no', 'yes'])",
        "its task is 'inferense'; did you mean 'inference'?"),
    "no second texts": ('task="inference", ', f"Corpus({TEXTS}, ['no', 'yes'])",
        "its task is inference, so its texts must each have a `pair`."),
    "a recipe that is none": ('preparation={"longer": 3}, ', f"Corpus({TEXTS}, ['no', 'yes'])",
        "in its declaration `preparation.longer` (set to 3) is not a known key; did you mean "
        "'longer_than'?"),
}  # fmt: skip


@pytest.mark.parametrize("fault", DATASETS)
def test_a_broken_dataset_gets_one_sentence(fault, checked):
    facts, body, sentence = DATASETS[fault]
    text = f'@dataset("broken", {facts}source="made up", licence="MIT")\ndef broken(raw, seed):\n'
    lines = checked(f'{HEADS["dataset"]}{text}    """Broken on purpose."""\n    return {body}\n')
    assert lines == [f"dataset broken: {sentence}"]


def test_a_dataset_that_differs_when_reread_is_noticed(checked):
    text = f"""@dataset("broken", source="made up", licence="MIT")
def broken(raw, seed):
    \"\"\"Broken on purpose.\"\"\"
    word = str(np.random.random())
    return Corpus({TEXTS.replace('"b"', "word")}, ["no", "yes"])
"""
    lines = checked(HEADS["dataset"] + text)
    assert lines == [
        "dataset broken: it returns different data when it is read again; draw random numbers only from its `seed`."
    ]


def test_missing_files_are_no_fault(checked, tmp_path):
    text = f"""@dataset("filed", files={{"all": "filed/all.tsv"}}, source="https://example.org", licence="MIT")
def filed(raw, seed):
    \"\"\"Read from a file.\"\"\"
    assert (raw / "filed" / "all.tsv").read_text() == "there"
    return Corpus({TEXTS}, ["no", "yes"])
"""
    (line,) = checked(HEADS["dataset"] + text, good=True)
    assert re.fullmatch(
        r"dataset filed: conforms so far \(\d\.\d s\); it was not read: Dataset 'filed' needs the file "
        r"'filed/all.tsv', which is not in the folder 'raw': get it from https://example.org and put it there "
        r"under that name\.",
        line,
    )
    (tmp_path / "elsewhere" / "filed").mkdir(parents=True)
    (tmp_path / "elsewhere" / "filed" / "all.tsv").write_text("there")
    (line,) = checked(HEADS["dataset"] + text, True, "plugin.py", "--raw", "elsewhere")
    assert re.fullmatch(r"dataset filed: conforms \(12 texts, \d\.\d s\)", line)


MANIPULATIONS = {
    "return text.first, [0] * len(text.first)": "it returns a tuple; end with `return ChangedText(words, groups)`.",
    "text.first.reverse()\n    return ChangedText(text.first, [1] * len(text.first))": "it modifies its input words; "
    "return new lists.",
    "return ChangedText(text.first, [1])": "it returns 1 groups for 6 words; return the group index, or 0, "
    "of each word.",
    "return ChangedText(text.first, [2] * len(text.first))": "it returns a group index above 1, "
    "the number of its groups.",
    "return ChangedText(['new'], [1])": "it inserts words that are not in its declared `words`.",
    "return ChangedText(text.first, [1] * len(text.first), ['an'], [1])": "it returns a second text for "
    "an instance without one.",
    "return ChangedText(text.second, [1] * len(text.second))": "it fails with TypeError: object of type 'NoneType' "
    "has no len() (plugin.py, line 7).",
}  # fmt: skip


@pytest.mark.parametrize("body", MANIPULATIONS)
def test_a_broken_manipulation_gets_one_sentence(body, checked):
    text = '@manipulation("broken", groups=["all"], equation="?")\ndef broken(text, label, random):\n'
    lines = checked(f'{HEADS["manipulation"]}{text}    """Broken on purpose."""\n    {body}\n')
    assert f"manipulation broken: {MANIPULATIONS[body]}" in lines


SCORES = "{'seed': [0], 'split': ['test'], 'instance': [0], 'statistic': ['one'], 'status': ['ok']}"
SUMMARY = "pd.DataFrame({'seed': [0], 'mean': [1.0]})"
PROTOCOLS = {
    ("broken", "{'seed': [0]}", SUMMARY): "its scores cannot be stored: its columns differ in instance, split, "
    "statistic, status.",
    ("broken", SCORES.replace("'ok'", "None"), SUMMARY): "its scores cannot be stored: column 'status' has missing "
    "values.",
    ("broken", SCORES, "{'seed': [0], 'mean': [1.0]}"): "its summarise returns a dict, not a pandas DataFrame.",
    ("broken", SCORES, f"{SUMMARY}[['mean']]"): "its summary and its declared table differ in the columns: seed.",
    ("broken", SCORES, f"{SUMMARY}.assign(mean='much')"): "its summary cannot be stored: Failed to parse string: "
    "'much' as a scalar of type double.",
    ("performance", SCORES, SUMMARY): "its file declares the table 'performance', which plumbline already has; "
    "choose another name.",
    ("broken", "explained.by_seeds()", SUMMARY): "it fails with AttributeError: 'Explained' object has no attribute "
    "'by_seeds' (plugin.py, line 13).",
    ("broken", SCORES.replace("'one'", "str(pd.Timestamp.now())"), SUMMARY): "its scores differ between runs.",
}  # fmt: skip


@pytest.mark.parametrize("parts", PROTOCOLS)
def test_a_broken_protocol_gets_one_sentence(parts, checked):
    table, scores, summary = parts
    text = f"""TABLE = store.declare("{table}", 1, {{**store.CELL, "seed": pa.int64(), "mean": pa.float64()}})
@protocol("broken", equation="?")
class Broken:
    \"\"\"Broken on purpose.\"\"\"
    table = TABLE

    def score(self, explained):
        return {scores}
    def summarise(self, scores):
        return {summary}
"""
    assert checked(HEADS["protocol"] + text) == [f"protocol broken: {PROTOCOLS[parts]}"]


def test_a_protocol_lacks_parts(checked):
    text = '@protocol("broken", equation="?")\nclass Broken:\n    """Broken on purpose."""\n    table = "scores"\n'
    assert checked(HEADS["protocol"] + text) == [
        "protocol broken: it has no `score`.",
        "protocol broken: it has no `summarise`.",
    ]


def test_an_undocumented_metric_is_noticed(checked):
    text = 'from plumbline.registry import metric\n\n@metric("bare")\ndef bare(one, other):\n    return 0.0\n'
    lines = checked(text)
    assert lines[0] == "metric bare: it has no docstring; describe it in one sentence."
    assert lines[-1] == "metric bare: its direction is ''; it must be 'higher' or 'lower'."


GOOD = '''@measure("good", needs=["own"], equation="1")
def good(evaluator, instances):
    """Every word counts as much."""
    return Importances([np.ones(m.sum()) for m in instances.maskable])
'''
FILES = {
    "def broken(:\n    pass\n": "The plug-in file 'plugin.py' is not valid Python: invalid syntax, line 1.",
    "import numpy\n": "'plugin.py' declares nothing; for example, put @measure(\"my-measure\", equation=\"...\") from "
    "plumbline.registry above a function.",
    "import nowhere_to_be_found\n" + HEADS["measure"] + GOOD: "'plugin.py' cannot be imported: ModuleNotFoundError: No "
    "module named 'nowhere_to_be_found' (plugin.py, line 1); install that package, or correct its name.",
    HEADS["measure"] + "raise SystemExit(3)\n" + GOOD: "'plugin.py' cannot be imported: SystemExit: 3 (plugin.py, line "
    "6).",
    HEADS["measure"] + GOOD.replace('"good", ', '"good", equaton="?", '): "plugin.py, line 6: the measure 'good' "
    "states 'equaton', which is not a known argument; did you mean 'equation'?",
    HEADS["measure"] + GOOD.replace('"good"', "NAME"): "plugin.py, line 6: the measure 'good': its name is "
    "`NAME`, which is not a literal; declarations are read without running the file, so write the value itself.",
    HEADS["measure"] + GOOD.replace('"good"', '"attention"'): "'plugin.py': plumbline already has the measure "
    "'attention'; choose another name.",
    HEADS["measure"] + GOOD + GOOD.replace("def good", "def other"): "'plugin.py': this file already has the "
    "measure 'good'; choose another name.",
    HEADS["measure"] + GOOD + GOOD.replace('"good"', '"other"'): "plugin.py: 'good' is defined twice, and only the "
    "last one counts; rename one.",
    HEADS["measure"] + "@measure\ndef bare(evaluator, instances):\n    pass\n": "plugin.py, line 6: @measure needs a "
    'name, such as @measure("my-measure").',
    HEADS["measure"] + "class Inside:\n    @measure('inside')\n    def inside(evaluator, instances):\n        pass\n":
    "plugin.py, line 7: @measure is nested; declare it at the top level of the file.",
}  # fmt: skip


@pytest.mark.parametrize("text", FILES)
def test_a_broken_file_gets_one_sentence(text, checked):
    assert checked(text) == [FILES[text]]


def test_what_is_not_a_python_file(checked, tmp_path, capsys):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "latin.py").write_bytes("# \xe9".encode("latin-1"))
    (tmp_path / "notes.txt").write_text("")
    assert main(["check", "missing.py", "folder.py", "latin.py", "notes.txt"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "The plug-in file 'missing.py' does not exist.",
        "'folder.py' is a folder; give the Python file of your method.",
        "'latin.py' is not a Python file: it is not UTF-8 text.",
        "'notes.txt' is not a Python file; its name must end in '.py', or in '.yaml' for a config.",
    ]


def test_every_file_is_checked_and_one_that_fails_does_not_stop_the_others(checked, tmp_path, capsys):
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found\n" + HEADS["measure"] + GOOD)
    other = GOOD.replace("good", "fine")
    (tmp_path / "fine.py").write_text(HEADS["measure"] + OWN_MODEL + other)
    (tmp_path / "again.py").write_text(HEADS["measure"] + other)
    assert main(["check", "broken.py", "fine.py", "again.py", "fine.py"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "'again.py': 'fine.py' already has the measure 'fine'; choose another name.",
        "'broken.py' cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        "model own-model: conforms",
        "measure fine: conforms",
    ]
    assert main(["check", "fine.py"]) == 0


def test_a_traceback_is_shown_once_on_request(checked, capsys):
    body, sentence = SHOWN["it raises"]
    logger = logging.getLogger("plumbline.conformance")
    before = logger.level, [*logger.handlers]
    try:
        Path("plugin.py").write_text(HEADS["measure"] + body)
        assert main(["check", "plugin.py", "--traceback"]) == 1
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [sentence] and captured.err.count("Traceback") == 1
