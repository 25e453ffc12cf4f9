"""A stage: blocks of one shape, run by `odelab`'s solver. A block that changes the shape opens it, as a step alone."""

import torch
from torch import nn

from netbridge.model import continuous as flow
from netbridge.model import interpolation
from netbridge.model import solve as run
from netbridge.model.block import Block
from odelab.methods.tableau import Method

WEIGHTS = ("shared", "interpolated")


class Stage(nn.Module):
    """u' = h f(u; theta(t)) over as many layers as there are blocks, by any explicit method.

    weights="shared" keeps a block's parameters for the whole of its step, "interpolated" lets them run linearly from
    one block to the next, so that RK4 at t + 1/2 sees half of each; `depth_factor` steps per layer refine the grid.
    With a `solver` of torchdiffeq the stage is an ODE-net, and the projection is applied once, at its end.
    """

    def __init__(
        self,
        blocks: list[Block],
        number: int,
        method: Method,
        depth_factor: int = 1,
        weights: str = "shared",
        solver: str | None = None,
        tolerance: float = 1e-3,
    ):
        super().__init__()
        self.shared = nn.ModuleDict()  # controllers that serve several blocks
        self.blocks = nn.ModuleList(blocks)
        self.number = number
        self.method, self.depth_factor, self.weights = method, depth_factor, weights
        self.solver, self.tolerance = solver, tolerance
        self.tableau = run.fixed_tableau(method, frozen=weights == "shared")
        self.observation: run.Observation | None = None

    @property
    def between_blocks(self) -> bool:
        """Are slopes evaluated with parameters that belong to no single block?"""
        on_blocks_only = self.method.stages == 1 and self.depth_factor == 1 and self.solver is None
        return self.weights == "interpolated" and not on_blocks_only

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory, start = run.Memory(self.number, None), 0
        if self.blocks[0].opens:
            x, memory = self.blocks[0].step(x, memory, self.observation)
            start = 1
        if start == len(self.blocks):
            return x
        if self.solver is not None:
            return flow.flow(self, memory, start, x)
        return run.advance(
            self.rhs, self.block_at, self.blocks[-1].project, self.tableau, memory, (start, len(self.blocks)), x,
            observation=self.observation, refine=self.depth_factor,
        )[0]  # fmt: skip

    def block_at(self, t) -> Block:
        """The block in force at time t."""
        return self.blocks[min(int(t + interpolation.NEAR), len(self.blocks) - 1)]

    def rhs(self, t, u, params):
        if self.weights == "shared":
            return self.block_at(t).branch(u)
        return interpolation.slope(self.blocks, float(t), u)

    def extra_repr(self):
        if self.solver is not None:
            return f"{self.solver}, {self.weights} weights"
        return f"{self.method.name}, {self.depth_factor} steps per layer, {self.weights} weights"
