"""What a study brings along without a plug-in: methods of Captum, checkpoints of transformers, importances in a file.

Nothing here imports torch, Captum or transformers, because every job reads the config.
"""

import ast
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.config.checkpoints import CONFIG, find_checkpoint
from plumbline.config.plain import check_plain
from plumbline.config.resolved import Resolved
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PACKAGE

# The registered names of what is brought.
CAPTUM, IMPORTED = "captum", "imported"
CAPTUM_METHODS = "captum.attr"
# The methods of captum.attr that explain what a model begins with, and the arguments that a config may give each.
METHODS: dict[str, tuple[str, ...]] = {
    "Deconvolution": (),
    "DeepLift": ("eps", "multiply_by_inputs"),
    "FeatureAblation": (),
    "GradientShap": ("multiply_by_inputs", "n_samples", "stdevs"),
    "GuidedBackprop": (),
    "InputXGradient": (),
    "IntegratedGradients": ("method", "multiply_by_inputs", "n_steps"),
    "KernelShap": ("n_samples",),
    "Lime": ("n_samples",),
    "Occlusion": ("sliding_window_shapes", "strides"),
    "Saliency": ("abs",),
    "ShapleyValueSampling": ("n_samples",),
}
# The columns of a file of importances: those that there must be, and those that say which rows it holds.
SCORES = ("split", "instance", "scores")
WHERE = ("dataset", "variant", "model", "seed")
# The types of checkpoints, by the name in their config, that models here can read.
TYPES = (
    "albert", "bert", "camembert", "data2vec-text", "distilbert", "electra", "ernie", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta",
)  # fmt: skip
TOKENISERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
WEIGHTS, PICKLED = "model*.safetensors", ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# How the hub lets models be called: an owner's name and the model's, or the model's alone.
OF_HUB = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9][\w.-]*[A-Za-z0-9](/[\w-][\w.-]*)?", re.ASCII)
LONGEST_OF_HUB = 96


def located(path: str, places: Iterable[Path]) -> str:
    """What a study names, in the first of the places that has it; relative to the working folder unless absolute."""
    found = next((place / path for place in places if os.path.exists(place / path)), Path(path))
    return str(found) if Path(path).is_absolute() else os.path.relpath(found)


def with_files_located(config: dict[str, Any], places: Sequence[Path]) -> dict[str, Any]:
    """The config with the files and folders that it names where they lie; what cannot be in any config is refused."""
    check_plain(config)
    plugins = config.get("plugins")
    beside = [*places]
    if isinstance(plugins, list) and all(isinstance(path, str) for path in plugins):
        plugins = [located(path, places) for path in plugins]
        config = {**config, "plugins": plugins}
        beside += [Path(path).parent for path in plugins]
    for section, locate in (("measures", _measure_located), ("models", _model_located)):
        entries = config.get(section)
        if isinstance(entries, dict):
            found = {
                name: locate(name, entry, beside) if isinstance(entry, dict) else entry
                for name, entry in entries.items()
            }
            config = {**config, section: found}
    return config


def _measure_located(name: str, entry: dict[str, Any], places: Sequence[Path]) -> dict[str, Any]:
    kind, method, path = entry.get("kind", name), entry.get("method"), entry.get("path")
    if kind == IMPORTED and path and isinstance(path, str):
        return {**entry, "path": located(path, places)}
    if kind == CAPTUM and isinstance(method, str):
        return {**entry, "method": _pointer(method, places)}
    return entry


def _model_located(name: str, entry: dict[str, Any], places: Sequence[Path]) -> dict[str, Any]:
    checkpoint = entry.get("checkpoint")
    if checkpoint and isinstance(checkpoint, str) and any(os.path.isdir(place / checkpoint) for place in places):
        return {**entry, "checkpoint": located(checkpoint, places)}
    return entry


def _pointer(method: str, places: Sequence[Path]) -> str:
    """Where a method is: the name of one of Captum's, ``package.module:Class`` or ``file.py:Class``.

    A module that is a file in one of the places is that file.
    """
    module, dot, name = method.rpartition(":" if ":" in method else ".")
    if not dot or module == CAPTUM_METHODS:
        return name
    file = module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
    if module.endswith(".py") or any(os.path.isfile(place / file) for place in places):
        module = located(file, places)
    return f"{module}:{name}"


