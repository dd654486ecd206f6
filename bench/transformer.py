"""Transformers of RoBERTa-base's shape: fine-tuning compared with a plain loop, and explanations in each precision."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from data import defaults, spread
from sizes import Sizes
from timing import Row, compare, seconds
from torch.nn.functional import cross_entropy

from plumbline.attribution.run import MeasureCall, attribute
from plumbline.config.recipes import Training
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.models.budget import Budget
from plumbline.models.evaluator import Evaluator
from plumbline.models.reader import EXPLICIT
from plumbline.models.transformer import TransformerClassifier
from plumbline.protocols.agreement.rank_statistics import kendall_tau
from plumbline.registry import Registry, load
from plumbline.runtime.devices import PRECISIONS, arithmetic, mixed_precision
from plumbline.store import read_table
from plumbline.training.learner import Learner, batch_order
from plumbline.training.optimisers import parameter_groups
from plumbline.training.trainer import SeedSetup, split_rows, train_seeds

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
# Median and spread of the logarithm of a text's subwords, which the lengths of SST and of IMDB roughly follow.
LENGTHS = {"SST": (21, 0.45), "IMDB": (230, 0.6)}
TEXTS = {"SST": 3200, "IMDB": 1600}
LONGEST, FIRST, LAST = 512, 0, 2
COSTLY = {"integrated-gradient": 50, "integrated-gradient-pad": 50, "lime": 1000}
# Texts on which ranks are compared.
RANKED = 200
# Measures whose passes may be less exact than float32.
ROUNDED = (
    "integrated-gradient",
    "integrated-gradient-pad",
    "grad-shap",
    "lime",
    "rollout",
    "leave-one-out",
    "occlusion",
)


def texts(count: int, median: float, deviation: float) -> Instances:
    """Random subwords between special tokens."""
    random = np.random.default_rng(0)
    lengths = np.clip(np.exp(random.normal(np.log(median), deviation, count)).round().astype(int), 3, LONGEST - 2)
    # Their frequencies fall with their rank, as in language.
    frequencies = 1 / np.arange(1, 50_000)
    drawn = random.choice(len(frequencies), lengths.sum(), p=frequencies / frequencies.sum()) + 10
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    ids = [np.concatenate([[FIRST], part, [LAST]]).astype(np.int32) for part in parts]
    words = [np.concatenate([[False], np.ones(n, dtype=bool), [False]]) for n in lengths]
    return Instances(np.array(["train"] * count), np.arange(count), np.arange(count, dtype=np.int32) % 2, ids, words)


def save_random(folder: str, small: bool) -> None:
    """A checkpoint of RoBERTa-base's shape with random weights."""
    from transformers import RobertaConfig, RobertaModel

    config = RobertaConfig(
        vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1, **(SMALL if small else {})
    )
    RobertaModel(config).save_pretrained(folder)


def plain(checkpoint: str, instances: Instances, training: Training, attention: str, device: str) -> Callable[[], None]:
    """An epoch of a usual loop: bfloat16 by autocast, the fused AdamW, batches padded to their longest text."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.from_pretrained(checkpoint)
    model: Any = AutoModelForSequenceClassification.from_config(config, attn_implementation=attention)
    model.to(device).train()
    groups = [{"params": p, "weight_decay": decay} for p, decay in parameter_groups(model.named_parameters(), training)]
    optimiser = torch.optim.AdamW(groups, lr=training.learning_rate, betas=(0.9, training.beta2), fused=True)
    random = np.random.default_rng(0)

    def epoch() -> None:
        for index in batch_order(instances.lengths, training, random):
            rows = [torch.from_numpy(instances.ids[i]).long() for i in index]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1).to(device)
            labels = torch.from_numpy(instances.label[index]).long().to(device)
            with mixed_precision(device, enabled=True):
                logits = model(input_ids=ids, attention_mask=(ids != 1).long()).logits
            optimiser.zero_grad()
            cross_entropy(logits.float(), labels).backward()
            optimiser.step()

    return epoch


class Ours:
    """Seeds that fine-tune a checkpoint side by side."""

    def __init__(self, checkpoint: str, instances: Instances, training: Training, seeds: int, device: str) -> None:
        rows = split_rows({"train": instances, "dev": instances.take(np.arange(8))}, 2, training, device)
        self.learners = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = TransformerClassifier(None, 2, checkpoint=checkpoint)
            self.learners.append(Learner(model, seed, rows, training, Budget(16_384), record=device == "cuda"))

    def epoch(self) -> None:
        """The steps of the next epoch."""
        steps = [learner.begin_epoch() for learner in self.learners]
        for number in range(len(steps[0])):
            for learner in self.learners:
                learner.step(number)

    def weights(self) -> torch.Tensor:
        """All weights of the first seed."""
        return torch.cat([p.detach().flatten() for p in self.learners[0].model.parameters()])


def peak() -> float:
    """Operations per second of a large product of bfloat16 matrices."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    taken = min(seconds(lambda: [a @ a for _ in range(20)]) for _ in range(3))
    return 20 * 2 * 8192**3 / taken


