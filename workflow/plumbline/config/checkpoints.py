"""Checkpoints that a config names: their folders, and whether these can be used.

Nothing here imports torch or transformers, because every job reads the config.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError

CONFIG = "config.json"
# How the names of architectures of causal language models end in a checkpoint's config.
CAUSAL = ("ForCausalLM", "LMHeadModel")
# That of a model with a classification head.
CLASSIFIER = "ForSequenceClassification"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
WEIGHTS, PICKLED = "model*.safetensors", ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Names of models on the hub: `owner/model` or `model`.
HUB_NAME = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9][\w.-]*[A-Za-z0-9](/[\w-][\w.-]*)?", re.ASCII)
LONGEST_HUB_NAME = 96


def find_checkpoint(name: str) -> str:
    """The folder of a checkpoint: that of the given name, or the one inside an installed package of that name; else the
    name itself, which may be a model of the hub."""
    if os.path.isfile(Path(name, CONFIG)):
        return name
    package = name.replace("-", "_")
    spec = find_spec(package) if package.isidentifier() else None
    folders = (spec and spec.submodule_search_locations) or ()
    inside = [path for folder in folders for path in Path(folder).rglob(CONFIG)]
    return str(min(inside, key=lambda path: (len(path.parts), path)).parent) if inside else name


def check_location(where: str, name: str) -> Path | None:
    """The folder of a checkpoint, which must exist if the name looks like a path; None for a name of the hub."""
    if not name:
        raise PlumblineError(
            f"{where} is empty; give a folder, an installed package or a model on the Hugging Face Hub."
        )
    folder = Path(find_checkpoint(name))
    if not os.path.isdir(folder):
        is_path = name.startswith((".", "~", "/")) or folder.is_absolute()
        if is_path or len(folder.parts) > 2 or os.path.isdir(folder.parts[0]):
            raise PlumblineError(f"{where}: there is no folder '{name}'; give the folder of a saved checkpoint.")
        if len(name) > LONGEST_HUB_NAME or not HUB_NAME.fullmatch(name):
            raise PlumblineError(
                f"{where}: '{name}' is not a folder, an installed package or a valid name of a model on the Hugging "
                "Face Hub; write `owner/model`."
            )
        return None
    if not (folder / CONFIG).is_file():
        raise PlumblineError(
            f"{where}: the folder '{name}' has no {CONFIG}; save the model there with `save_pretrained`."
        )
    return folder


def check_checkpoint(where: str, name: str, causal: bool, own_head: bool) -> None:
    """Check the files of a checkpoint's folder; whether the hub has a name, the job checks."""
    folder = check_location(where, name)
    if folder is None:
        return
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        model_type = config.get("model_type")
    except (ValueError, AttributeError):
        raise PlumblineError(f"{where}: the {CONFIG} of '{name}' is not the config of a model.") from None
    if not isinstance(model_type, str):
        raise PlumblineError(f"{where}: the {CONFIG} of '{name}' does not name the type of its model (`model_type`).")
    if config.get("is_encoder_decoder"):
        raise PlumblineError(
            f"{where}: '{name}' has the type '{model_type}', an encoder with a decoder, which is not supported; use an "
            "encoder or a causal language model."
        )
    architectures = config.get("architectures") or []
    _check_architecture(where, name, architectures, causal)
    if own_head and architectures and not any(found.endswith(CLASSIFIER) for found in architectures):
        raise PlumblineError(f"{where}: '{name}' is a {architectures[0]}, without a head; leave out `head: own`.")
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise PlumblineError(
            f"{where}: the folder '{name}' has no tokenizer (such as {TOKENIZER_FILES[0]}); save it there with "
            "`tokenizer.save_pretrained`."
        )
    _check_tokenizer(where, name, folder / TOKENIZER_FILES[0], config)
    _check_weights(where, name, folder)


def _check_architecture(where: str, name: str, architectures: Sequence[str], causal: bool) -> None:
    """An encoder is no causal language model, and the reverse, as far as its config states the architecture."""
    found = any(architecture.endswith(CAUSAL) for architecture in architectures)
    if found and not causal:
        raise PlumblineError(
            f"{where}: '{name}' is a causal language model ({architectures[0]}); write `kind: causal` with a `prompt` "
            "and `answers`."
        )
    if causal and architectures and not found:
        raise PlumblineError(
            f"{where}: '{name}' is saved as a {architectures[0]}; save a causal language model with "
            "`AutoModelForCausalLM`, or leave out `kind: causal` for an encoder."
        )


def _check_tokenizer(where: str, name: str, file: Path, config: Mapping[str, Any]) -> None:
    """A tokenizer must be readable and have no token without an embedding."""
    if not file.is_file():
        return
    try:
        tokenizer = json.loads(file.read_text(encoding="utf-8"))
        vocabulary = tokenizer["model"]["vocab"]
        ids = [*(vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary)))]
        ids += [token["id"] for token in tokenizer.get("added_tokens") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PlumblineError(
            f"{where}: the {file.name} of '{name}' is damaged; save it there again with `tokenizer.save_pretrained`."
        ) from None
    size = config.get("vocab_size")
    if isinstance(size, int) and ids and max(ids) >= size:
        raise PlumblineError(
            f"{where}: the tokenizer of '{name}' has token ids up to {max(ids)}, but the model has only {size} "
            "embeddings; save the pair that was trained together, or call `resize_token_embeddings` first."
        )


def _check_weights(where: str, name: str, folder: Path) -> None:
    """Weights must exist, be complete and not be pickled: loading a pickle can run any code."""
    files = sorted(folder.glob(WEIGHTS))
    pickled = [path.name for pattern in PICKLED for path in sorted(folder.glob(pattern))]
    if not files and pickled:
        raise PlumblineError(
            f"{where}: the weights of '{name}' are pickled ('{pickled[0]}') and not loaded, because a pickle can run "
            "any code; if you trust them, load them yourself and save them with `save_pretrained`, as "
            "model.safetensors."
        )
    if not files:
        raise PlumblineError(
            f"{where}: the folder '{name}' has no weights (such as model.safetensors); save the model there with "
            "`save_pretrained`."
        )
    for file in files:
        if fault := _truncation(file):
            raise PlumblineError(f"{where}: '{file}' {fault}; copy it again or save the model with `save_pretrained`.")


def _truncation(file: Path) -> str:
    """What is wrong with a safetensors file, judged by its header and size, or an empty string."""
    with file.open("rb") as opened:
        start = opened.read(8)
        length = int.from_bytes(start, "little")
        header = opened.read(length) if len(start) == 8 and length <= file.stat().st_size else b""
    try:
        tensors = {key: value for key, value in json.loads(header).items() if key != "__metadata__"}
        end = 8 + length + max((value["data_offsets"][1] for value in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "is truncated or not a safetensors file"
    size = file.stat().st_size
    return f"is truncated: it has {size} of {end} bytes" if size < end else ""
