"""Stages in continuous time: weights that run linearly from block to block, and stages solved by torchdiffeq.

Queiruga et al., Continuous-in-Depth Neural Networks, 2020; Chen et al., Neural Ordinary Differential Equations, 2018.
"""

import torch
from torch.func import functional_call

NEAR = 1e-6  # layers: a time this close to the number of a block counts as that number, against rounding


def block_at(blocks, t):
    """The block whose step contains the time t."""
    return blocks[min(int(t + NEAR), len(blocks) - 1)]


def slope_between(blocks, t, u):
    """f(u; theta(t)). At a whole number t the branch of that block is called, and in training updates its statistics.

    Between two blocks their parameters and statistics are interpolated; after the last block its own are used.
    """
    left = min(int(t + NEAR), len(blocks) - 1)
    share = t - left
    if share <= NEAR or left == len(blocks) - 1:
        return blocks[left].branch(u)
    before, after = blocks[left].branch, blocks[left + 1].branch
    return functional_call(before, mix_branches(before, after, share), (u,))


def mix_branches(before, after, share):
    """The parameters and statistics of two branches, interpolated linearly."""
    mixture = {}
    for get in ("named_parameters", "named_buffers"):
        right = dict(getattr(after, get)())
        for name, tensor in getattr(before, get)():
            if tensor.is_floating_point():
                mixture[name] = torch.lerp(tensor, right[name], share)
            else:
                mixture[name] = tensor.clone()  # a counter of batches, which must not be counted twice
    return mixture


def run_ode_net(stage, memory, start, u):
    """u' = h(u, f) f(u; theta(t)) from layer `start` to the last, by torchdiffeq, then the projection.

    While the network is observed, the state is also asked for at every layer, and each layer is recorded as one step of
    size 1 whose slope is the increment of the state over that layer.
    """
    from torchdiffeq import odeint

    def rhs(t, u):
        time = float(t.detach())
        block = block_at(stage.blocks, time)
        slope = block.branch(u) if stage.weights == "shared" else slope_between(stage.blocks, time, u)
        h, _ = block.controller.propose(None, u, slope)
        return h * slope

    end, seen = len(stage.blocks), stage.observation
    points = torch.tensor([float(start), float(end)]) if seen is None else torch.arange(start, end + 1.0)
    states = odeint(rhs, u, points.to(u.device), method=stage.solver, rtol=stage.tolerance, atol=stage.tolerance)
    final = stage.blocks[-1].project(states[-1].clone())
    if seen is not None:
        for i, (before, after) in enumerate(zip(states[:-1], (*states[1:-1], final), strict=True)):
            increment = states[i + 1] - before
            seen.carry = seen.record(seen.carry, memory, start + i, 1, 1.0, before, [increment], increment, after)
    return final
