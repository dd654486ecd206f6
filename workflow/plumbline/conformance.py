"""What every registered object must do, the user's too. Each check returns sentences about what is wrong; none is good.

A new measure that passes gives one finite number per word, the same whatever the batch, the padding and the order.
The command `plumbline check` runs this for the user's files.
"""

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache, partial
from inspect import signature
from itertools import product
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pydantic import BaseModel, TypeAdapter, ValidationError
from tqdm import tqdm

from plumbline import store
from plumbline.attribution.importances import Importances
from plumbline.config.recipes import Preparation, Training
from plumbline.config.study import TABLES, sentence
from plumbline.data.corpus import Corpus
from plumbline.data.instances import Instances
from plumbline.data.manipulation import Change, PictureManipulation, Words
from plumbline.data.pictures import PictureCorpus, prepare_pictures
from plumbline.data.pixels import pack
from plumbline.data.prepare import prepare
from plumbline.data.sources import missing_files
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.errors import PlumblineError, nearest
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.explained import Explained, scores_of
from plumbline.registry import FACTS, PAIRED, PICTURES, Declaration, Kind, Registry, holds, load, needed
from plumbline.registry import told as tells

log = logging.getLogger(__name__)

# The tables that are plumbline's own.
OWN_TABLES = dict(store.ARTEFACTS)

WORDS, DIMENSIONS, CLASSES, ANSWERS, SIDE = 40, 8, 2, 5, 16
TOLERANCE = 1e-6
# Tokens in one pass, for all examples at once.
ENOUGH = 10_000
# An option `steps` or `samples` of a measure is so many here: what is checked does not depend on it, and time does.
FEW_STEPS = 4
# What is wrong with scores that are not the same each time, and what to do.
AGAIN = "its scores differ when it is run again; draw at random by `instances.generator(i, evaluator.seed)` alone."
BATCH = (
    "its scores depend on the batch, that is on the token budget, the padding or the texts beside; leave out what "
    "`batch.present` says is padding, and explain each text by itself."
)
ORDER = "its scores depend on the order of the texts; put those of text i at place i, and explain each by itself."
# What a model must have beside `forward` for what it provides.
PARTS = {
    **dict.fromkeys(("attention", "heads"), ("encode", "attend", "decode")),
    "layers": ("layers", "readout"),
    "maps": ("maps", "readout_weights"),
}
TASKS = ("classification", *PAIRED, PICTURES)
READS = {"model": ("words", "pieces", "pixels"), "manipulation": ("words", "pixels")}


class Note(str):
    """What is told of an object that is no fault."""


class Tried(Note):
    """What an object was tried on."""


class Untried(Note):
    """What could not be tried, and why."""