def method_file(method: str) -> Path | None:
    """The study's own file that a method is in, if it is in one."""
    module = method.rpartition(":")[0]
    return Path(module) if module.endswith(".py") else None


def check_external(resolved: Resolved) -> None:
    """Refuse what cannot be used, before any work."""
    for (kind, name), declaration in resolved.declarations.items():
        where, options = f"{kind}s.{name}", resolved.options.get((kind, name), {})
        if kind == "measure" and declaration.name == CAPTUM:
            _check_method(where, options["method"], options["arguments"])
        elif kind == "measure" and declaration.name == IMPORTED:
            check_columns(f"`{where}.path`", options["path"])
        elif kind == "model" and declaration.reads == "subwords" and declaration.path.is_relative_to(PACKAGE):
            _check_checkpoint(f"`{where}.checkpoint`", options["checkpoint"])
            if options.get("labels") and options["head"] != "own":
                raise PlumblineError(f"`{where}.labels` names outputs of the checkpoint; set `head: own` to keep them.")


def _check_method(where: str, method: str, arguments: Mapping[str, Any]) -> None:
    module, dot, name = method.rpartition(":")
    if dot:
        _check_own_method(f"`{where}.method`", module, name)
        return
    for internal in ("Layer", "Neuron"):
        if method not in METHODS and method.removeprefix(internal) in METHODS:
            raise PlumblineError(
                f"`{where}.method` is '{method}', which explains a part inside of a model; its input is explained by "
                f"'{method.removeprefix(internal)}'."
            )
    if method not in METHODS:
        raise PlumblineError(
            f"`{where}.method` is '{method}', which is no method of captum.attr that explains a model's input; "
            f"{nearest(method, METHODS)}"
        )
    for argument in arguments:
        if argument not in METHODS[method]:
            raise PlumblineError(
                f"`{where}.arguments` has '{argument}', which '{method}' does not take; "
                f"{nearest(argument, METHODS[method])}"
            )


