"""Attention over hidden states: one score per token, softmax over the tokens that may be attended."""

import torch
from torch import nn


class TanhAttention(nn.Module):
    """Additive attention: s_t = v · tanh(W h_t + b), W: H → H/2, v without bias."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, size // 2)
        self.score = nn.Linear(size // 2, 1, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.score(torch.tanh(self.project(hidden))).squeeze(-1)


class DotAttention(nn.Module):
    """Scaled dot product with a learned vector: s_t = u · h_t / √H."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1, bias=False)
        self.scale = size**-0.5

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.score(hidden).squeeze(-1) * self.scale


def masked_softmax(scores: torch.Tensor, attendable: torch.Tensor) -> torch.Tensor:
    """Softmax over the attendable positions of each row; exactly 0 elsewhere. scores, attendable: [B, L]."""
    return scores.masked_fill(~attendable, float("-inf")).softmax(dim=-1)
