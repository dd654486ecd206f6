"""The device that a job gets; GPUs and CUDA are stand-ins."""

import pytest
import torch

from plumbline.errors import PlumblineError
from plumbline.runtime import devices
from plumbline.runtime.devices import choose_device

OLD = "The NVIDIA driver on your system is too old (found version 11040)."
STOPPED = "Unexpected error from cudaGetDeviceCount(). Error 807: MPS server is not ready.\nmore lines"


@pytest.fixture
def unavailable(monkeypatch):
    """A machine with these GPUs, on which CUDA does not start for this reason; returns the chosen device."""

    def choose(gpu: str | None, reason: str, built: bool = True) -> torch.device:
        def init() -> None:
            raise RuntimeError(reason)

        monkeypatch.setattr(devices, "claim", lambda slots: gpu)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.cuda, "init", init)
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: built)
        return choose_device()

    return choose


def test_a_gpu_on_which_cuda_does_not_start_fails_the_job(unavailable):
    with pytest.raises(PlumblineError) as refused:
        unavailable("GPU-aaa", STOPPED)
    assert str(refused.value).startswith(
        "CUDA does not start on GPU 'GPU-aaa': Unexpected error from cudaGetDeviceCount(). Error 807: MPS server is "
        "not ready. Run the same command again"
    )


@pytest.mark.parametrize(
    ("gpu", "reason", "built"),
    [(None, STOPPED, True), ("GPU-aaa", STOPPED, False), ("GPU-aaa", OLD, True)],
    ids=["no GPU", "a build of PyTorch for CPUs", "an old driver"],
)
def test_a_machine_without_a_usable_gpu_uses_the_cpu(unavailable, gpu, reason, built):
    assert unavailable(gpu, reason, built) == torch.device("cpu")
