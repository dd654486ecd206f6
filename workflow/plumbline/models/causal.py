"""Causal language models that classify a text by the answer that continues a prompt."""

from collections.abc import Sequence as Rows
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad

from plumbline.config.checkpoints import find_checkpoint
from plumbline.config.prompts import prompt_end
from plumbline.data.subwords import ANSWER, load_tokenizer, neutral_id, reading_checkpoint
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.pretrained import load_causal
from plumbline.models.reader import VectorReader
from plumbline.models.sequence import Sequence
from plumbline.registry import model


@model(
    "causal",
    citation="Wolf et al. (2020), Transformers: State-of-the-Art Natural Language Processing. EMNLP: System "
    "Demonstrations.",
    provides=["gradient", "layers", "values", "next tokens"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    reads="subwords",
    required=["checkpoint", "prompt"],
    training={
        "epochs": 0,
        "batch_size": 16,
        "optimiser": "adamw",
        "learning_rate": 2e-5,
        "schedule": "linear",
        "warmup": 0.06,
        "weight_decay": 0.01,
        "no_decay": ["*bias", "*norm.weight", "*ln_*.weight"],
        "class_weights": "none",
        "reduction": "mean",
        "batching": "shuffle",
        "first_eligible_epoch": 1,
        "precision": "bfloat16",
    },
)
class CausalClassifier(VectorReader):
    """A causal language model whose classes are `answers` to a `prompt` around the text, such as "Review:
    {text}\\nSentiment:" with " negative" and " positive"; `{pair}` is the place of a second text.

    The logit of a class is that of its answer as the next token; if an answer has several tokens, all logits are summed
    log-probabilities. It is used as it is (`epochs: 0`) or fine-tuned on the answers. Words of the prompt are never
    masked or ranked.

    Options:
        prompt: Text around each instance, with `{text}` and, for pairs, `{pair}` in it.
        answers: Continuation of the prompt for each class, in their order; by default the classes' names after a space.
    """

    # The words of the prompt are not features.
    prompted = True
    _first: torch.Tensor

    def __init__(
        self,
        embedding: torch.Tensor | None,
        classes: int,
        *,
        checkpoint: str = "",
        prompt: str = "",
        answers: list[str] = [],  # noqa: B006
    ) -> None:
        super().__init__()
        tokenizer = load_tokenizer(checkpoint, prompted=True)
        self.answer_ids = answer_tokens(tokenizer, prompt_end(prompt), answers, classes)
        # The baseline of texts without a word.
        self.pad_id = neutral_id(tokenizer, "pad", "eos", "unk")
        # Tokens that no text has, so that none is predicted either.
        self.special_ids: list[int] = sorted(map(int, tokenizer.all_special_ids))
        with reading_checkpoint(checkpoint):
            encoder = load_causal(find_checkpoint(checkpoint), None if embedding is None else len(embedding))
        self.adopt(encoder, checkpoint, causal=True)
        self.classes = classes
        # The answers' first tokens [C], and the tokens of each answer of several. Buffers, so that a recorded step need
        # not copy them to the device.
        self.register_buffer("_first", torch.tensor([ids[0] for ids in self.answer_ids]), persistent=False)
        self._longer = {n: f"_answer_{n}" for n, ids in enumerate(self.answer_ids) if len(ids) > 1}
        for number, name in self._longer.items():
            self.register_buffer(name, torch.tensor(self.answer_ids[number]), persistent=False)
        self._keep_tied_weights()

    def _keep_tied_weights(self) -> None:
        """Store weights that the output layer shares with the embedding once."""
        head = self.encoder.get_output_embeddings()
        if head is None or head.weight is not self.embedding.weight:
            return
        (tied,) = [name for name, part in self.named_modules() if part is head]
        key = f"{tied}.weight"

        def drop(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
            state.pop(prefix + key)

        def add(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
            state[prefix + key] = state[f"{prefix}embedding.weight"]

        self.register_state_dict_post_hook(drop)
        self.register_load_state_dict_pre_hook(add)

    def readout(self, batch: Batch) -> torch.Tensor:
        """The weights [B, T] with which the output reads the last layer: all on the last token."""
        sequence = self.sequence(batch)
        last = sequence.order.gather(1, sequence.last[:, None])[:, 0]
        return nn.functional.one_hot(last, sequence.order.shape[1]).to(self.embedding.weight.dtype)

    @torch.no_grad()
    def next_tokens(self, batch: Batch, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The likeliest other tokens [B, T, k] in place of each token, given those before it, and their probabilities
        [B, T, k], scaled to sum 1; 0 for the first token, before which there is none. Special tokens are left out."""
        ids = batch.ids if batch.pair is None else torch.cat([batch.ids, batch.pair.ids], dim=1)
        sequence = self.sequence(batch)
        logits = self.run(sequence, sequence.arrange(self.word_vectors(batch))).logits[:, :-1].float()
        itself = sequence.arrange(ids)[:, 1:, None]
        logits = logits.scatter(2, itself, float("-inf"))
        logits[..., self.special_ids] = float("-inf")
        likeliest = logits.topk(min(count, logits.shape[-1]))
        # The logits at a position are those of the token after it.
        tokens, weights = (pad(part, (0, 0, 1, 0)) for part in (likeliest.indices, likeliest.values.softmax(-1)))
        return sequence.restore(tokens), sequence.restore(weights)

    def run(self, sequence: Sequence, embedded: torch.Tensor, **options: Any) -> Any:
        """The output of the transformers model, without a mask: no token attends to the padding after it."""
        return self.encoder(inputs_embeds=embedded, use_cache=False, **options)

    def _next_token_logits(self, sequence: Sequence, embedded: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The logits [B, n, V] of the tokens after these positions [B, n]."""

        def at_positions(module: nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            return (inputs[0].gather(1, positions[..., None].expand(-1, -1, inputs[0].shape[-1])),)

        # Only these positions go through the output layer, whatever the model then does to its logits.
        hook = self.encoder.get_output_embeddings().register_forward_pre_hook(at_positions, prepend=True)
        try:
            return self.run(sequence, embedded).logits
        finally:
            hook.remove()

    def _logits(self, sequence: Sequence, embedded: torch.Tensor) -> torch.Tensor:
        logits = self._next_token_logits(sequence, embedded, sequence.last[:, None])[:, 0]
        if not self._longer:
            return logits.index_select(1, self._first)
        scores = logits.log_softmax(-1).index_select(1, self._first)
        columns = {n: self._continued(sequence, embedded, getattr(self, name)) for n, name in self._longer.items()}
        zero = torch.zeros_like(scores[:, 0])
        return scores + torch.stack([columns.get(number, zero) for number in range(self.classes)], dim=1)

    def _continued(self, sequence: Sequence, embedded: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """The log-probability [B] of an answer's tokens [n] after the first, given the first and the prompt."""
        rows, count = len(embedded), len(answer) - 1
        places = sequence.last[:, None] + 1 + torch.arange(count, device=embedded.device)
        vectors = self.embedding(answer[:-1]).to(embedded.dtype).expand(rows, -1, -1)
        extended = pad(embedded, (0, 0, 0, count)).scatter(1, places[..., None].expand_as(vectors), vectors)
        logits = self._next_token_logits(sequence, extended, places)
        return logits.log_softmax(-1).gather(2, answer[1:].expand(rows, -1)[..., None]).sum((1, 2))


def answer_tokens(tokenizer: Any, end: str, answers: Rows[str], classes: int) -> list[list[int]]:
    """The token ids of each class's answer after the end of a prompt: some tokenizers mark the start of a text, so that
    an answer alone would have other tokens."""
    if len(answers) != classes:
        raise PlumblineError(
            f"`answers` has {len(answers)} entries, but the dataset has {classes} classes; write one for each, in the "
            "order of the classes."
        )
    tokenize = partial(tokenizer, add_special_tokens=False, verbose=False)
    before = [*map(int, tokenize(end)["input_ids"])]
    ids = []
    for answer in answers:
        together = [*map(int, tokenize(end + answer)["input_ids"])]
        if together[: len(before)] != before:
            raise PlumblineError(
                f"The answer {answer!r} changes the last token of the prompt, {end!r}; end the prompt without a space "
                "and begin the answer with it."
            )
        ids.append(together[len(before) :])
    for answer, tokens in zip(answers, ids, strict=True):
        if not 0 < len(tokens) <= ANSWER:
            count = f"more than {ANSWER} tokens" if tokens else "no token"
            raise PlumblineError(f"The answer {answer!r} has {count}; write a shorter one, or one that is not empty.")
        if sum(other[: len(tokens)] == tokens for other in ids) > 1:
            raise PlumblineError(
                f"The answer {answer!r} is also the start of another answer; write answers of which none begins with "
                "another."
            )
    return ids
