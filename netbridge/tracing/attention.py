"""The attention of a transformer as a step size: its row sums, its diagonal, and queries computed from its values.

"Understanding Self-attention Mechanism via Dynamical System Perspective", Appendix G, Eqs. 32 and 33: the attention of
a transformer is read as a factor of V = f3(x), and Q = f1(x) as a function of V, because f3 is invertible "with
probability 1". `nb.attention_values` measures both on a network of `nb.vit`.
"""

import dataclasses

import numpy as np
import torch

from netbridge.common.preservation import preserve
from netbridge.model.vit import Attention, tokens_of
from netbridge.tracing.gates import constant_share
from netbridge.tracing.states import block_states
from odelab.files.saved import register
from odelab.results import Result


@register
@dataclasses.dataclass(frozen=True, eq=False)
class AttentionValues(Result, kinds={"mean": "netbridge.figures:draw_attention"}):
    """The attention of one step, for N images of T tokens, with h heads of C / h features.

    name         of the step's block
    row_sums     least and greatest sum over a row of the attention, of all images and heads
    diagonal     how much of itself a token keeps, (N,): mean of the diagonal over heads and tokens; 1 / T if uniform
    mean         mean attention over the images, (h, T, T)
    constant     share of the attention's variance that is the position's, see `constant_share` in
                 `netbridge.tracing.gates`: 1 if the attention is the same for all images
    largest      the largest weight of a row, (N,): mean over heads and tokens
    condition    condition number of the value map W_V of all heads together, a matrix (C, C)
    recovered    relative error of Q computed from V alone, by Eq. 33 with the inverse of W_V
    rounding     ten rounding errors of the computation times `condition`, which `recovered` should lie below
    head_rank    the largest rank of a single head's part of W_V, at most C / h: no invertible map of C features
    head_loss    relative error of the Q of a head computed from the V of that head alone, by least squares

    >>> import torch, netbridge as nb
    >>> step, *others = nb.attention_values(nb.vit(depth=2), torch.randn(3, 3, 32, 32))
    >>> step.name, step.diagonal.shape, step.head_rank, step.recovered < step.rounding
    ('stages.0.blocks.0', (3,), 32, True)
    """

    name: str
    row_sums: tuple[float, float]
    diagonal: np.ndarray
    mean: np.ndarray
    constant: float
    largest: np.ndarray
    condition: float
    recovered: float
    rounding: float
    head_rank: int
    head_loss: float

    def table(self):
        """A row per image: how much of itself a token keeps, and the largest weight of a row."""
        return {"diagonal": self.diagonal, "largest": self.largest}


def attention_values(net: torch.nn.Module, images: torch.Tensor) -> list[AttentionValues]:
    """The attention of every attention step of a network of `nb.vit`, and Eq. 33 put to the test.

    net     the network; it is run in evaluation mode and is afterwards what it was before
    images  a batch of images (N, channels, height, width), prepared as the network expects them

    Returns one `AttentionValues` per attention step, in their order. Raises ValueError for a network without any.

    >>> import torch, netbridge as nb
    >>> steps = nb.attention_values(nb.vit(depth=3), torch.randn(2, 3, 32, 32))
    >>> len(steps), [round(total, 5) for total in steps[0].row_sums]
    (3, [1.0, 1.0])
    """
    states = block_states(net, images)
    branches = {name: getattr(net.get_submodule(name), "branch", None) for name in states}
    kept = {name: branch for name, branch in branches.items() if isinstance(branch, Attention)}
    if not kept:
        raise ValueError("`net` has no attention step; `nb.vit` makes networks that have.")
    with preserve(net), torch.no_grad():
        return [values_of(name, branch, branch.norm(tokens_of(states[name]))) for name, branch in kept.items()]


def values_of(name: str, branch: Attention, tokens: torch.Tensor) -> AttentionValues:
    """One step, from its normalised tokens (N, T, C)."""
    q, k, v = branch.queries_keys_values(tokens)
    weights = branch.weights(q, k)
    sums = weights.sum(-1)
    wq, _, wv = branch.qkv.weight.chunk(3)
    bq, _, bv = branch.qkv.bias.chunk(3)
    condition = float(torch.linalg.cond(wv.double()))
    queries, values = (x.transpose(1, 2).flatten(2) for x in (q, v))
    back = torch.linalg.solve(wv, (values - bv).transpose(1, 2)).transpose(1, 2)
    head_wq, head_wv = (w.unflatten(0, (branch.heads, -1)).double() for w in (wq, wv))
    # The part of a head's query that lies in directions which do not reach the values of that head.
    guessed = (v - bv.unflatten(0, (branch.heads, -1))[:, None]).double() @ torch.linalg.pinv(head_wv).transpose(1, 2)
    head_bias = bq.unflatten(0, (branch.heads, -1))[:, None].double()
    head_back = guessed @ head_wq.transpose(1, 2) + head_bias
    return AttentionValues(
        name,
        (float(sums.min()), float(sums.max())),
        weights.diagonal(dim1=-2, dim2=-1).mean((1, 2)).double().cpu().numpy(),
        weights.mean(0).double().cpu().numpy(),
        constant_share(weights.flatten(1)),
        weights.amax(-1).mean((1, 2)).double().cpu().numpy(),
        condition,
        float((back @ wq.T + bq - queries).norm() / queries.norm()),
        10 * torch.finfo(tokens.dtype).eps * condition,
        int(torch.linalg.matrix_rank(head_wv).max()),
        float((head_back - q.double()).norm() / q.double().norm()),
    )
