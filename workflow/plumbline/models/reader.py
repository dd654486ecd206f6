"""Models of the transformers library that read vectors in place of token ids."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import Any

import torch
from torch import nn

from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.models.pretrained import Probe, probe
from plumbline.models.repeatable import RepeatableGradients
from plumbline.models.sequence import Sequence, sequence_of
from plumbline.models.value_norms import VALUES, recorded_norms

FUSED, EXPLICIT = "sdpa", "eager"
DECODER = "an encoder with a decoder; use an encoder such as BERT, ModernBERT or DeBERTa, or a causal language model"


class VectorReader(nn.Module):
    """A transformers model without its input embeddings, which are `embedding`.

    Anything that maps input embeddings and a mask of padding to an output fits: positions are the model's own affair,
    since the sequence has no padding but at its end. Attention is computed by PyTorch's fused kernels where the model
    supports them, and step by step where its weights are asked for.
    """

    embedding: nn.Embedding
    encoder: Any
    classes: int

    def adopt(self, encoder: Any, checkpoint: str, causal: bool = False) -> None:
        """Take the model as `encoder`, and its input embeddings as `embedding`; refuse what cannot be explained."""
        if fault := DECODER if encoder.config.is_encoder_decoder else _fault(probe(encoder), causal):
            raise PlumblineError(f"The checkpoint '{checkpoint}' has the type '{encoder.config.model_type}', {fault}.")
        self.embedding = encoder.get_input_embeddings()
        encoder.set_input_embeddings(nn.Identity())
        self.encoder = encoder
        self.longest = _positions(encoder)
        # The number of token types, with which some models tell second texts from first ones.
        accepted = signature(encoder.forward).parameters
        self.types: int = getattr(encoder.config, "type_vocab_size", 0) if "token_type_ids" in accepted else 0

    @property
    def pair_embedding(self) -> nn.Embedding:
        """The word vectors, which both texts share."""
        return self.embedding

    @property
    def input_layer(self) -> nn.Module | None:
        """The layer that adds positions to word vectors and normalises them; None if the first layer reads these alone,
        as in models with rotary positions."""
        return getattr(self.encoder.base_model, "embeddings", None)

    def sequence(self, batch: Batch) -> Sequence:
        """The sequence that the model reads."""
        return sequence_of(batch, self.longest)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        sequence = self.sequence(batch)
        with RepeatableGradients() if self.training else nullcontext():
            return self._output(batch, sequence, sequence.arrange(self.word_vectors(batch, embedded, pair_embedded)))

    def vectors(self, batch: Batch) -> torch.Tensor:
        """The input of the first layer [B, T, d], T = L + M: sums of word and position vectors, after the norm, or word
        vectors alone, as the model has it.

        Those of second texts follow the padded texts. They include dropout in training mode only.
        """
        words, sequence = self.word_vectors(batch), self.sequence(batch)
        if self.input_layer is None:
            return words
        outputs: list[torch.Tensor] = []
        with _hooked(self.input_layer, lambda module, inputs, output: outputs.append(output)):
            self.run(sequence, sequence.arrange(words))
        return sequence.restore(outputs[0])

    def read(self, batch: Batch, vectors: torch.Tensor) -> Output:
        """The output for the given inputs of the first layer [B, T, d]."""
        sequence = self.sequence(batch)
        arranged = sequence.arrange(vectors)
        if self.input_layer is None:
            return self._output(batch, sequence, arranged)
        with _hooked(self.input_layer, lambda module, inputs, output: arranged):
            return self._output(batch, sequence, sequence.arrange(self.word_vectors(batch)))

    def layers(self, batch: Batch) -> torch.Tensor:
        """The self-attention [B, layers, heads, T, T] over texts and second texts."""
        sequence = self.sequence(batch)
        # Fused kernels do not return weights.
        with self._attention(EXPLICIT) if self.encoder.config._attn_implementation == FUSED else nullcontext():
            outputs = self.run(sequence, sequence.arrange(self.word_vectors(batch)), output_attentions=True)
        width = sequence.present.shape[1]
        attentions = outputs.attentions or ()
        if not attentions or any(layer is None or layer.shape[-2:] != (width, width) for layer in attentions):
            raise PlumblineError(
                f"A model of type '{self.encoder.config.model_type}' does not return the attention of all tokens over "
                "all tokens, which this measure needs; use another model or measure."
            )
        # Both the attending and the attended tokens return to their places.
        rows = sequence.restore(torch.stack(attentions, dim=1).movedim(3, 1))
        return sequence.restore(rows.movedim(-1, 1)).permute(0, 3, 4, 2, 1)

    def value_norms(self, batch: Batch) -> torch.Tensor:
        """The norm of each head's value vector of each token [B, layers, heads, T]."""
        implementation = self.encoder.config._attn_implementation
        if implementation == EXPLICIT or not getattr(self.encoder, "_supports_attention_backend", False):
            raise PlumblineError(
                f"A model of type '{self.encoder.config.model_type}' does not show the value vectors of its attention, "
                "which this measure needs; use another model or measure."
            )
        sequence = self.sequence(batch)
        with recorded_norms(implementation) as norms, self._attention(VALUES):
            self.run(sequence, sequence.arrange(self.word_vectors(batch)))
        return sequence.restore(torch.stack(norms, dim=1).movedim(3, 1)).movedim(1, 3)

    def word_vectors(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Word vectors [B, T, d] of both texts; the given ones replace the model's."""
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        if batch.pair is None:
            return embedded
        pair_embedded = self.embedding(batch.pair.ids) if pair_embedded is None else pair_embedded
        return torch.cat([embedded, pair_embedded], dim=1)

    def run(self, sequence: Sequence, embedded: torch.Tensor, **options: Any) -> Any:
        """The output of the transformers model for word vectors [B, T, d] by position."""
        if self.types:
            options["token_type_ids"] = sequence.second.clamp(max=self.types - 1)
        return self.encoder(inputs_embeds=embedded, attention_mask=sequence.present.long(), **options)

    def _logits(self, sequence: Sequence, embedded: torch.Tensor) -> torch.Tensor:
        """The logits [B, C] for word vectors [B, T, d] by position."""
        raise NotImplementedError

    def _output(self, batch: Batch, sequence: Sequence, embedded: torch.Tensor) -> Output:
        logits, excluded = self._logits(sequence, embedded), batch.excluded(self.classes)
        return Output(logits if excluded is None else logits.masked_fill(excluded, float("-inf")))

    @contextmanager
    def _attention(self, implementation: str) -> Iterator[None]:
        """Compute attention by another implementation of the library."""
        before = self.encoder.config._attn_implementation
        self.encoder.set_attn_implementation(implementation)
        try:
            yield
        finally:
            self.encoder.set_attn_implementation(before)


@contextmanager
def _hooked(module: nn.Module, hook: Callable[..., torch.Tensor | None]) -> Iterator[None]:
    """Register a forward hook; a tensor that it returns replaces the module's output."""
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _fault(tried: Probe, causal: bool) -> str:
    """Why a model cannot be used, or nothing."""
    if tried.error:
        return f"which cannot read word vectors in place of tokens ({tried.error}); use another model"
    if tried.causal and not causal:
        return "a causal language model; save it with `AutoModelForCausalLM`, and write `kind: causal` with a `prompt`"
    if causal and not tried.causal:
        return "which is not a causal language model; leave out `kind: causal`"
    return "whose output depends on the padding after a text; use another model" if tried.padding else ""


def _positions(encoder: Any) -> int:
    """The most tokens that a model has positions for."""
    table = getattr(getattr(encoder.base_model, "embeddings", None), "position_embeddings", None)
    # If the position embeddings have a padding index, as RoBERTa's do, texts start after it.
    padding = getattr(table, "padding_idx", None)
    positions = getattr(encoder.config, "max_position_embeddings", None) or sys.maxsize
    return positions - (0 if padding is None else padding + 1)
