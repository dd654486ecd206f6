"""Which device a job computes on, and how exactly it computes."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from plumbline.runtime.gpus import claim

# What jobs that share a GPU may take of its memory together; their contexts need the rest.
SHARED = 0.9


def choose_device(slots_per_gpu: int = 1) -> torch.device:
    """A GPU, locked for this process until it ends, or the CPU where there is none.

    One of several jobs on a GPU has its part of the memory and no more: what it would take beyond that, for instance as
    workspace of convolutions, it lacks itself, and not the job beside it.
    """
    claim(slots_per_gpu)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if slots_per_gpu > 1:
        torch.cuda.set_per_process_memory_fraction(SHARED / slots_per_gpu)
    return torch.device("cuda")


@contextmanager
def arithmetic(precision: str = "float32") -> Iterator[None]:
    """With `tf32`, PyTorch's own default, a GPU's recurrent and convolutional layers round the factors of products to
    ten bits; with anything else they do not."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def mixed_precision(device: torch.device, wanted: bool) -> Iterator[None]:
    """With bfloat16 where it is safe, if that is wanted.

    A processor that lacks it has no fast recurrent layers for it, for which PyTorch asks all the same; so not there.
    """
    lacking = wanted and device.type == "cpu" and torch.backends.mkldnn.is_available()
    lacking = lacking and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with (
        torch.backends.mkldnn.flags(enabled=False) if lacking else nullcontext(),
        torch.autocast(device.type, torch.bfloat16, enabled=wanted),
    ):
        yield
