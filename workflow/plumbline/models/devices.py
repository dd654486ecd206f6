"""Which device a job computes on."""

import torch


def choose_device() -> torch.device:
    """The first visible GPU, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
