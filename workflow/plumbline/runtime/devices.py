"""The device of a job and its arithmetic precision."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from plumbline.errors import PlumblineError
from plumbline.runtime.gpus import claim
from plumbline.runtime.split_products import SplitProducts, tf32

# The fraction of a GPU's memory for the jobs that share it; their CUDA contexts need the rest.
SHARED = 0.9
# The precisions of an explanation's passes on a GPU, the most exact first.
PRECISIONS = ("float32", "bf16x3", "bf16x3-tf32", "tf32")


def choose_device(slots_per_gpu: int = 1) -> torch.device:
    """A GPU, locked for this process until it ends, or the CPU if there is none that this build of PyTorch can use.

    A GPU on which CUDA does not start, for instance because a job of the same MPS server was killed, fails the job: on
    the CPU it might run for hours without anybody noticing.

    A job that shares a GPU is limited to its fraction of the memory: if it needs more, for instance as workspace of
    convolutions, it runs out of memory itself, and not another job.
    """
    gpu = claim(slots_per_gpu)
    if not torch.cuda.is_available():
        if gpu and torch.backends.cuda.is_built():
            _check_driver(gpu)
        return torch.device("cpu")
    if slots_per_gpu > 1:
        torch.cuda.set_per_process_memory_fraction(SHARED / slots_per_gpu)
    return torch.device("cuda")


def _check_driver(gpu: str) -> None:
    """Raise if CUDA does not start on this GPU, unless its driver is too old for this build of PyTorch."""
    try:
        torch.cuda.init()
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        if "NVIDIA driver" not in reason:
            raise PlumblineError(
                f"CUDA does not start on GPU '{gpu}': {reason}. Run the same command again when the GPU works; with "
                "`CUDA_VISIBLE_DEVICES=` before it, jobs run on the CPU."
            ) from error


@contextmanager
def arithmetic(precision: str = PRECISIONS[0]) -> Iterator[None]:
    """Allow TF32 in products of matrices and in recurrent and convolutional layers on a GPU only if `precision` is
    `tf32`. `bf16x3` computes linear layers with constant weights as three products in bfloat16; `bf16x3-tf32` does so
    in forward passes, and allows TF32 in the backward passes of these layers."""
    splits = SplitProducts(precision == "bf16x3") if precision.startswith("bf16x3") else nullcontext()
    with tf32(precision == "tf32"), splits:
        yield


def mixed_precision(device: torch.device | str, enabled: bool) -> AbstractContextManager[Any]:
    """Autocast to bfloat16, if enabled, on a GPU; most CPUs are slower with it."""
    return torch.autocast("cuda", torch.bfloat16, enabled=enabled and torch.device(device).type == "cuda")