def _check_own_method(where: str, module: str, name: str) -> None:
    """A class of the study's own must be there; whether it is a method of Captum's kind, the job sees."""
    if not module.endswith(".py"):
        if find_spec(module.partition(".")[0]) is None:
            raise PlumblineError(
                f"{where}: there is no module '{module}', and no file '{module.replace('.', '/')}.py' in the working "
                "folder, beside the config, beside a plug-in or in the project."
            )
        return
    try:
        tree = ast.parse(Path(module).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlumblineError(f"{where}: there is no file '{module}'.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlumblineError(f"{where}: the file '{module}' cannot be read: {error}.") from None
    except SyntaxError as error:
        raise PlumblineError(
            f"{where}: the file '{module}' is not valid Python: {error.msg}, line {error.lineno}."
        ) from None
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    if name not in classes:
        raise PlumblineError(f"{where}: the file '{module}' has no class '{name}'; {nearest(name, classes)}")


def check_columns(where: str, path: str) -> None:
    """A file of importances must be there, be Parquet and have its columns."""
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import read_schema

    if not os.path.isfile(path):
        raise PlumblineError(f"{where}: there is no file '{path}'.")
    try:
        names = read_schema(path).names
    except ArrowInvalid as error:
        raise PlumblineError(f"{where}: the file '{path}' is not Parquet ({error}).") from None
    for column in SCORES:
        if column not in names:
            raise PlumblineError(
                f"{where}: the file '{path}' has no column '{column}'; it must have {', '.join(SCORES)}, and may have "
                f"{', '.join((*WHERE, 'target'))}."
            )


def _check_checkpoint(where: str, name: str) -> None:
    """What a folder with a checkpoint must hold. A name that the hub may know is tried by the job."""
    if not name:
        raise PlumblineError(f"{where} names none; write a folder, an installed package or a name of the hub.")
    folder = Path(find_checkpoint(name))
    if not os.path.isdir(folder):
        place = name.startswith((".", "~", "/")) or folder.is_absolute()
        if place or len(folder.parts) > 2 or os.path.isdir(folder.parts[0]):
            raise PlumblineError(f"{where}: there is no folder '{name}'.")
        if len(name) > LONGEST_OF_HUB or not OF_HUB.fullmatch(name):
            raise PlumblineError(
                f"{where}: there is no folder and no installed package '{name}', and no model of the hub can be called "
                "so; write `owner/model`."
            )
        return
    if not (folder / CONFIG).is_file():
        raise PlumblineError(
            f"{where}: the folder '{name}' has no {CONFIG}; save the model there by `save_pretrained`."
        )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        found = config.get("model_type")
    except (ValueError, AttributeError):
        raise PlumblineError(f"{where}: the {CONFIG} of '{name}' is not that of a model.") from None
    if found not in TYPES:
        raise PlumblineError(
            f"{where}: '{name}' is a checkpoint of type '{found}', which models here cannot read; they read "
            f"{', '.join(TYPES)}."
        )
    if not any((folder / file).is_file() for file in TOKENISERS):
        raise PlumblineError(
            f"{where}: the folder '{name}' has no tokeniser (such as {TOKENISERS[0]}); save it there by "
            "`tokenizer.save_pretrained`."
        )
    _check_tokeniser(where, name, folder / TOKENISERS[0], config)
    _check_weights(where, name, folder)


def _check_tokeniser(where: str, name: str, file: Path, config: Mapping[str, Any]) -> None:
    """A tokeniser must be whole, and have no token without a vector."""
    if not file.is_file():
        return
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        words = told["model"]["vocab"]
        ids = [*(words.values() if isinstance(words, dict) else range(len(words)))]
        ids += [token["id"] for token in told.get("added_tokens") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PlumblineError(
            f"{where}: the {file.name} of '{name}' is broken; save it there again by `tokenizer.save_pretrained`."
        ) from None
    size = config.get("vocab_size")
    if isinstance(size, int) and ids and max(ids) >= size:
        raise PlumblineError(
            f"{where}: the tokeniser of '{name}' has tokens up to number {max(ids)}, and the model has {size} vectors; "
            "save both as they were trained together, or call `resize_token_embeddings` before."
        )


def _check_weights(where: str, name: str, folder: Path) -> None:
    """Weights must be there, whole and not pickled: what is pickled can run any code when it is read."""
    files = sorted(folder.glob(WEIGHTS))
    pickled = [path.name for pattern in PICKLED for path in sorted(folder.glob(pattern))]
    if not files and pickled:
        raise PlumblineError(
            f"{where}: the weights of '{name}' are pickled ('{pickled[0]}'), which can run any code and is not read; "
            "load them where you trust them and save them by `save_pretrained`, as model.safetensors."
        )
    if not files:
        raise PlumblineError(
            f"{where}: the folder '{name}' has no weights (such as model.safetensors); save the model there by "
            "`save_pretrained`."
        )
    for file in files:
        if fault := _cut_off(file):
            raise PlumblineError(f"{where}: '{file}' {fault}; copy it again, or save the model by `save_pretrained`.")


def _cut_off(file: Path) -> str:
    """What is wrong with a file of tensors, as far as its header and its size tell."""
    with file.open("rb") as opened:
        start = opened.read(8)
        length = int.from_bytes(start, "little")
        header = opened.read(length) if len(start) == 8 and length <= file.stat().st_size else b""
    try:
        tensors = {key: value for key, value in json.loads(header).items() if key != "__metadata__"}
        end = 8 + length + max((value["data_offsets"][1] for value in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "is not a file of safetensors, or is cut off"
    size = file.stat().st_size
    return f"is cut off: it has {size} of {end} bytes" if size < end else ""


def check_epochs(where: str, epochs: int, options: Mapping[str, Any]) -> None:
    """Only a model that has learnt to classify before may learn nothing."""
    if not epochs and options.get("head") != "own":
        raise PlumblineError(
            f"`{where}.training.epochs` is 0: it must be 1 or more, unless the model keeps the output of a checkpoint "
            "that classifies (`head: own`)."
        )
