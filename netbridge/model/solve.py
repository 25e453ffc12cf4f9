"""The one place where a network meets the solver: every block is a run of `odelab.core.integrate` over one layer.

The clock counts layers: a step of a block takes dt = 1, or 1/depth_factor on a refined grid. The step size h that
multiplies the slope comes from the block's controller. `integrate` is looked up at every call.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.modules import module as hooks

from netbridge.step_sizes.base import UNIT, check_step_size
from odelab import core
from odelab.methods import explicit


def fixed_tableau(method, frozen: bool):
    """The method's numbers for a step whose size is given: no error to form, no slope handed on to the next block.

    `frozen` sets the nodes c of the method to 0: every stage then evaluates the slope at the time at which the step
    starts, that is with the parameters of the step's own block.
    """
    c = method.tableau.c
    return method.tableau._replace(c=(0.0,) * len(c) if frozen else c, embedded=False, fsal=False)


EULER = fixed_tableau(explicit.EULER, frozen=True)


class Memory(NamedTuple):
    """What the solver's `propose` carries and `record` sees.

    stage    the stage's number within the network
    hidden   what the controllers of the stage remember (DIA's cell); None at the start of a stage
    """

    stage: int
    hidden: Any


START = Memory(0, None)


@dataclasses.dataclass
class Observation:
    """An observer of the steps of a forward pass; `Network.observed` installs it.

    record   called at every step as `odelab.core.integrate` calls it
    carry    what `record` has returned so far
    step     optional; replaces both `odelab.core.rk_step` and the projection in plain Euler steps
    """

    record: Callable
    carry: Any = None
    step: Callable | None = None


@dataclasses.dataclass
class Layer:
    """What a stage tells one of its blocks about the forward pass, and what the block answers in `after`.

    number        the block's number within its stage: its step starts at this time
    memory        what the blocks before it have left
    tableau       the numbers of the Runge-Kutta method
    refine        steps per layer
    slope_at      slope_at(t, u), where weights run from block to block; None: the block's own branch
    observation   the observer of this forward pass, or None
    after         the memory for the next block, set by the block
    """

    number: int = 0
    memory: Memory = START
    tableau: core.Tableau = EULER
    refine: int = 1
    slope_at: Callable | None = None
    observation: Observation | None = None
    after: Memory | None = None


def run_layer(block, layer: Layer, u, slope=None):
    """Runs the solver over one layer and returns the state after it; by Euler's method this is project(u + h f).

    A block that opens a stage has computed its slope already and passes it as `slope`; its step is then a plain Euler
    step, whatever the method.
    """
    tableau, refine = (layer.tableau, layer.refine) if slope is None else (EULER, 1)
    step = plain = core.rk_step_of(core.combine, tableau)
    project, observation = block.project, layer.observation
    record, carry = core.no_record, None
    if observation is not None:
        record, carry = observation.record, observation.carry
    watched = torch.compiler.is_compiling() or torch.jit.is_tracing()  # a program is made of the operations that run
    if len(tableau.b) == 1 and refine == 1 and not torch.is_grad_enabled() and not watched:
        if observation is None:
            step = euler_in_place
        elif observation.step is not None:
            step, project = observation.step, core.no_projection

    def rhs(t, u, params):
        return block.branch(u) if layer.slope_at is None else layer.slope_at(t, u)

    def propose(memory, t, t1, u, slope):
        h, hidden = block.controller.propose(memory.hidden, u, slope)
        if h is UNIT and step is not plain and holds_output(block):
            h = 1.0  # h * slope is then a new tensor, so a slope that a hook keeps is not overwritten
        elif h is not UNIT:
            check_step_size(h, slope, block.controller)
        memory = memory._replace(hidden=hidden)
        if refine != 1:
            return next_time(t, refine) - t, h * (1.0 / refine), memory
        return 1, h, memory

    t = layer.number
    state = core.State(t, u, slope, slope is not None, layer.memory)
    _, state, carry, _, _ = core.integrate(
        step, core.slope_alone, rhs, None, propose, accept, project, record, carry, state, t + 1, refine
    )
    layer.after = state.memory
    if observation is not None:
        observation.carry = carry
    return state.u


def euler_in_place(rhs, params, t, u, slope, dt, h):
    """`odelab.core.rk_step` for Euler's method, bit for bit, with the sum in the memory of h * slope.

    For inference: where h is `UNIT` that is the slope's own memory: a caller who keeps the slope must clone it.
    """
    term = h * slope
    fits = term.shape == u.shape and term.dtype == u.dtype
    return term.add_(u) if fits else u + term, slope, [slope], [slope], False


def accept(memory, dt, error, u, u_new):
    """Accepts every step: the controllers of a network decide before the step and estimate no error."""
    return 1, memory


def holds_output(block) -> bool:
    """Does a forward hook receive the output of the branch? It may keep that tensor, so it must not be overwritten."""
    last = getattr(block.branch, "last", None)
    return bool(hooks._has_any_global_hook() or block.branch._forward_hooks or last is None or last._forward_hooks)


def next_time(t, refine):
    """The next time of the refined grid: (k + 1) / refine, so that no rounding adds up and layers are integers."""
    count = round(t * refine) + 1
    return count // refine if count % refine == 0 else count / refine
