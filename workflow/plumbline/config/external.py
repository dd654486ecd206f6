"""External files of a study: plug-ins, Captum methods, Hugging Face checkpoints and imported importances.

Nothing here imports torch, Captum or transformers, because every job reads the config.
"""

import ast
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plumbline.config.checkpoints import check_checkpoint
from plumbline.config.own_data import HUB, OWN, label_text
from plumbline.config.plain import check_plain
from plumbline.config.resolved import Resolved
from plumbline.errors import PlumblineError, nearest
from plumbline.registry import PACKAGE

# Registered names.
CAPTUM, IMPORTED = "captum", "imported"
CAPTUM_METHODS = "captum.attr"
# The methods of captum.attr that attribute to a model's input, and the arguments that a config may set.
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
# The columns of a file of importances: the required ones, and the optional keys of its rows.
REQUIRED_COLUMNS = ("split", "instance", "scores")
KEY_COLUMNS = ("dataset", "variant", "model", "seed")


def locate(path: str, folders: Iterable[Path]) -> str:
    """A path inside the first of the folders that contains it; relative to the working folder unless absolute."""
    found = next((folder / path for folder in folders if os.path.exists(folder / path)), Path(path))
    return str(found) if Path(path).is_absolute() else os.path.relpath(found)


def locate_files(config: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """The config with its paths located; keys and values that no config may hold are refused."""
    check_plain(config)
    plugins = config.get("plugins")
    if isinstance(plugins, list) and all(isinstance(path, str) for path in plugins):
        plugins = [locate(path, folders) for path in plugins]
        config = {**config, "plugins": plugins}
        folders = [*folders, *(Path(path).parent for path in plugins)]
    for section, locate_entry in (
        ("datasets", _locate_data),
        ("measures", _locate_measure),
        ("models", _locate_checkpoint),
    ):
        entries = config.get(section)
        if isinstance(entries, dict):
            located = {
                name: locate_entry(name, entry, folders) if isinstance(entry, dict) else entry
                for name, entry in entries.items()
            }
            config = {**config, section: located}
    return config


def _locate_data(name: str, entry: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """The entry of own data with its paths located and the labels of its classes as text."""
    kind, path, classes = entry.get("kind", name), entry.get("path"), entry.get("classes")
    if kind not in OWN:
        return entry
    if path and isinstance(path, str):
        entry = {**entry, "path": locate(path, folders)}
    elif isinstance(path, dict):
        files = {split: locate(file, folders) if isinstance(file, str) else file for split, file in path.items()}
        entry = {**entry, "path": files}
    if isinstance(classes, dict):
        entry = {**entry, "classes": {label_text(label): _as_text(class_) for label, class_ in classes.items()}}
    elif isinstance(classes, list):
        entry = {**entry, "classes": [_as_text(label) for label in classes]}
    return _locate_folder(entry, "name", folders) if kind == HUB else entry


def _as_text(value: Any) -> Any:
    """A number as text; other values are unchanged."""
    return label_text(value) if type(value) in (int, float) else value


def _locate_measure(name: str, entry: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    kind, method, path = entry.get("kind", name), entry.get("method"), entry.get("path")
    if kind == IMPORTED and path and isinstance(path, str):
        return {**entry, "path": locate(path, folders)}
    if kind == CAPTUM and isinstance(method, str):
        return {**entry, "method": _method_pointer(method, folders)}
    return entry


def _locate_checkpoint(name: str, entry: dict[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    return _locate_folder(entry, "checkpoint", folders)


def _locate_folder(entry: dict[str, Any], key: str, folders: Sequence[Path]) -> dict[str, Any]:
    """The entry with the name of a folder located; any other name is one of the hub."""
    name = entry.get(key)
    if name and isinstance(name, str) and any(os.path.isdir(folder / name) for folder in folders):
        return {**entry, key: locate(name, folders)}
    return entry


def _method_pointer(method: str, folders: Sequence[Path]) -> str:
    """A Captum method as its name, ``package.module:Class`` or, for a file in one of the folders, ``file.py:Class``."""
    module, dot, name = method.rpartition(":" if ":" in method else ".")
    if not dot or module == CAPTUM_METHODS:
        return name
    file = module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
    if module.endswith(".py") or any(os.path.isfile(folder / file) for folder in folders):
        module = locate(file, folders)
    return f"{module}:{name}"


def method_file(method: str) -> Path | None:
    """The study's own file that defines a method, if any."""
    module = method.rpartition(":")[0]
    return Path(module) if module.endswith(".py") else None


def check_external(resolved: Resolved) -> None:
    """Refuse unusable methods, importances and checkpoints before any job runs."""
    for (kind, name), declaration in resolved.declarations.items():
        where, options = f"{kind}s.{name}", resolved.options.get((kind, name), {})
        if kind == "measure" and declaration.name == CAPTUM:
            _check_method(where, options["method"], options["arguments"])
        elif kind == "measure" and declaration.name == IMPORTED:
            check_columns(f"`{where}.path`", options["path"])
        elif kind == "model" and declaration.reads == "subwords" and declaration.path.is_relative_to(PACKAGE):
            own_head = options.get("head") == "own"
            check_checkpoint(f"`{where}.checkpoint`", options["checkpoint"], "prompt" in options, own_head)
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
                f"`{where}.method` is '{method}', which attributes to an internal layer; use "
                f"'{method.removeprefix(internal)}', which attributes to the input."
            )
    if method not in METHODS:
        raise PlumblineError(
            f"`{where}.method` is '{method}', which is not a method of captum.attr for a model's input; "
            f"{nearest(method, METHODS)}"
        )
    for argument in arguments:
        if argument not in METHODS[method]:
            raise PlumblineError(
                f"`{where}.arguments` has '{argument}', which '{method}' does not take; "
                f"{nearest(argument, METHODS[method])}"
            )


def _check_own_method(where: str, module: str, name: str) -> None:
    """A class of the study's own must exist; the job checks that it is a Captum method."""
    if not module.endswith(".py"):
        if find_spec(module.partition(".")[0]) is None:
            raise PlumblineError(
                f"{where}: there is no module '{module}', and no file '{module.replace('.', '/')}.py' in the working "
                "folder, next to the config, next to a plug-in or in the project."
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
    """A file of importances must exist, be Parquet and have the required columns."""
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import read_schema

    if not os.path.isfile(path):
        raise PlumblineError(f"{where}: there is no file '{path}'.")
    try:
        names = read_schema(path).names
    except ArrowInvalid as error:
        raise PlumblineError(f"{where}: the file '{path}' is not Parquet ({error}).") from None
    for column in REQUIRED_COLUMNS:
        if column not in names:
            raise PlumblineError(
                f"{where}: the file '{path}' has no column '{column}'; it must have {', '.join(REQUIRED_COLUMNS)} and "
                f"may have {', '.join((*KEY_COLUMNS, 'target'))}."
            )


def check_epochs(where: str, epochs: int, options: Mapping[str, Any]) -> None:
    """Only a checkpoint with a trained classifier or a language model may be used without training."""
    if not epochs and options.get("head") != "own" and "answers" not in options:
        raise PlumblineError(
            f"`{where}.training.epochs` is 0: it must be 1 or more, unless the model keeps the classifier of its "
            "checkpoint (`head: own`) or is a language model (`kind: causal`)."
        )
