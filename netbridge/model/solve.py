"""The one place where a network meets the solver: `odelab.core.integrate`, looked up at every call.

The clock counts layers (dt = 1, or 1/depth_factor on a refined grid); the gain h comes from the block's controller.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.modules import module as hooks

from odelab import core


class One(float):
    """The number 1. It multiplies a slope by returning it, where torch would write a whole feature map anew."""

    def __mul__(self, slope):
        return slope

    __rmul__ = __mul__


UNIT = One(1.0)


class Memory(NamedTuple):
    """What `propose` carries and `record` sees: the stage's number and the controllers' own memory."""

    stage: int
    hidden: Any


@dataclasses.dataclass
class Observation:
    """A `record` of `odelab.core.integrate` to call at every step, what it has carried so far, and perhaps a step
    of one's own, which projects too, in place of `odelab.core.rk_step` and `project` of plain Euler steps."""

    record: Callable
    carry: Any = None
    step: Callable | None = None


def advance(rhs, block_at, project, tableau, memory, span, u, slope=None, observation=None, refine=1):
    """Run the blocks of layers span[0] to span[1] on u; (state, memory).

    rhs(t, u, params) -> slope; block_at(t) -> the block whose controller decides the step from t; `slope` is given
    where it is known already.
    """
    t, t1 = span
    watched = observation is not None
    record, carry = (observation.record, observation.carry) if watched else (core.nothing_recorded, None)
    step = core.rk_step
    if len(tableau[1]) == 1 and refine == 1 and not torch.is_grad_enabled() and not torch.compiler.is_compiling():
        step = (observation.step or core.rk_step) if watched else euler_in_place
        if watched and observation.step is not None:
            project = core.unprojected

    def propose(memory, t, t1, u, slope):
        block = block_at(t)
        h, hidden = block.controller.propose(memory.hidden, u, slope)
        if h is UNIT and step is not core.rk_step and hooked(block):
            h = 1.0  # a product of its own: the slope stays what the hook has seen
        if hidden is not memory.hidden:
            memory = memory._replace(hidden=hidden)
        if refine != 1:
            return next_time(t, refine) - t, h * (1.0 / refine), memory
        return 1, h, memory

    _, _, u, _, _, memory, carry, _, _ = core.integrate(
        step, core.combine, rhs, None, tableau, propose, accept, project, record, carry, memory, t, t1,
        u, slope, slope is not None, refine * (t1 - t),
    )  # fmt: skip
    if watched:
        observation.carry = carry
    return u, memory


def euler_in_place(combine, rhs, params, t, u, slope, dt, h, tableau):
    """`odelab.core.rk_step` for Euler, bit for bit: the sum is formed in the memory of h f, which is nobody else's."""
    term = h * slope
    fits = term.shape == u.shape and term.dtype == u.dtype
    return term.add_(u) if fits else u + term, slope, [slope], [slope]


def accept(memory, dt, error, u, u_new):
    """A gate looks forward only: every step is accepted, without a look at its numbers."""
    return 1, memory


def hooked(block) -> bool:
    """Does a forward hook hold the branch's output?"""
    last = getattr(block.branch, "last", None)
    return bool(
        hooks._has_any_global_hook()
        or block._forward_hooks
        or block.branch._forward_hooks
        or last is None
        or last._forward_hooks
    )


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
