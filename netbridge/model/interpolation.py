"""Weights as functions of time: linear from one block to the next (Queiruga et al., Continuous-in-Depth, 2020)."""

import torch
from torch.func import functional_call

NEAR = 1e-6  # of a layer: a time this close to a block is that block's


def slope(blocks, t, u):
    """f(u; theta(t)). At a whole layer the block answers itself, and updates its running statistics in training.

    Between two blocks their parameters and statistics are mixed; after the last one it stays in force.
    """
    last = len(blocks) - 1
    left = min(int(t + NEAR), last)
    share = t - left
    if share <= NEAR or left == last:
        return blocks[left].branch(u)
    before, after = blocks[left].branch, blocks[left + 1].branch
    return functional_call(before, mixed(before, after, share), (u,))


def mixed(before, after, share):
    mixture = {}
    for get in ("named_parameters", "named_buffers"):
        right = dict(getattr(after, get)())
        for name, tensor in getattr(before, get)():
            if tensor.is_floating_point():
                mixture[name] = torch.lerp(tensor, right[name], share)
            else:
                mixture[name] = tensor.clone()  # a counter of batches: not to be counted twice
    return mixture
