"""CUDA kernels from source, compiled when they are first needed and kept for later jobs."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

# What PyTorch's compiler and loader raise, also if a later version takes other arguments.
FAILURES = (AttributeError, ImportError, OSError, RuntimeError, TypeError, ValueError)


def load_kernels(
    source: str, names: Sequence[str], defined: Mapping[str, int], slower: str, shared: Mapping[str, int] | None = None
) -> dict[str, Any] | None:
    """The kernels of these names for the current GPU, with the macros in `defined` and bytes of `shared` memory; None
    if they cannot be compiled or loaded, with a warning that names what is `slower` without them."""
    try:
        return _load(source, names, defined, shared or {})
    except FAILURES as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"plumbline: a CUDA kernel cannot be compiled, so {slower} are slower: {reason}", stacklevel=3)
        return None


def _load(source: str, names: Sequence[str], defined: Mapping[str, int], shared: Mapping[str, int]) -> dict[str, Any]:
    from torch.cuda._utils import _cuda_load_module, _nvrtc_compile

    def loaded(binary: bytes) -> dict[str, Any]:
        kernels: Any = _cuda_load_module(binary, list(names))
        for name, size in shared.items():
            kernels[name].set_shared_memory_config(size)
        return dict(kernels)

    options = [f"-D{macro}={value}" for macro, value in defined.items()]
    capability = "".join(map(str, torch.cuda.get_device_capability()))
    key = hashlib.sha256("\n".join([source, *options, capability, str(torch.version.cuda)]).encode()).hexdigest()
    folder = cache_folder()
    path = folder / f"{names[0]}-{key[:16]}.cubin" if folder else None
    if path and path.is_file():
        try:
            return loaded(path.read_bytes())
        except FAILURES:
            pass  # A damaged file is compiled and written again.
    binary, _ = _nvrtc_compile(source, names[0], nvcc_options=options)
    if path:
        _keep(path, binary)
    return loaded(binary)


def _keep(path: Path, binary: bytes) -> None:
    """Write a file, or nothing where that is impossible: then it is compiled again."""
    # Jobs that start together may write the same file: each writes its own and moves it there.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as own:
            (Path(own) / path.name).write_bytes(binary)
            (Path(own) / path.name).replace(path)
    except OSError:
        pass


def cache_folder() -> Path | None:
    """Where compiled kernels are kept; None for a user without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline" / "kernels"
    except RuntimeError:
        return None
