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
        state = [x]
        self.run(state)
        return state.pop()

    def run(self, state: list) -> None:
        """Replaces the state, a list of one (see `run.advance`)."""
        memory = run.Memory(self.number, None)
        start = 0
        if self.blocks[0].opens:
            memory = self.blocks[0].step(state, memory, self.observation)
            start = 1
        if start == len(self.blocks):
            return
        if self.solver is not None:
            state.append(flow.flow(self, memory, start, state.pop()))
            return
        run.advance(
            rhs=self.rhs,
            block_at=self.block_at,
            project=self.blocks[-1].project,
            tableau=self.tableau,
            memory=memory,
            span=(start, len(self.blocks)),
            state=state,
            observation=self.observation,
            refine=self.depth_factor,
            owned=start == 1,
        )

    @property
    def bare(self) -> bool:
        """May `run` stand for a call, with no hook or compiled form to pass by?"""
        hooked = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        return type(self) is Stage and not hooked and self._compiled_call_impl is None and not run.global_hooks()

    def block_at(self, t) -> Block:
        """The block in force at time t."""
        return self.blocks[min(int(t + interpolation.NEAR), len(self.blocks) - 1)]

    def rhs(self, t, u, params):
        if self.weights == "shared":
            return self.block_at(t).slope(u, into=params is not None and params.into)
        return interpolation.slope(self.blocks, float(t), u)

    def extra_repr(self):
        if self.solver is not None:
            return f"{self.solver}, {self.weights} weights"
        return f"{self.method.name}, {self.depth_factor} steps per layer, {self.weights} weights"
