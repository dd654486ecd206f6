"""CUDA kernels from source, compiled when they are first needed and kept for later jobs."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


def load_kernels(source: str, names: Sequence[str], defined: dict[str, int], slower: str) -> dict[str, Any] | None:
    """The kernels of these names for the current GPU, with the macros in `defined`; None if they cannot be compiled,
    with a warning that names what is `slower` without them."""
    try:
        from torch.cuda._utils import _cuda_load_module

        kernels: Any = _cuda_load_module(_binary(source, names[0], defined), list(names))
        return kernels
    except (AttributeError, ImportError, OSError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"plumbline: a CUDA kernel cannot be compiled, so {slower} are slower: {reason}", stacklevel=3)
        return None


def _binary(source: str, name: str, defined: dict[str, int]) -> bytes:
    """The compiled source; from the user's cache if it was compiled there before."""
    capability = "".join(map(str, torch.cuda.get_device_capability()))
    options = [f"-D{macro}={value}" for macro, value in defined.items()]
    key = hashlib.sha256("\n".join([source, *options, capability, str(torch.version.cuda)]).encode()).hexdigest()
    path = cache_folder() / f"{name}-{key[:16]}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        pass
    from torch.cuda._utils import _nvrtc_compile

    binary, _ = _nvrtc_compile(source, name, capability, nvcc_options=options)
    # Jobs that start together may write the same file: each writes its own and moves it there.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(path)
    except OSError:
        pass  # Without a cache it is compiled again.
    return binary


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plumbline" / "kernels"
