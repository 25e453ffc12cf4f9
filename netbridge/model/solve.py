"""The one place where a network meets the solver: `odelab.core.integrate`, looked up at every call.

The clock counts layers (dt = 1, or 1/depth_factor on a refined grid), the gain h comes from the block's controller.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.modules import module as hooks

from netbridge.model import fused
from netbridge.model.unit import SPENDING, UNIT
from odelab import core

INTEGRATE, RK_STEP = core.integrate, core.rk_step


class Memory(NamedTuple):
    """What `propose` carries and `record` sees: the stage's number and the controllers' own memory."""

    stage: int
    hidden: Any


@dataclasses.dataclass
class Observation:
    """A `record` of `odelab.core.integrate` to call at every step, and what it has carried so far.

    With a `unit`, the step size of plain Euler steps, their slope may be spent: `record` then sees what is left of it.
    """

    record: Callable
    carry: Any = None
    unit: Any = None


def advance(rhs, block_at, project, tableau, memory, span, state, slope=None, observation=None, refine=1, owned=False):
    """Run the blocks of layers span[0] to span[1] on the state, a list of one that is replaced; returns the memory.

    rhs(t, u, params) -> slope; block_at(t) -> the block whose controller decides the step from t; `slope` is given
    where it is known already; `owned` says that the first state is nobody else's. A list, because a feature map that
    a calling function still names stays in the caches for a whole stage: 2.5 % of the time of a ResNet-56.
    """
    t, t1 = span
    watched = observation is not None
    record, carry = (observation.record, observation.carry) if watched else (core.nothing_recorded, None)
    spending = observation.unit if watched else SPENDING
    may_spend = spending is not None and len(tableau[1]) == 1 and genuine() and not torch.is_grad_enabled()
    ours = Ownership(spends(observation, tableau) and refine == 1 and fused.available(), owned)

    def propose(memory, t, t1, u, slope):
        block = block_at(t)
        ours.owned = True
        h, hidden = block.controller.propose(memory.hidden, u, slope)
        if hidden is not memory.hidden:
            memory = memory._replace(hidden=hidden)
        if refine != 1:
            part = 1.0 / refine
            return next_time(t, refine) - t, part if h is UNIT else part * h, memory
        return 1, unit_step(block, may_spend, spending) if h is UNIT else h, memory

    _, _, u, _, _, memory, carry, _, _ = core.integrate(
        core.rk_step,
        core.combine,
        rhs,
        ours,
        tableau,
        propose,
        accept,
        project,
        record,
        carry,
        memory,
        t,
        t1,
        state.pop(),
        slope,
        slope is not None,
        refine * (t1 - t),
    )
    if watched:
        observation.carry = carry
    state.append(u)
    return memory


@dataclasses.dataclass
class Ownership:
    """The right-hand side's parameters: may a sum be formed in the state's memory?"""

    wanted: bool
    owned: bool  # true after the first step, whose result is the run's own

    @property
    def into(self) -> bool:
        return self.wanted and self.owned


def spends(observation, tableau) -> bool:
    """Is this a pass of Euler steps that nobody watches, by the solver itself?"""
    return observation is None and len(tableau[1]) == 1 and genuine()


def genuine() -> bool:
    """Another integrate gets plain numbers and tensors."""
    return core.integrate is INTEGRATE and core.rk_step is RK_STEP


def accept(memory, dt, error, u, u_new):
    """A gate looks forward only: every step is accepted, without a look at its numbers."""
    return 1, memory


def unit_step(block, may_spend, spending):
    """h = 1, in the form that costs least and that nobody can tell from the others."""
    if torch.compiler.is_compiling() or not genuine():
        return 1.0  # the compiler drops the product by itself and cannot trace the other two
    if may_spend and not hooked(block):
        return spending
    return UNIT


def hooked(block) -> bool:
    """Does a forward hook hold the branch's output?"""
    last = getattr(block.branch, "last", None)
    return bool(
        global_hooks() or block._forward_hooks or block.branch._forward_hooks or last is None or last._forward_hooks
    )


def global_hooks() -> bool:
    return hooks._has_any_global_hook()


def next_time(t, refine):
    """The next point of the refined grid, counted and not added up; whole layers are integers again."""
    count = round(t * refine) + 1
    return count // refine if count % refine == 0 else count / refine


def fixed_tableau(method, frozen):
    """The method's numbers for a step whose size is given: no error to form, no slope handed on to the next block.

    `frozen` asks every stage for the slope at the step's own time, that is of the step's own block.
    """
    a, b, e, c, _, _ = method.floats
    return a, b, e, (0.0,) * len(c) if frozen else c, False, False
