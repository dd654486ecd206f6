"""Named tensors as safetensors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.errors import DamagedError, PlumblineError
from plumbline.store.records import replacing

if TYPE_CHECKING:
    import torch


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named NumPy arrays as tensors, without torch."""
    from safetensors.numpy import save_file

    with replacing(Path(path)) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}, temporary)


def write_tensors(path: str | Path, tensors: "Mapping[str, torch.Tensor]") -> None:
    """Write named tensors."""
    from safetensors.torch import save_file

    with replacing(Path(path)) as temporary:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in sorted(tensors.items())}, temporary)


def read_tensors(path: str | Path, prefix: str = "") -> "dict[str, torch.Tensor]":
    """Read the tensors whose name starts with `prefix`, without it."""
    with _tensors(path) as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - it is no dictionary
        return {name.removeprefix(prefix): file.get_tensor(name) for name in names}


def tensor_names(path: str | Path, prefix: str = "") -> list[str]:
    """The names of the tensors whose name starts with `prefix`, without it; the tensors are not read."""
    with _tensors(path) as file:
        return [name.removeprefix(prefix) for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118


@contextmanager
def _tensors(path: str | Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError as error:
        raise PlumblineError(f"The file '{path}' does not exist.") from error
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, "is damaged and cannot be read as safetensors") from error
