"""A plug-in file in which every declaration can be read and no object works."""

import numpy as np
import torch
from torch import nn

from plumbline.attribution.importances import Importances
from plumbline.data.corpus import Corpus, Example
from plumbline.data.images import ImageCorpus, ImageExample
from plumbline.models.classifier import Output
from plumbline.registry import dataset, measure, model

SPLITS, CLASSES = ("train", "dev", "test"), ["no", "yes"]


def texts(**others):
    """A valid corpus, except for the given fields."""
    given = {"tokens": ["a", "b"], **others}
    labels = [given.pop("label")] if "label" in given else [0, 1]
    return [Example(split, label, **given) for split in SPLITS for label in labels]


def images(pixels):
    """A corpus of identical images."""
    return ImageCorpus([ImageExample(split, label, pixels) for split in SPLITS for label in (0, 1)], CLASSES)


@dataset("labels-of-text")
def labels_of_text(raw, seed):
    """Classes by name."""
    return Corpus(texts(label="yes"), CLASSES)


@dataset("labels-outside")
def labels_outside(raw, seed):
    """A class that does not exist."""
    return Corpus(texts(label=2), CLASSES)


@dataset("nothing")
def nothing(raw, seed):
    """No return."""


@dataset("tuples")
def tuples(raw, seed):
    """No corpus."""
    return [("train", 0, ["a"])]


@dataset("corpus-of-tuples")
def corpus_of_tuples(raw, seed):
    """A corpus, but of tuples."""
    return Corpus([("train", 0, ["a"])], CLASSES)


@dataset("tokens-as-string")
def tokens_as_string(raw, seed):
    """Texts that are not tokenized."""
    return Corpus(texts(tokens="a b"), CLASSES)


@dataset("tokens-missing")
def tokens_missing(raw, seed):
    """Texts without words."""
    return Corpus(texts(tokens=None), CLASSES)


@dataset("empty-word")
def empty_word(raw, seed):
    """A word of no letters."""
    return Corpus(texts(tokens=["a", ""]), CLASSES)


@dataset("empty-class")
def empty_class(raw, seed):
    """Nothing of one class."""
    return Corpus(texts(label=1), CLASSES)


@dataset("empty-corpus")
def empty_corpus(raw, seed):
    """Nothing at all."""
    return Corpus([], CLASSES)


@dataset("no-classes")
def no_classes(raw, seed):
    """Classes that are no list of names."""
    return Corpus(texts(), [0, 1])


@dataset("same-classes")
def same_classes(raw, seed):
    """One name for both classes."""
    return Corpus(texts(), ["no", "no"])


@dataset("unknown-split")
def unknown_split(raw, seed):
    """A split of another name."""
    return Corpus([*texts(), Example("valid", 0, ["a"])], CLASSES)


@dataset("unequal-pair", task="inference")
def unequal_pair(raw, seed):
    """Some texts have a second one."""
    return Corpus([*texts(pair=["c"]), *texts()], CLASSES)


@dataset("pair-as-string", task="inference")
def pair_as_string(raw, seed):
    """Second texts that are not tokenized."""
    return Corpus(texts(pair="c d"), CLASSES)


@dataset("pair-missing", task="inference")
def pair_missing(raw, seed):
    """A task of pairs without any."""
    return Corpus(texts(), CLASSES)


@dataset("evidence-short")
def evidence_short(raw, seed):
    """Evidence for one word of two."""
    return Corpus(texts(evidence=[True]), CLASSES)


@dataset("oblong", task="image classification")
def oblong(raw, seed):
    """Images that are not square."""
    return images(np.zeros((4, 6, 3), dtype=np.uint8))


@dataset("grey", task="image classification")
def grey(raw, seed):
    """Images without colours."""
    return images(np.zeros((4, 4), dtype=np.uint8))


@dataset("not-bytes", task="image classification")
def not_bytes(raw, seed):
    """Images of numbers from 0 to 1."""
    return images(np.zeros((4, 4, 3), dtype=np.float32))


@dataset("no-images", task="image classification")
def no_images(raw, seed):
    """Arrays instead of images."""
    return ImageCorpus([np.zeros((4, 4, 3), dtype=np.uint8)], CLASSES)


@dataset("images-as-texts")
def images_as_texts(raw, seed):
    """Images that are declared as texts."""
    return images(np.zeros((4, 4, 3), dtype=np.uint8))


@dataset("signs", preparation={"embedding": {"dimensions": 4}})
def signs(raw, seed):
    """Valid; its class names are special characters of LaTeX."""
    return Corpus(
        [Example(s, i % 2, [["no", "yes"][i % 2], "a"]) for s in SPLITS for i in range(8)], ["$\\frac", "x_{"]
    )


@measure("too-few")
def too_few(evaluator, instances):
    """One score fewer than words."""
    return Importances([np.zeros(free.sum() - 1) for free in instances.maskable])


@measure("too-few-instances")
def too_few_instances(evaluator, instances):
    """Scores of the first text only."""
    return Importances([np.zeros(instances.maskable[0].sum())])


@measure("half")
def half(evaluator, instances):
    """Numbers that NumPy does not know."""
    return Importances([torch.zeros(int(free.sum()), dtype=torch.bfloat16) for free in instances.maskable])


@measure("worded")
def worded(evaluator, instances):
    """Words as scores."""
    return Importances([np.array(["high"] * free.sum()) for free in instances.maskable])


@measure("no-return")
def no_return(evaluator, instances):
    """No return."""


@measure("bare")
def bare(evaluator, instances):
    """Scores without Importances around them."""
    return [np.zeros(free.sum()) for free in instances.maskable]


class Net(nn.Module):
    """The mean of word vectors, and a linear output."""

    def __init__(self, embedding, classes):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False)
        self.output = nn.Linear(embedding.shape[1], classes)

    def forward(self, batch, embedded=None):
        return Output(self.output(self.embedding(batch.ids).mean(1)))


@model("no-embedding", provides=["gradient"])
class NoEmbedding(Net):
    """Its vectors have another name."""

    def __init__(self, embedding, classes):
        super().__init__(embedding, classes)
        self.words = self.embedding
        del self.embedding

    def forward(self, batch, embedded=None):
        return Output(self.output(self.words(batch.ids).mean(1)))


@model("bare-logits", provides=["gradient"])
class BareLogits(Net):
    """Logits without Output around them."""

    def forward(self, batch, embedded=None):
        return super().forward(batch).logits


@model("no-module", provides=["gradient"])
class NoModule:
    """Not of PyTorch."""

    def __init__(self, embedding, classes):
        self.embedding = embedding
