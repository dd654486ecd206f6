"""The device of a job and its arithmetic precision."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from plumbline.runtime.gpus import claim

# The fraction of a GPU's memory for the jobs that share it; their CUDA contexts need the rest.
SHARED = 0.9


def choose_device(slots_per_gpu: int = 1) -> torch.device:
    """A GPU, locked for this process until it ends, or the CPU if there is none.

    A job that shares a GPU is limited to its fraction of the memory: if it needs more, for instance as workspace of
    convolutions, it runs out of memory itself, and not another job.
    """
    claim(slots_per_gpu)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if slots_per_gpu > 1:
        torch.cuda.set_per_process_memory_fraction(SHARED / slots_per_gpu)
    return torch.device("cuda")


@contextmanager
def arithmetic(precision: str = "float32") -> Iterator[None]:
    """Allow TF32 in cuDNN's recurrent and convolutional layers, PyTorch's default, only if `precision` is `tf32`."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def mixed_precision(device: torch.device, enabled: bool) -> Iterator[None]:
    """Autocast to bfloat16, if enabled.

    On a CPU without bfloat16, oneDNN is disabled: PyTorch would call its recurrent layers, which do not support it.
    """
    lacking = enabled and device.type == "cpu" and torch.backends.mkldnn.is_available()
    lacking = lacking and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with (
        torch.backends.mkldnn.flags(enabled=False) if lacking else nullcontext(),
        torch.autocast(device.type, torch.bfloat16, enabled=enabled),
    ):
        yield
