"""Attention over hidden states: one score per token, softmax over the attendable tokens.

`query` is the summary [B, H] of a second text, such as a question; None for single texts.
"""

import torch
from torch import nn


class TanhAttention(nn.Module):
    """Additive attention: s_t = v · tanh(W h_t + b), W: H → H/2, v without bias; with a query q, + W₂ q + b₂ inside."""

    def __init__(self, size: int, queried: bool = False) -> None:
        super().__init__()
        self.project = nn.Linear(size, size // 2)
        self.query = nn.Linear(size, size // 2) if queried else None
        self.score = nn.Linear(size // 2, 1, bias=False)

    def forward(self, hidden: torch.Tensor, query: torch.Tensor | None = None) -> torch.Tensor:
        projected = self.project(hidden)
        if self.query is not None and query is not None:
            projected = projected + self.query(query)[:, None]
        return self.score(torch.tanh(projected)).squeeze(-1)


class DotAttention(nn.Module):
    """Scaled dot product: s_t = u · h_t / √H, u a learned vector or, with a query, the query (no parameters)."""

    def __init__(self, size: int, queried: bool = False) -> None:
        super().__init__()
        self.score = None if queried else nn.Linear(size, 1, bias=False)
        self.scale = size**-0.5

    def forward(self, hidden: torch.Tensor, query: torch.Tensor | None = None) -> torch.Tensor:
        if self.score is not None:
            return self.score(hidden).squeeze(-1) * self.scale
        assert query is not None
        return torch.einsum("blh,bh->bl", hidden, query) * self.scale


class UniformAttention(nn.Module):
    """Equal weight for every word: s_t = 0, no parameters (Wiegreffe & Pinter 2019)."""

    def __init__(self, size: int, queried: bool = False) -> None:
        super().__init__()

    def forward(self, hidden: torch.Tensor, query: torch.Tensor | None = None) -> torch.Tensor:
        return hidden.new_zeros(hidden.shape[:-1])


def masked_softmax(scores: torch.Tensor, attendable: torch.Tensor) -> torch.Tensor:
    """Softmax over the attendable positions of each row; exactly 0 elsewhere.

    scores: [..., B, L]; attendable: [B, L].
    """
    return scores.masked_fill(~attendable, float("-inf")).softmax(dim=-1)
