"""Random depth: while a network trains, the step size of a block is 0 or 1 / (1 - p) times its own, drawn per image.

Huang, Sun, Liu, Sedra and Weinberger, Deep Networks with Stochastic Depth, ECCV 2016. With h = 0 a block is not there;
the mean of the factor is 1, so in evaluation nothing has to be rescaled, and a trace sees the step sizes as they are.
"""

import contextlib

import torch
from torch import nn

from netbridge.model.network import Network
from netbridge.train.mixing import DEPTH, step_chance


class RandomDepth:
    """The random step sizes of a network's blocks.

    net   a network of netbridge
    rate  p of the last block; it grows linearly with the block's number, as in the paper's Equation 4
    """

    def __init__(self, net: nn.Module, rate: float):
        if not isinstance(net, Network) or any(stage.solver for stage in net.stages):
            raise ValueError(
                f"`drop_path` = {rate:g} makes the step sizes of blocks random, and {type(net).__name__} has none that "
                "netbridge gives it. It needs an nb.Network without ODE-nets."
            )
        self.controllers = [block.controller for block in net.blocks]
        count = len(self.controllers)
        self.rates = [rate * (number + 1) / count for number in range(count)]

    def draw_factors(self, batch: int, seed: int, epoch: int, step: int) -> torch.Tensor:
        """Draw the factors by which step sizes are multiplied, float64 (blocks, batch)."""
        chance = step_chance(seed, epoch, step, DEPTH)
        rates = torch.tensor(self.rates, dtype=torch.float64)[:, None]
        kept = torch.from_numpy(chance.random((len(self.rates), batch))) >= rates
        return kept / (1.0 - rates)

    @contextlib.contextmanager
    def acting(self, factors: torch.Tensor):
        """A context manager: within it the blocks' step sizes are multiplied by `factors` (blocks, images)."""
        for controller, factor in zip(self.controllers, factors, strict=True):
            controller.propose = multiply_step_size(controller.propose, factor)
        try:
            yield
        finally:
            for controller in self.controllers:
                del controller.propose  # the method of its class is there again


def multiply_step_size(propose, factor: torch.Tensor):
    def propose_multiple(memory, state, slope):
        h, memory = propose(memory, state, slope)
        return h * factor.to(slope).view(-1, *[1] * (slope.ndim - 1)), memory

    return propose_multiple
