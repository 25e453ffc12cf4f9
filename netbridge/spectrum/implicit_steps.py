"""Linearly implicit steps of a residual block: what another method than Euler's would make of the same branch.

The step is `odelab.core.rosenbrock_step_of`, the one of every Rosenbrock method; the systems (I - h gamma J) x = b are
solved by GMRES, from products of the branch's Jacobian with vectors, since a matrix of all features would not fit.
"""

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.common.preservation import keep_generators
from netbridge.model import solve
from netbridge.spectrum.autodiff import tangent
from netbridge.spectrum.step_error import equal_steps, exact_flow, field_of
from odelab import core

IMPLICIT_EULER = odelab.RosenbrockMethod("EULER1", order=1, gamma=1.0, a=[[]], C=[[]], m=[1.0])
SOLVED = 1e-5  # the residual at which GMRES ends, relative to the right-hand side
BASIS = 40  # products of GMRES before it starts again, which it does once


@keep_generators()
def implicit_flow(block: nn.Module, states: torch.Tensor, steps: int = 1, method=IMPLICIT_EULER, gate: str = "frozen"):
    """Follow a block's differential equation u' = h(u) f(u) for one unit of time by linearly implicit steps.

    block   a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    states  states of the block, (N, ...), solved one by one in their own precision
    steps   equal steps in the unit of time; 1
    method  a RosenbrockMethod; by default the linearly implicit Euler method, u + (I - J)^-1 h f(u) for one step
    gate    "frozen" (default): the step size h(u) stays what it is at `states`; "live": it follows the state

    Returns the states after the unit of time, (N, ...), before a final ReLU of the block. Raises ValueError for a block
    that changes the shape, and where `steps` is not positive. A state whose systems GMRES does not solve is NaN.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block, states = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0], torch.rand(2, 4, 8, 8).double()
    >>> nb.implicit_flow(block, states, steps=4).shape
    torch.Size([2, 4, 8, 8])
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1, got {steps!r}.")
    with torch.no_grad():
        return torch.cat([one_flow(field_of(block, state, gate)[0], state, steps, method) for state in states.split(1)])


def one_flow(field, state: torch.Tensor, steps: int, method) -> torch.Tensor:
    """The flow of one state."""
    from scipy.sparse.linalg import LinearOperator, gmres

    def prepare(t, u, slope, params):
        return slope, u, torch.zeros_like(slope)  # the Jacobian is told by the state at which it is taken

    def factor(at, hg):
        def product(v):
            v = torch.as_tensor(v, dtype=state.dtype, device=state.device).view(state.shape)
            return (v - hg * tangent(field, at, v)).cpu().numpy().ravel()

        return LinearOperator((state.numel(), state.numel()), product, dtype=str(state.dtype).removeprefix("torch."))

    def backsub(operator, right):
        right = right.cpu().numpy().ravel()
        if not np.isfinite(right).all():
            return torch.full_like(state, torch.nan)
        found, failed = gmres(operator, right, rtol=SOLVED, restart=BASIS, maxiter=2)
        if failed:
            found = np.full(found.shape, np.nan)
        return torch.as_tensor(found, dtype=state.dtype, device=state.device).view(state.shape)

    def propose(memory, t, t1, u, slope):
        return solve.next_time(t, steps) - t, 1.0 / steps, memory

    step = core.rosenbrock_step_of(core.combine, factor, backsub, method.tableau)
    start = core.State(0, state, None, False, None)
    _, end, *_ = core.integrate(
        step, prepare, lambda t, u, params: field(u), None, propose, solve.accept, core.no_projection,
        core.no_record, None, start, 1, steps,
    )  # fmt: skip
    return end.u


def steps_at_equal_error(block: nn.Module, states: torch.Tensor, eps: float, ladder=(1, 2, 4, 8, 16)) -> np.ndarray:
    """Count the equal steps that Euler's method and the linearly implicit one need for a block's flow at equal error.

    This is the test of stiffness for a block, with linear algebra free of charge: where the implicit method does not
    manage with fewer steps, no solver of its systems could make it pay. Errors are distances to the exact flow relative
    to the length of the block's own step; counts are interpolated on the ladder (`odelab.experiments.least_cost`).

    block   a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    states  states of the block, (N, ...); double precision is best
    eps     the error, relative to |h f|
    ladder  numbers of steps that are tried, increasing

    Returns (N, 2): steps of the explicit and of the implicit method; NaN where the ladder is too short.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block, states = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0], torch.rand(1, 4, 8, 8).double()
    >>> counts = nb.steps_at_equal_error(block, states, 0.05)
    >>> counts.shape
    (1, 2)
    """
    from odelab.experiments import least_cost

    if not eps > 0.0:
        raise ValueError(f"`eps` must be positive, got {eps!r}.")
    if len(ladder) < 1 or not (np.diff(ladder) > 0).all() or ladder[0] < 1:
        raise ValueError(f"`ladder` must be increasing numbers of steps from 1 on, got {ladder!r}.")
    counts = np.empty((len(states), 2))
    for i, state in enumerate(states.split(1)):
        with torch.no_grad():
            field, slope = field_of(block, state, "frozen")
            exact = exact_flow(block, state, max(32, 2 * ladder[-1]), "frozen")
            length = float(slope.norm())
            explicit = [float((equal_steps(field, state, odelab.EULER, m) - exact).norm()) / length for m in ladder]
        implicit = [float((implicit_flow(block, state, m) - exact).norm()) / length for m in ladder]
        for k, errors in enumerate((explicit, implicit)):
            counts[i, k] = least_cost(errors, ladder, eps)
    return counts