def fine_tuning(checkpoint: str, device: str, sizes: Sizes) -> Iterator[Row | str]:
    """An epoch after the first two, which set up and record the steps; and whether two runs end in the same bits."""
    recipe = Registry().get("model", "roberta").training
    best = peak() if device == "cuda" else float("nan")
    for name, lengths in LENGTHS.items() if device == "cuda" else [("SST", LENGTHS["SST"])]:
        instances = texts(min(sizes.training.texts, TEXTS[name]), *lengths)
        training = Training(**{**recipe, "epochs": 4})
        taken: dict[str, float] = {}
        for attention in ("sdpa", "eager"):
            epoch = plain(checkpoint, instances, training, attention, device)
            taken[attention] = min(seconds(epoch) for _ in range(2))
        ends = []
        for seeds in (1, 1, 3):
            begun = time.perf_counter()
            ours = Ours(checkpoint, instances, training, seeds, device)
            built = time.perf_counter() - begun
            epochs = [seconds(ours.epoch) for _ in range(3)]
            taken[f"{seeds}"] = min(epochs) / seeds
            start = f"{built:.1f} s to build the models, {sum(epochs) - 3 * min(epochs):.1f} s to record their steps"
            ends.append(ours.weights())
            flops = 6 * sum(p.numel() for n, p in ours.learners[0].model.encoder.named_parameters() if "embed" not in n)
            del ours
        slow, fast = min(taken["sdpa"], taken["eager"]), taken["1"]
        tokens, steps = instances.lengths.sum(), -(-len(instances.ids) // training.batch_size)
        rates = [f"{tokens / taken[key]:,.0f}" for key in ("sdpa", "eager", "1", "3")]
        shares = [f"{flops * tokens / taken[key] / best:.1%}" for key in ("sdpa", "eager", "1", "3")]
        times = [f"{taken[key] / steps * 1e3:.1f}" for key in ("sdpa", "eager", "1", "3")]
        note = f"sdpa / eager / ours / ours with three seeds, per model: {' / '.join(times)} ms per step, "
        note += f"{' / '.join(rates)} tokens/s, {' / '.join(shares)} of {best / 1e12:.0f} TFLOP/s"
        yield Row(f"fine-tuning, {len(instances.ids)} texts of {name}'s lengths, bfloat16, {device}", slow, fast, note)
        same = "the same bits" if torch.equal(ends[0], ends[1]) else "other bits"
        beside = "the same" if torch.equal(ends[0], ends[2]) else "others"
        yield f"fine-tuning, {name}'s lengths, {device}: two runs end in {same}; with two seeds beside it in {beside}"
        yield f"fine-tuning, {name}'s lengths, {device}, three seeds: {start}"


def building(checkpoint: str, device: str) -> Iterator[Row]:
    """A trained model, built and given its weights, by transformers alone and here."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    trained = TransformerClassifier(None, 2, checkpoint=checkpoint)
    state, vectors = trained.state_dict(), trained.embedding.weight.detach()
    config = AutoConfig.from_pretrained(checkpoint)
    whole = AutoModelForSequenceClassification.from_config(config).state_dict()

    def plain() -> None:
        model = AutoModelForSequenceClassification.from_config(config)
        model.load_state_dict(whole)
        model.to(device)

    def ours() -> None:
        model = TransformerClassifier(vectors, 2, checkpoint=checkpoint)
        model.load_state_dict(state)
        model.to(device)

    yield compare(f"building a trained model, {device}", plain, ours, turns=3)


class Padded(Evaluator):
    """An evaluator that pads the texts of a pass to the longest, however many copies of them it runs, and computes
    attention step by step."""

    def each(self, texts: Any, work: Any, copies: int = 1) -> None:
        """Call `work` without regard to copies."""
        with self.model._attention(EXPLICIT):
            super().each(texts, work, 1)


@contextmanager
def passes(call: MeasureCall, precision: str) -> Iterator[None]:
    """Compute a measure in a given precision."""
    function: Any = call.function
    before = getattr(function, "precision", None)
    function.precision = precision
    try:
        yield
    finally:
        if before is None:
            del function.precision
        else:
            function.precision = before


def call_of(name: str, **options: object) -> MeasureCall:
    """A registered measure with its defaults, except for `options`."""
    declared = Registry().get("measure", name)
    return MeasureCall(load(declared.pointer), {**defaults(declared), **options})


def explanations(checkpoint: str, device: str, sizes: Sizes) -> Iterator[Row]:
    """Costly measures of short texts: padded to the longest in float32, then in passes of nearly one length."""
    instances = texts(sizes.attribution.texts, *LENGTHS["SST"])
    torch.manual_seed(0)
    model = TransformerClassifier(None, 2, checkpoint=checkpoint).requires_grad_(False)
    for name, count in COSTLY.items():
        some = instances.take(spread(instances, 60)) if name == "lime" and len(instances.ids) > 60 else instances
        key, count = ("samples", min(count, sizes.lime)) if name == "lime" else ("steps", min(count, sizes.samples))
        call = call_of(name, **{key: count}, **({} if name == "lime" else {"tolerance": 0.0}))
        own = getattr(call.function, "precision", "float32")

        def run(kind: type[Evaluator], precision: str, some: Any = some, call: Any = call, name: str = name) -> None:
            with passes(call, precision):
                attribute([kind(model, 0, None, device)], some, {name: call})

        run(Evaluator, own)
        slow = seconds(partial(run, Padded, "float32"))
        fast = {p: min(seconds(partial(run, Evaluator, p)) for _ in range(2)) for p in PRECISIONS}
        what = f"{name}, {key}: {count}, {len(some.ids)} texts of SST's lengths, {own}, {device}"
        yield Row(what, slow, fast[own], ", ".join(f"{p} {taken:.3f} s" for p, taken in fast.items()))
        first, model._first_token = model._first_token, []
        whole = min(seconds(partial(run, Evaluator, own)) for _ in range(2))
        model._first_token = first
        yield Row(f"{name}, the last layer for all tokens or for the first alone, {own}, {device}", whole, fast[own])


def ranks(checkpoint: Path, subwords: Path, device: str, sizes: Sizes) -> Iterator[str]:
    """The smallest mean τ of each measure with its float32 scores, among seeds of a fine-tuned checkpoint."""
    table = read_table(subwords / "instances.parquet", INSTANCES)
    splits = {split: Instances.from_table(table, [split]) for split in ("train", "dev", "test")}
    training = Training(**Registry().get("model", "pretrained").training)
    rows = split_rows(splits, 2, training, device)
    build = partial(TransformerClassifier, None, 2, checkpoint=str(checkpoint))
    setup = SeedSetup(build, rows, training, record=device == "cuda")
    some = splits["test"].sampled(min(RANKED, sizes.attribution.texts), seed=0)
    evaluators = []
    for seed, trained in enumerate(train_seeds(setup, list(range(min(3, sizes.training.seeds))), Budget())):
        model = build()
        model.load_state_dict(trained.state)
        evaluators.append(Evaluator(model.requires_grad_(False), seed, None, device))
    for name in ROUNDED:
        call, scores = call_of(name), {}
        for precision in PRECISIONS:
            with passes(call, precision), arithmetic():
                scores[precision] = [attribute([e], some, {name: call})[0][name]["scores"] for e in evaluators]
        means = [f"{min(map(mean_tau, scores['float32'], scores[p])):.5f} ({p})" for p in PRECISIONS[1:]]
        yield f"ranks, {name}, {len(evaluators)} seeds, {len(some.ids)} texts: τ with float32 {', '.join(means)}"


def mean_tau(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Kendall's τ of two measures, averaged over texts with more than one score."""
    pairs = [np.stack(pair) for pair in zip(ours, theirs, strict=True) if len(pair[0]) > 1]
    return float(np.nanmean([kendall_tau(pair[None])[0][0, 0, 1] for pair in pairs]))


def rows(device: str, sizes: Sizes, checkpoint: Path | None, subwords: list[Path]) -> Iterator[Row | str]:
    """All of them; ranks only for a checkpoint with its subwords."""
    with TemporaryDirectory() as folder:
        save_random(folder, small=sizes.training.texts < 800)
        yield from building(folder, device)
        yield from fine_tuning(folder, device, sizes)
        yield from explanations(folder, device, sizes)
    if checkpoint:
        for folder_of_subwords in subwords:
            yield from ranks(checkpoint, folder_of_subwords, device, sizes)
