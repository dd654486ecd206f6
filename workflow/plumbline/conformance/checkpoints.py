"""Small random checkpoints, with which models of the transformers library are checked."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from plumbline.data.subwords import without_bars

WORDS, DIMENSIONS = 40, 8
# The same shape in the words of most configs and of GPT-2's.
SHAPE: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 2 * DIMENSIONS,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 4 * DIMENSIONS,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}
GPT2: dict[str, Any] = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
ROBERTA: dict[str, Any] = {"type_vocab_size": 1, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


@cache
def _folder(causal: bool) -> "TemporaryDirectory[str]":
    """A folder with a checkpoint, which exists as long as the process."""
    folder = TemporaryDirectory()
    torch.manual_seed(0)
    if causal:
        save_checkpoint(folder.name, "gpt2", causal=True, **GPT2)
    else:
        save_checkpoint(folder.name, "roberta", **ROBERTA)
    return folder


def example_checkpoint(causal: bool = False) -> str:
    """The folder of a small RoBERTa or, if `causal`, of a small GPT-2, with random weights and no dropout."""
    return _folder(causal).name


def save_checkpoint(folder: str | Path, model_type: str, causal: bool = False, **options: Any) -> None:
    """A small model of any type of the transformers library with random weights; a causal one with a tokenizer, whose
    words are numbers."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    specials = dict.fromkeys(("bos_token_id", "eos_token_id"), WORDS - 1) if causal else {}
    config = AutoConfig.for_model(model_type, **{**SHAPE, **specials, **options})
    with without_bars():
        (AutoModelForCausalLM if causal else AutoModel).from_config(config).save_pretrained(folder)
    if causal:
        save_number_tokenizer(folder)


def save_number_tokenizer(folder: str | Path) -> None:
    """A tokenizer of numbers below WORDS - 1, which are their own ids; all else is unknown."""
    unknown = {"id": WORDS - 1, "content": "[UNK]", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    vocabulary = {str(number): number for number in range(WORDS - 1)} | {"[UNK]": WORDS - 1}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [unknown | flags],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "eos_token": "[UNK]"}
    for file, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", names)):
        (Path(folder) / file).write_text(json.dumps(content), encoding="utf-8")
