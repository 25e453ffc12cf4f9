"""Self-attention as the ASR paper writes it in appendix B (4): heads side by side, no output projection."""

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """softmax(Q K'/sqrt(d)) V over tokens (N, T, features), `heads` of them side by side.

    A step size on its output folds into the value projection. With a `nn.Linear` after it, a transformer's attention.
    """

    def __init__(self, features: int, heads: int = 1, bias: bool = True):
        super().__init__()
        if features % heads:
            raise ValueError(f"`heads` = {heads} must divide `features` = {features}.")
        self.heads = heads
        self.query = nn.Linear(features, features, bias=bias)
        self.key = nn.Linear(features, features, bias=bias)
        self.value = nn.Linear(features, features, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