def example_instances(
    count: int = 12, seed: int = 0, paired: bool = False, splits: Sequence[str] = ("test",)
) -> Instances:
    """Texts of two to thirteen random words, as a dataset would give them; with questions, if asked for, to which the
    answer must be the label or one other class."""
    random = np.random.default_rng(seed)
    words = [random.integers(len(SPECIALS), WORDS, size=2 + i % 12) for i in range(count)]
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    maskable = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    instance = np.arange(count, dtype=np.int32)
    split = np.array(splits)[instance * len(splits) // count]
    label = np.arange(count, dtype=np.int32) % CLASSES
    if not paired:
        return Instances(split, instance, label, ids, maskable)
    questions = [random.integers(len(SPECIALS), WORDS, size=2 + i % 5).astype(np.int32) for i in range(count)]
    answers = [np.array([i % CLASSES, (i + 1 + i % 2) % ANSWERS], dtype=np.int32) for i in range(count)]
    pair_words = [np.ones(len(question), dtype=bool) for question in questions]
    return Instances(split, instance, label, ids, maskable, questions, answers, pair_words)


def example_pictures(count: int = 12, seed: int = 0, splits: Sequence[str] = ("test",)) -> Instances:
    """Pictures of SIDE x SIDE random pixels, as a dataset would give them."""
    texts = example_instances(count, seed, splits=splits)
    pixels = np.random.default_rng(seed).integers(256, size=(count, SIDE, SIDE, 3), dtype=np.uint8)
    return replace(texts, ids=list(pack(pixels)), maskable=list(np.ones((count, SIDE**2), dtype=bool)))


def examples_for(declaration: Declaration, count: int = 12, splits: Sequence[str] = ("test",)) -> Instances:
    """What a model reads: pictures, pairs of texts if it cannot do without second ones, or texts."""
    if declaration.reads == "pixels":
        return example_pictures(count, splits=splits)
    return example_instances(count, paired=needs_pairs(declaration), splits=splits)


def example_model(declaration: Declaration, seed: int = 0, paired: bool = False) -> Any:
    """The declared model with random weights; one for questions has ANSWERS classes. Those that start from a checkpoint
    start from the same one, and `seed` draws their output."""
    options, classes = _example_options(declaration), ANSWERS if paired else CLASSES
    torch.manual_seed(seed)
    if declaration.reads == "pieces":
        return build(declaration.pointer, options, None, classes)
    if declaration.reads == "pixels":
        return _settled(build(declaration.pointer, options, None, classes))
    embedding = torch.randn(WORDS, DIMENSIONS)
    embedding[0] = 0
    pair = torch.randn(WORDS, DIMENSIONS) if paired else None
    return build(declaration.pointer, options, embedding, classes, pair)


def _settled(model: Any) -> Any:
    """A model of pictures that has met some, so that the means and variances by which it normalises are theirs; in
    double precision, because a deep one makes much of the last digits of noise."""
    model.double()
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model(whole_batch(example_pictures()))
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum
    return model


def _example_options(declaration: Declaration) -> dict[str, Any]:
    """The options of an example model: as declared, but for the checkpoint and the side of pictures."""
    options = {name: option.default for name, option in declaration.options.items()}
    if declaration.reads == "pixels" and "side" in options:
        return {**options, "side": SIDE}
    return {**options, "checkpoint": _example_checkpoint().name} if declaration.reads == "pieces" else options


@cache
def _example_checkpoint() -> "TemporaryDirectory[str]":
    """A folder with a checkpoint, which is there as long as the process is."""
    folder = TemporaryDirectory()
    torch.manual_seed(0)
    save_example_checkpoint(folder.name)
    return folder


def save_example_checkpoint(folder: str | Path) -> None:
    """A small RoBERTa with random weights and no dropout, for models that start from a checkpoint."""
    from transformers import RobertaConfig, RobertaModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = RobertaConfig(
        vocab_size=WORDS,
        hidden_size=2 * DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=4 * DIMENSIONS,
        max_position_embeddings=64,
        type_vocab_size=1,
        initializer_range=0.3,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    )
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def reads_one_text(declaration: Declaration) -> bool:
    """Whether a model can do without second texts."""
    return "classification" in declaration.tasks


def needs_pairs(declaration: Declaration) -> bool:
    """Whether a model reads nothing but texts with second ones."""
    return not reads_one_text(declaration) and declaration.reads != "pixels"


def whole_batch(instances: Instances) -> Batch:
    """All instances in one batch."""
    beside = instances.pair, instances.answers, instances.pair_maskable
    return collate(instances.ids, instances.maskable, "cpu", *beside)


def failure(error: BaseException, path: Path) -> str:
    """An exception as a sentence: its type, its message and the line of the object's own file that it came through.

    The traceback goes to the log.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    message = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no message"
    where = f" ({path.name}, line {lines[-1]})" if lines else ""
    told = f"it fails with {type(error).__name__}: {message}{where}."
    log.debug(told, exc_info=error)
    return told


def _named(value: Any) -> str:
    """What kind of thing a value is."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _defaults(declaration: Declaration) -> dict[str, Any]:
    return {name: option.default for name, option in declaration.options.items()}


def _stated(declaration: Declaration) -> Iterator[str]:
    """A declaration states things of the right types, and its options have defaults of theirs."""
    for fact, usual in FACTS[declaration.kind].items():
        stated = declaration.facts[fact]
        if usual is not None and not isinstance(stated, type(usual)):
            example = f", such as [{stated!r}]" if isinstance(usual, list) and isinstance(stated, str) else ""
            yield f"its declaration states {fact}={stated!r}; it must be a {type(usual).__name__}{example}."
    reads = READS.get(declaration.kind)
    if reads and declaration.reads not in reads:
        yield f"its declaration states reads={declaration.reads!r}; {nearest(str(declaration.reads), reads)}"
    if not _is_range(declaration.facts.get("range")):
        yield f"its declaration states range={declaration.range!r}; it must be [least, greatest]; None is no bound."
    for name, option in declaration.options.items():
        try:
            TypeAdapter(option.type).validate_python(option.default)
        except ValidationError:
            yield f"its option '{name}: {option.annotation}' has the default {option.default!r}; change one of the two."


def _is_range(stated: Any) -> bool:
    """Whether it is a least and a greatest number, or nothing; None is no bound."""
    if stated is None:
        return True
    if not isinstance(stated, list) or len(stated) != 2:
        return False
    ends = [end for end in stated if end is not None]
    return all(isinstance(end, int | float) for end in ends) and ends == sorted(set(ends))


def _recipe(recipe: type[BaseModel], declaration: Declaration, fact: str) -> Iterator[str]:
    """A recipe that is part of a declaration has known keys and possible values."""
    try:
        recipe(**getattr(declaration, fact))
    except ValidationError as error:
        yield f"in its declaration {sentence(error, fact, recipe)}"


def _documented(declaration: Declaration, *facts: str) -> Iterator[str]:
    if not declaration.summary:
        yield "it has no docstring; say in one sentence what it is."
    for fact in facts:
        if not getattr(declaration, fact):
            yield f"its declaration does not state `{fact}`."


def check_metric(declaration: Declaration) -> Iterator[str]:
    """A metric states which direction is better, its range and the equation it implements."""
    yield from _documented(declaration, "direction", "range", "unit", "equation")
    if declaration.direction not in ("higher", "lower"):
        yield f"its direction is '{declaration.direction}'; it must be 'higher' or 'lower'."
    if not callable(load(declaration.pointer)):
        yield "it cannot be called."


def check_dataset(declaration: Declaration, raw: Path | None = None) -> Iterator[str]:
    """A dataset states where its files come from and under which licence; with their folder, it is read too."""
    yield from _documented(declaration, "source", "licence")
    if declaration.task not in TASKS:
        yield f"its task is '{declaration.task}'; {nearest(declaration.task, TASKS)}"
        return
    wrong = [*_recipe(Preparation, declaration, "preparation"), *_recipe(Training, declaration, "training")]
    wrong += _recipe(Training, declaration, "pieces_training")
    yield from wrong
    if not callable(load(declaration.pointer)):
        yield "it cannot be called."
    elif raw is not None and not wrong:
        yield from _check_reading(declaration, raw)


def _check_reading(declaration: Declaration, raw: Path) -> Iterator[str]:
    """What is read can be prepared, and is the same when it is read again."""
    options = _defaults(declaration)
    files = {key: path.format(**options) for key, path in declaration.files.items() if holds(key, options)}
    lacking = missing_files(declaration.name, files, raw, declaration.source)
    if lacking:
        yield Untried(f"it was not read: {lacking}")
        return
    recipe = Preparation(**declaration.preparation)
    read = partial(load(declaration.pointer), raw, recipe.seed, **options)
    corpus = read()
    if not isinstance(corpus, Corpus | PictureCorpus):
        yield f"it returns {_named(corpus)}; end with `return Corpus(examples, classes)`."
        return
    wrong = list(_check_examples(corpus))
    if wrong:
        yield from wrong
        return
    if isinstance(corpus, PictureCorpus):
        prepare_pictures(corpus, recipe, declaration.name, declaration.counts, declaration.task)
        count, what = len(corpus.pictures), "pictures"
    else:
        prepare(corpus, recipe, declaration.name, declaration.counts, declaration.task)
        count, what = len(corpus.examples), "texts"
    if not _same_corpus(corpus, read()):
        yield "it reads something else when it is read again; draw at random by its `seed` alone."
    yield Tried(f"{count} {what}")


def _check_examples(corpus: Corpus | PictureCorpus) -> Iterator[str]:
    """Labels are numbers and texts are lists of words. One fault is enough."""
    examples: Sequence[Any] = corpus.pictures if isinstance(corpus, PictureCorpus) else corpus.examples
    for place, example in enumerate(examples):
        if not isinstance(example.label, Integral):
            yield f"the label of text {place} is {example.label!r}; give the number of its class, from 0."
            return
        texts = {name: getattr(example, name, None) for name in ("tokens", "pair")}
        for name, words in texts.items():
            if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                yield f"the `{name}` of text {place} are {_named(words)}; give a list of words, each a str."
                return


def _same_corpus(one: Corpus | PictureCorpus, other: Corpus | PictureCorpus) -> bool:
    if isinstance(one, Corpus) or isinstance(other, Corpus):
        return one == other
    pairs = zip(one.pictures, other.pictures, strict=False)
    return len(one.pictures) == len(other.pictures) and all(
        (a.split, a.label) == (b.split, b.label) and np.array_equal(a.pixels, b.pixels) for a, b in pairs
    )


def check_manipulation(declaration: Declaration) -> Iterator[str]:
    """A manipulation says of each word or pixel what group it is in, and changes nothing outside of its groups."""
    yield from _documented(declaration, "groups", "equation")
    if declaration.visibility and declaration.visibility not in declaration.options:
        yield f"its visibility is '{declaration.visibility}', which is none of its options."
    check = _check_of_pictures if declaration.reads == "pixels" else _check_of_texts
    # The same may be wrong of many texts.
    yield from dict.fromkeys(check(declaration, load(declaration.pointer), _defaults(declaration)))


def _check_of_texts(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    texts = [["the", "film", "was", "a", "dull", "one"], ["an", "old", "man"], ["good"], ["A", "word", "and", "the"]]
    for label, first, second in product(range(CLASSES), texts, (texts[1], None)):
        given, copy = (Words([*first], second and [*second]) for _ in range(2))
        change, again = (function(text, label, np.random.default_rng(0), **options) for text in (given, copy))
        if not isinstance(change, Change):
            yield f"it returns {_named(change)}; end with `return Change(words, groups)`."
            return
        if given != Words(first, second):
            yield "it writes into the words that it is given; make new lists."
        if change != again:
            yield "it gives something else when it is run again; draw from its `random` alone."
        if second is None and change.second is not None:
            yield "it gives a second text where there is none."
        yield from _check_change(declaration, (first, second or []), change, options)


def _check_change(
    declaration: Declaration, texts: tuple[list[str], list[str]], change: Change, options: dict[str, Any]
) -> Iterator[str]:
    for before, after, groups in zip(texts, change[::2], change[1::2], strict=True):
        if after is None or groups is None:
            # What says nothing of the second text leaves it as it is.
            continue
        if len(after) != len(groups):
            yield f"it gives {len(groups)} groups for {len(after)} words; give each word the number of its group, or 0."
        elif not set(groups) <= set(range(len(declaration.groups) + 1)):
            yield f"it gives groups beyond the {len(declaration.groups)} that it names."
        elif set(after) - {*declaration.words, *options.get("tokens", []), *before}:
            yield "it puts words into texts that it does not name as `words`."
        elif [w for w, g in zip(after, groups, strict=True) if not g and w not in before]:
            yield "it changes words that it says are in no group."


def _check_of_pictures(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    for size in (SIDE, 3 * SIDE):
        made = function(size, **options)
        if not isinstance(made, PictureManipulation):
            yield f"it returns {_named(made)}; end with `return PictureManipulation(region, change)`."
            return
        if made.region.shape != (size, size) or made.region.dtype != bool or not made.region.any():
            yield f"its region came as {made.region.dtype} {made.region.shape}, or empty, for pictures of side {size}."
            return
        picture = np.random.default_rng(1).integers(256, size=(size, size, 3), dtype=np.uint8)
        before = picture.copy()
        change, again = (made.change(picture, np.random.default_rng(0)) for _ in range(2))
        if not np.array_equal(picture, before):
            yield "it writes into the picture that it is given."
        if change.shape != picture.shape or change.dtype != np.uint8:
            yield f"it gives pictures of {change.dtype} {change.shape}."
        elif not np.array_equal(change, again):
            yield "it gives something else when it is run again."
        elif not np.array_equal(change[~made.region], before[~made.region]):
            yield "it changes pixels outside of its region."


def check_model(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A model gives finite logits that do not depend on padding, and keeps what it says it provides."""
    yield from _documented(declaration, "provides")
    for task in declaration.tasks:
        if task not in TASKS:
            yield f"one of its tasks is '{task}'; {nearest(task, TASKS)}"
    wanted = _wanted(registry)
    for part in declaration.provides:
        if part not in wanted:
            yield f"it provides '{part}', which no measure or protocol needs; {nearest(part, wanted)}"
    yield from _recipe(Training, declaration, "training")
    tried = []
    if {"classification", PICTURES} & set(declaration.tasks):
        yield from _check_model(declaration, False)
        tried.append("pictures" if declaration.reads == "pixels" else "texts")
    if set(PAIRED) & set(declaration.tasks):
        yield from (f"with questions, {fault}" for fault in _check_model(declaration, True))
        tried.append("texts with questions")
    yield Tried(" and ".join(tried))


def _wanted(registry: Registry) -> set[str]:
    """All that a measure or protocol may need of a model, and what says which models are of a kind."""
    declared = [*registry.all("measure"), *registry.all("protocol")]
    provided = {part for model in Registry().all("model") for part in model.provides}
    return provided | {entry.rpartition(":")[2] for one in declared for entry in one.needs}


def _check_model(declaration: Declaration, paired: bool) -> Iterator[str]:
    instances = example_pictures() if declaration.reads == "pixels" else example_instances(paired=paired)
    model = example_model(declaration, paired=paired).eval()
    batch = whole_batch(instances)
    singles = [whole_batch(instances.take([i])) for i in range(len(instances))]
    with torch.no_grad():
        together = model(batch)
    if not isinstance(getattr(together, "logits", None), torch.Tensor):
        yield f"its forward returns {_named(together)}; end with `return Output(logits)`."
        return
    expected = len(instances), ANSWERS if paired else CLASSES
    if together.logits.shape != expected:
        yield f"its logits have shape {tuple(together.logits.shape)}, not {expected}, which is [instances, classes]."
        return
    if not _same_batch(batch, whole_batch(instances)):
        yield "it writes into the batch that it is given; clone a tensor before you change it."
        return
    with torch.no_grad():
        again = model(batch).logits
        alone = [model(single).logits[0] for single in singles]
    if not torch.equal(again.nan_to_num(), together.logits.nan_to_num()):
        yield "its logits differ when it is run again; draw at random only `if self.training`."
        return
    allowed = torch.ones_like(together.logits, dtype=torch.bool)
    if instances.answers is not None:
        allowed = torch.stack([torch.isin(torch.arange(ANSWERS), torch.from_numpy(a)) for a in instances.answers])
    if not together.logits[allowed].isfinite().all():
        yield "its logits are not finite."
        return
    if (together.logits.softmax(-1)[~allowed] > 0).any():
        yield "it gives probability to classes that cannot be the answer."
    if not torch.allclose(together.logits.softmax(-1), torch.stack(alone).softmax(-1), atol=TOLERANCE):
        yield (
            "its logits depend on the padding or on the other texts of the batch; leave out what `batch.present` says "
            "is padding."
        )
    yield from _check_stored(declaration, model, whole_batch(instances), together.logits)
    yield from _check_learning(declaration, instances, paired)
    lacking = [
        f"it provides '{part}', but has no `{name}`."
        for part, names in PARTS.items()
        for name in names
        if part in declaration.provides and not hasattr(model, name)
    ]
    if lacking:
        yield from lacking
        return
    for part in ("attention", "heads"):
        if part in declaration.provides:
            yield from _check_attention(model, batch, together, part)
    if getattr(together, "pair_attention", None) is not None:
        yield from _check_pair_attention(together.pair_attention, batch)
    if "gradient" in declaration.provides:
        yield from _check_gradient(model, batch, together.logits)
    if "layers" in declaration.provides:
        yield from _check_layers(model, batch, singles)
    if "maps" in declaration.provides:
        yield from _check_maps(model, batch, together.logits)
    if hasattr(model, "vectors"):
        yield from _check_vectors(model, batch, singles, together.logits)


def _same_batch(one: Batch, other: Batch) -> bool:
    tensors = all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("ids", "present", "attendable"))
    return tensors and (one.pair is None or other.pair is None or _same_batch(one.pair, other.pair))


def _check_stored(declaration: Declaration, model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """A model that is built anew with the weights of another gives what that one gives."""
    state = model.state_dict()
    vectors = state["embedding.weight"], logits.shape[1], state.get("pair_embedding.weight")
    torch.manual_seed(1)
    twin = build(declaration.pointer, _example_options(declaration), *vectors).to(logits.dtype).eval()
    try:
        twin.load_state_dict(state)
    except RuntimeError as error:
        yield f"its weights cannot be loaded into a new one: {' '.join(str(error).split())}"
        return
    with torch.no_grad():
        if not torch.allclose(twin(batch).logits, logits, atol=TOLERANCE):
            yield (
                "its logits differ once its weights are stored and loaded; keep all that it draws as parameters or "
                "buffers."
            )


def _check_learning(declaration: Declaration, instances: Instances, paired: bool) -> Iterator[str]:
    """In training, some of its parameters get a gradient."""
    model = example_model(declaration, paired=paired).train()
    logits = model(whole_batch(instances)).logits
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(instances.label).long())
    if not loss.requires_grad or not learned:
        yield "it cannot learn: no gradient of the loss reaches its parameters."
        return
    slopes = torch.autograd.grad(loss, learned, allow_unused=True)
    if not any(slope is not None and slope.abs().sum() > 0 for slope in slopes):
        yield "it cannot learn: the gradient of the loss is zero for all of its parameters."


def _check_pair_attention(weights: torch.Tensor, batch: Batch) -> Iterator[str]:
    """Weights [B, M] over second texts."""
    if batch.pair is None or weights.shape != batch.pair.ids.shape:
        yield f"its `pair_attention` came as {tuple(weights.shape)}, not [B, M]."
        return
    yield from _check_weights(weights, batch.pair.attendable, "its attention to the second text")


def _check_weights(weights: torch.Tensor, attendable: torch.Tensor, its: str) -> Iterator[str]:
    """Weights [..., L] of words alone, which sum to 1. attendable: [..., L]."""
    if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
        yield f"{its} does not sum to 1."
    if weights.masked_fill(attendable, 0).abs().max() > 0:
        yield f"{its} falls on special tokens or padding."


def _check_gradient(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Gradients to the word vectors, those of second texts too."""
    given = {"word vectors": model.embedding(batch.ids)}
    if batch.pair is not None:
        if "pair_embedded" not in signature(model.forward).parameters:
            yield "it provides 'gradient', but its forward has no `pair_embedded`, the word vectors of second texts."
            return
        given["word vectors of second texts"] = getattr(model, "pair_embedding", model.embedding)(batch.pair.ids)
    vectors = [part.detach().requires_grad_() for part in given.values()]
    again = model(batch, *vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "it does not give for word vectors what it gives for the words."
    for name, slopes in zip(given, _slopes(again, vectors), strict=True):
        if not slopes.isfinite().all() or not slopes.abs().sum() > 0:
            yield f"it provides 'gradient', but the gradient to the {name} is zero or not finite."


def _slopes(logits: torch.Tensor, vectors: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The gradient of one class's probability; 0 to vectors that have no part in it."""
    output = logits.softmax(-1)[:, 1].sum()
    return torch.autograd.grad(output, vectors, allow_unused=True, materialize_grads=True)


def _all_present(batch: Batch) -> torch.Tensor:
    """What is no padding [B, T], of texts and of the second texts after them."""
    return batch.present if batch.pair is None else torch.cat([batch.present, batch.pair.present], dim=1)


@torch.no_grad()
def _check_layers(model: Any, batch: Batch, singles: list[Batch]) -> Iterator[str]:
    """Self-attention [B, layers, heads, T, T] and the weights [B, T] with which the last layer is read."""
    present = _all_present(batch)
    count, width = present.shape
    layers, readout = model.layers(batch), model.readout(batch)
    if layers.dim() != 5 or layers.shape[0] != count or layers.shape[-2:] != (width, width):
        yield f"its `layers` came as {tuple(layers.shape)}, not [B, layers, heads, T, T] with T = {width}."
        return
    if readout.shape != present.shape:
        yield f"its `readout` came as {tuple(readout.shape)}, not [B, T] with T = {width}."
        return
    rows = layers.movedim(3, 1)[present]
    keys = present[:, None].expand(-1, width, -1)[present][:, None, None]
    for name, weights, there in (("layers", rows, keys), ("readout", readout, present)):
        if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
            yield f"a row of its `{name}` does not sum to 1."
        if weights.masked_fill(there, 0).abs().max() > 0:
            yield f"its `{name}` has weight on padding."
    for i, single in enumerate(singles):
        own = present[i]
        if not torch.allclose(layers[i][..., own, :][..., own], model.layers(single)[0], atol=TOLERANCE):
            yield "its `layers` depend on the padding or on the other texts of the batch."
            return
        if not torch.allclose(readout[i, own], model.readout(single)[0], atol=TOLERANCE):
            yield "its `readout` depends on the padding or on the other texts of the batch."
            return


@torch.no_grad()
def _check_maps(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Maps [B, K, h, w] that are not negative, of whose means the weights [C, K] make the logits."""
    maps, weights = model.maps(batch), model.readout_weights
    if maps.dim() != 4 or len(maps) != len(logits) or weights.shape != (logits.shape[1], maps.shape[1]):
        yield f"its `maps` came as {tuple(maps.shape)} and its `readout_weights` as {tuple(weights.shape)}."
        return
    if maps.min() < 0:
        yield "some of the numbers of its `maps` are negative."
    # What is left is the bias of each class, the same for all pictures.
    bias = logits - maps.mean(dim=(2, 3)) @ weights.T
    if not torch.allclose(bias, bias[:1].expand_as(bias), atol=100 * TOLERANCE):
        yield "its logits are not what its `readout_weights` make of the means of its `maps`."


def _check_vectors(model: Any, batch: Batch, singles: list[Batch], logits: torch.Tensor) -> Iterator[str]:
    """Vectors [B, T, d] from which `read` tells what the words give."""
    present = _all_present(batch)
    vectors = model.vectors(batch).detach().requires_grad_()
    if vectors.shape[:2] != present.shape:
        yield f"its `vectors` came as {tuple(vectors.shape)}, not [B, T, d] with T = {present.shape[1]}."
        return
    again = model.read(batch, vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "its `read` does not give for its `vectors` what it gives for the words."
    (slopes,) = _slopes(again, [vectors])
    if not slopes.isfinite().all() or not slopes.abs().sum() > 0:
        yield "the gradient of its `read` to its `vectors` is zero or not finite."
    with torch.no_grad():
        if not torch.equal(model(batch).logits, logits):
            yield "it gives something else once `vectors` and `read` were called."
        for i, single in enumerate(singles):
            if not torch.allclose(vectors[i, present[i]], model.vectors(single)[0], atol=TOLERANCE):
                yield "its `vectors` depend on the padding or on the other texts of the batch."
                return


def _check_attention(model: Any, batch: Batch, output: Any, part: str) -> Iterator[str]:
    """Weights [B, L], or with heads [B, K, L] whose mean is the attention."""
    weights = getattr(output, part, None)
    if weights is None:
        yield f"it provides '{part}', but its output has none."
        return
    heads = part == "heads"
    its, several, shape = "its attention", "attentions", "B, L"
    if heads:
        its, several, shape = "one of its heads", "sets of heads", "B, K, L"
    if weights.dim() != 2 + heads or (len(weights), weights.shape[-1]) != batch.ids.shape:
        yield f"its `{part}` came as {tuple(weights.shape)}, not [{shape}]."
        return
    yield from _check_weights(weights, batch.attendable[:, None] if heads else batch.attendable, its)
    if heads and (output.attention is None or not torch.allclose(output.attention, weights.mean(1), atol=TOLERANCE)):
        yield "its attention is not the mean of its heads."
    with torch.no_grad():
        encoded = model.encode(model.embedding(batch.ids), batch)
        again = model.decode(encoded, model.attend(encoded, batch))
        twice = model.decode(encoded, torch.stack([weights, weights.flip(0)]))
    if not torch.allclose(again, output.logits, atol=TOLERANCE):
        yield "its parts encode, attend and decode do not give what the whole gives."
    if twice.shape != (2, *output.logits.shape) or not torch.allclose(twice[0], output.logits, atol=TOLERANCE):
        yield f"its decode does not take several {several} at once, [..., {shape}]."


def check_measure(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A measure gives one finite number per word, the same for any budget and order, on every model it fits."""
    yield from _documented(declaration, "direction", "equation")
    options = _defaults(declaration)
    unset = [name for name in declaration.required if not options[name]]
    if unset:
        yield Untried(f"it was not tried, because only a config can set its option '{unset[0]}'")
        return
    fitting = [model for model in registry.all("model") if needed(declaration, options) <= set(model.provides)]
    models = [model for model in fitting if model.reads != "pixels" or declaration.pixels]
    if not models:
        yield f"no registered model provides what it needs: {', '.join(sorted(needed(declaration, options)))}."
        return
    told: dict[str, list[str]] = {}
    # Models that differ in their checkpoint alone are the same here, and those of pictures that differ in size.
    alike: dict[str, list[Declaration]] = {}
    for model in models:
        made = "" if model.reads == "pixels" else f" {_example_options(model)}"
        alike.setdefault(f"{model.pointer}{made}", []).append(model)
    few = _with_few_steps(options)
    for same in tqdm(alike.values(), f"measure {declaration.name}", unit="model", leave=False, disable=None):
        faults = list(_check_measure_on(declaration, few, same[0]))
        # A measure may ask for more steps than that.
        if faults and few != options:
            faults = list(_check_measure_on(declaration, options, same[0]))
        for fault in faults:
            told.setdefault(fault, []).extend(f"'{model.name}'" for model in same)
    for fault, names in told.items():
        where = "every model" if len(names) == len(models) > 1 else f"model {', '.join(names)}"
        yield type(fault)(f"on {where} {fault}")
    yield Tried(f"{len(models)} {'model' if len(models) == 1 else 'models'}")


def _with_few_steps(options: dict[str, Any]) -> dict[str, Any]:
    many = {name: value for name, value in options.items() if name in ("steps", "samples") and isinstance(value, int)}
    return {**options, **{name: min(value, FEW_STEPS) for name, value in many.items()}}


def _check_measure_on(declaration: Declaration, options: dict[str, Any], model: Declaration) -> Iterator[str]:
    """One model's faults of a measure. What it cannot explain of second texts, it may decline."""
    instances = examples_for(model, splits=[*declaration.splits, "test"])
    try:
        yield from _check_explaining(declaration, options, model, instances)
    except Exception as error:
        declined = isinstance(error, PlumblineError) and instances.pair is not None
        yield Untried(f"it explains nothing: {error}") if declined else failure(error, declaration.path)


def _check_explaining(
    declaration: Declaration, options: dict[str, Any], model: Declaration, instances: Instances
) -> Iterator[str]:
    measure = load(declaration.pointer)
    seconds = 0 if instances.pair is None else [len(ids) for ids in instances.pair]
    longest = int((instances.lengths + np.array(seconds)).max())

    def evaluator(budget: int) -> Evaluator:
        """A model as measures meet it: its parameters take no gradients."""
        return Evaluator(example_model(model, paired=needs_pairs(model)).requires_grad_(False), 0, budget)

    def explain(asked: Evaluator, some: Instances) -> Any:
        with torch.enable_grad():
            return measure(asked, some, **options)

    asked, given = evaluator(ENOUGH), deepcopy(instances)
    state, before = deepcopy(asked.model.state_dict()), asked.probabilities(instances)
    found = explain(asked, given)
    faults = [*_check_inputs(asked, state, before, given, instances), *_check_told(found, instances)]
    faults += [
        f"it tells of '{part}', but its Importances have no `{part}`."
        for part in sorted(tells(declaration, options) - ({"pair"} if instances.pair is None else set()))
        if not faults and getattr(found, part, None) is None
    ]
    yield from faults
    if faults:
        return
    whole = _parts(found)
    values = np.concatenate(whole["scores"])
    least, greatest = declaration.range or (None, None)
    if (least is not None and values.min() < least - TOLERANCE) or (
        greatest is not None and values.max() > greatest + TOLERANCE
    ):
        reach = f"from {values.min():.3g} to {values.max():.3g}"
        yield f"its scores reach {reach}, outside its declared range {declaration.range}."
    everything = np.arange(len(instances))
    again = {
        AGAIN: (everything, ENOUGH),
        ORDER: (np.random.default_rng(1).permutation(len(instances)), ENOUGH),
        BATCH: (everything, longest),
    }
    for fault, (index, budget) in again.items():
        others = _parts(explain(evaluator(budget), instances.take(index)))
        if not all(_alike([rows[i] for i in index], others.get(part)) for part, rows in whole.items()):
            # It differs in the runs that follow, too.
            yield fault
            return


def _check_inputs(
    evaluator: Evaluator, state: dict[str, torch.Tensor], before: np.ndarray, given: Instances, instances: Instances
) -> Iterator[str]:
    """What a measure is given serves other measures too, and must be left as it is."""
    for column in (field.name for field in fields(Instances)):
        own, usual = getattr(given, column), getattr(instances, column)
        if usual is not None and not (len(own) == len(usual) and all(map(np.array_equal, own, usual))):
            yield f"it writes into the `{column}` of the instances that it is given; copy what you change."
            return
    after = evaluator.model.state_dict()
    if any(not torch.equal(tensor, after[name]) for name, tensor in state.items()):
        yield "it changes the weights of the model, which other measures read after it; work on a copy of them."
    elif evaluator.model.training or not np.array_equal(evaluator.probabilities(instances), before):
        yield "it leaves the model other than it was (in training mode, or with a hook); put back what you change."


def _check_told(found: Any, instances: Instances) -> Iterator[str]:
    """One finite number for each word; of each word of second texts, and each special token, if it tells of them."""
    if not isinstance(found, Importances):
        yield f"it returns {_named(found)}; end with `return Importances(scores)`."
        return
    count = range(len(instances))
    words = [int(free.sum()) for free in instances.maskable]
    specials = [len(free) - n for free, n in zip(instances.maskable, words, strict=True)]
    yield from _check_rows(found.scores, words, "words")
    if found.pair is not None:
        if instances.pair is None:
            yield "it gives scores of second texts where there are none."
            return
        pair = [int(instances.pair_words(i).sum()) for i in count]
        specials = [specials[i] + len(instances.pair[i]) - pair[i] for i in count]
        yield from _check_rows(found.pair, pair, "words in its second text")
    if found.specials is not None:
        yield from _check_rows(found.specials, specials, "special tokens")
    if found.target is not None and np.shape(found.target) != (len(instances),):
        yield f"its `target` has shape {np.shape(found.target)}, not ({len(instances)},): one class for each text."
    elif found.target is not None and np.asarray(found.target).dtype.kind not in "iu":
        yield f"its `target` is of type {np.asarray(found.target).dtype}; give the numbers of classes."


def _check_rows(rows: Sequence[Any], counts: list[int], what: str) -> Iterator[str]:
    """Scores, text by text. The first fault tells enough."""
    if len(rows) != len(counts):
        yield f"it gives scores for {len(rows)} of {len(counts)} texts; give one array for each."
        return
    for i, (found, count) in enumerate(zip(rows, counts, strict=True)):
        if not isinstance(found, np.ndarray):
            yield (
                f"its scores of text {i} are {_named(found)}; give a NumPy array, as `.detach().cpu().numpy()` of a "
                "tensor does."
            )
        elif found.dtype.kind not in "fiub":
            yield f"its scores of text {i} are of type {found.dtype}; give real numbers, such as float32."
        elif found.shape != (count,):
            yield (
                f"it gives scores of shape {found.shape} for text {i}, which has {count} {what}; give one number for "
                "each of them, and none for padding or other tokens."
            )
        elif not np.isfinite(_as_stored(found)).all():
            yield f"its scores of text {i} are not finite ({_as_stored(found)[~np.isfinite(_as_stored(found))][0]})."
        else:
            continue
        return


def _as_stored(scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _parts(found: Importances) -> dict[str, Sequence[Any]]:
    """All that a measure tells, text by text."""
    told = {part: getattr(found, part) for part in ("scores", "pair", "specials", "target")}
    return {part: rows for part, rows in told.items() if rows is not None}


def _alike(some: Sequence[Any], others: Sequence[Any] | None) -> bool:
    return (
        others is not None
        and len(some) == len(others)
        and all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, atol=TOLERANCE) for a, b in zip(some, others, strict=True)
        )
    )


def check_protocol(declaration: Declaration) -> Iterator[str]:
    """A protocol turns importances into valid rows of scores, deterministically, and scores into its table."""
    yield from _documented(declaration, "equation")
    if declaration.name in TABLES:
        yield f"every study has a table '{declaration.name}'; choose another name."
    protocol = load(declaration.pointer)(**_defaults(declaration))
    lacking = [part for part in ("table", "score", "summarise") if not hasattr(protocol, part)]
    if lacking:
        yield from (f"it has no `{part}`." for part in lacking)
        return
    taken = [kind for kind, artefact in OWN_TABLES.items() if store.ARTEFACTS[kind] is not artefact]
    if taken:
        yield f"its file declares the table '{taken[0]}', which is plumbline's own; choose another name."
        return
    kinds = {"table": protocol.table, "scores": scores_of(protocol)}
    for part, kind in kinds.items():
        if kind not in store.ARTEFACTS:
            yield f"its {part} '{kind}' is not declared; call plumbline.store.declare in its file."
            return
    with TemporaryDirectory() as folder:
        explained = example_explained(Path(folder), _example_of(declaration))
        try:
            first, again = (_stored(Path(folder), kinds["scores"], protocol.score(explained)) for _ in range(2))
        except PlumblineError as error:
            yield f"its scores cannot be stored: {_without_path(error)}"
            return
        if not first.equals(again):
            yield "its scores differ when it is run again."
        yield from _check_summary(protocol, first, Path(folder))
        yield Tried(f"{len(first)} rows of scores")


def _check_summary(protocol: Any, scores: pa.Table, folder: Path) -> Iterator[str]:
    """A summary is a table of pandas with the columns that are declared, but for those that name the cell."""
    summary = protocol.summarise(scores)
    if not isinstance(summary, pd.DataFrame):
        yield f"its summarise returns {_named(summary)}, not a DataFrame of pandas."
        return
    expected = set(store.ARTEFACTS[protocol.table].schema.names) - set(store.CELL)
    if set(summary.columns) != expected:
        differing = ", ".join(sorted(set(summary.columns) ^ expected))
        yield f"its summary differs from its declared table in {differing}."
        return
    cell = summary.assign(**dict.fromkeys(store.CELL, "example"))
    try:
        _stored(folder, protocol.table, {column: cell[column] for column in cell})
    except PlumblineError as error:
        yield f"its summary cannot be stored: {_without_path(error)}"


def _stored(folder: Path, kind: str, columns: Any) -> pa.Table:
    """A table as it is read after it was written."""
    path = folder / "written.parquet"
    store.write_table(path, kind, columns)
    return store.read_table(path, kind)


def _without_path(error: PlumblineError) -> str:
    """What is wrong with a table, without where it would have been."""
    return str(error).partition("written.parquet': ")[2] or str(error)


def _example_of(declaration: Declaration) -> str:
    """A model that has what a protocol needs."""
    needs = set(declaration.needs)
    fitting = [m.name for m in Registry().all("model") if needs <= set(m.provides) and reads_one_text(m)]
    return next((name for name in ("average-tanh", *fitting) if name in fitting), "average-tanh")


def example_explained(folder: Path, model: str = "average-tanh") -> Explained:
    """A small cell with three measures, two seeds and random importances."""
    instances = example_instances(24)
    random = np.random.default_rng(2)
    seeds = [0, 1]
    keys = {
        "seed": np.repeat(seeds, len(instances)),
        "split": np.tile(instances.split, len(seeds)),
        "instance": np.tile(instances.instance, len(seeds)),
    }
    rows = len(keys["seed"])
    share = random.random(rows)
    probabilities = [np.array([p, 1 - p], dtype=np.float32) for p in share]
    labels = np.tile(instances.label, len(seeds))
    predictions = folder / "predictions.parquet"
    store.write_table(predictions, "predictions", {**keys, "label": labels, "probabilities": probabilities})
    words = [int(free.sum()) for free in instances.maskable] * len(seeds)
    importances = {}
    for measure in ("attention", "gradient", "selection"):
        importances[measure] = folder / f"{measure}.parquet"
        scores = [random.random(n).astype(np.float32) for n in words]
        target = pa.nulls(rows, pa.int32())
        store.write_table(importances[measure], "attributions", {**keys, "target": target, "scores": scores})
    texts = folder / "instances.parquet"
    store.write_table(texts, "instances", _instances_table(instances))
    models = partial(_example_evaluators, seeds, model)
    return Explained(predictions, importances, seeds, ["test"], texts, models)


def _instances_table(instances: Instances) -> dict[str, Any]:
    columns = {name: getattr(instances, name) for name in ("split", "instance", "label", "ids", "maskable")}
    tokens = [[f"w{id_}" for id_ in ids] for ids in instances.ids]
    optional = dict.fromkeys(("tokens_b", "ids_b", "maskable_b", "answers", "evidence"), [None] * len(instances))
    return columns | {"tokens": tokens} | optional


def _example_evaluators(seeds: list[int], model: str) -> Iterator[Evaluator]:
    """A model for each seed."""
    declaration = Registry().get("model", model)
    for seed in seeds:
        yield Evaluator(example_model(declaration, seed).requires_grad_(False), seed, ENOUGH)


def examine(kind: Kind, name: str, registry: Registry, raw: Path | None = None) -> list[str]:
    """All that is told of one registered object: faults, and notes of what was tried. `raw` is the folder of the
    publishers' files; without it, datasets are not read."""
    declaration = registry.get(kind, name)
    faults: dict[str, Callable[[], Iterator[str]]] = {
        "metric": lambda: check_metric(declaration),
        "dataset": lambda: check_dataset(declaration, raw),
        "manipulation": lambda: check_manipulation(declaration),
        "model": lambda: check_model(declaration, registry),
        "measure": lambda: check_measure(declaration, registry),
        "protocol": lambda: check_protocol(declaration),
    }
    told = list(_stated(declaration))
    if told:
        return told
    try:
        # One by one, so that what was found before an exception is told.
        for fault in faults[kind]():
            told.append(fault)
    except PlumblineError as error:
        told.append(str(error).removeprefix(f"Dataset '{name}'").lstrip(",: "))
    except Exception as error:
        told.append(failure(error, declaration.path))
    return told


def check(kind: Kind, name: str, registry: Registry, raw: Path | None = None) -> list[str]:
    """All that is wrong with one registered object, as sentences."""
    told = examine(kind, name, registry, raw)
    return [f"The {kind} '{name}': {fault}" for fault in told if not isinstance(fault, Note)]
