"""The error that a block makes as one Euler step: what stiffness should predict."""

import torch
from torch import nn

from netbridge.common.preservation import keep_generators
from netbridge.model import solve
from netbridge.spectrum.anatomy import anatomy
from odelab import RK4, core

SETTLED = 0.01  # of the way a flow goes: how far half as many substeps may be from all of them
MOST = 1024  # substeps that are tried where fewer do not settle


@keep_generators()
def step_error(block: nn.Module, states: torch.Tensor, substeps: int = 32, gate: str = "live") -> torch.Tensor:
    """Measure Euler's local error of a block: how far its one step is from the exact flow of u' = h(u) f(u).

    A residual block u + h f(u) is one Euler step of size 1. The exact flow over the same time is approached by
    `substeps` steps of RK4 on the block's own branch, and the error is the distance of the two, before a final ReLU,
    relative to the length of the step: ||flow_1(u) - (u + h f(u))|| / ||h f(u)||.

    block     a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    states    states of the block, (N, ...), such as `nb.block_states` gives; the errors have their precision
    substeps  RK4 steps of the flow; 32 (16 and 32 agree to 1e-3 on trained ResNets). Where half as many give another
              flow, as they do in a stiff block, they are doubled until they do not, 1024 at most
    gate      "live" (default): the flow's step size h follows the state; "frozen": it stays what it is at `states`

    Returns the errors, (N,): inf where the flow leaves the range of floating-point numbers, NaN where 1024 substeps do
    not settle it. Raises ValueError for a block that changes the shape and for states that are not finite.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0]
    >>> errors = nb.step_error(block, torch.rand(3, 4, 8, 8))
    >>> errors.shape, bool((errors < 1).all())
    (torch.Size([3]), True)
    """
    with torch.no_grad():
        field, slope = field_of(block, states, gate)
        flow = unit_of_flow(field, states, substeps)
        distance = torch.linalg.vector_norm((flow - states - slope).flatten(1), dim=1)
        length = torch.linalg.vector_norm(slope.flatten(1), dim=1)
        errors = torch.where(length == 0, torch.zeros_like(length), distance / length)
    unsettled = flow.flatten(1).isnan().all(1)
    return torch.where(errors.isfinite() | unsettled, errors, torch.full_like(errors, torch.inf))


@keep_generators()
def exact_flow(block: nn.Module, states: torch.Tensor, substeps: int = 32, gate: str = "live") -> torch.Tensor:
    """Follow a block's differential equation u' = h(u) f(u) for one unit of time: what its one step approximates.

    block     a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    states    states of the block, (N, ...)
    substeps  steps of RK4 that approach the flow; 32 by default, and more where they are needed, as in `nb.step_error`
    gate      "live" (default): the step size h follows the state; "frozen": it stays what it is at `states`

    Returns the states after the flow, (N, ...), before a final ReLU of the block; what leaves the range of
    floating-point numbers is not finite, and all of a state is NaN whose flow 1024 substeps do not settle. Raises
    ValueError for a block that changes the shape and for states that are not finite.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0]
    >>> states = torch.rand(3, 4, 8, 8)
    >>> flow, step = nb.exact_flow(block, states), states + block.branch(states)
    >>> error = (flow - step).flatten(1).norm(dim=1) / (step - states).flatten(1).norm(dim=1)
    >>> bool(torch.allclose(error, nb.step_error(block, states)))
    True
    """
    with torch.no_grad():
        return unit_of_flow(field_of(block, states, gate)[0], states, substeps)


def field_of(block: nn.Module, states: torch.Tensor, gate: str):
    """The right-hand side u -> h(u) f(u) of a block, and its value at the states."""
    if gate not in ("live", "frozen"):
        raise ValueError(f'`gate` must be "live" or "frozen", got {gate!r}.')
    if not (isinstance(states, torch.Tensor) and states.ndim > 1 and states.is_floating_point()):
        given = f"shape {tuple(states.shape)}" if isinstance(states, torch.Tensor) else type(states).__name__
        raise TypeError(f"`states` must be a tensor (N, ...) of floating-point numbers, got {given}.")
    if not bool(states.isfinite().all()):
        raise ValueError("`states` must be finite, they hold NaN or infinity.")
    parts = anatomy(block, states)
    if gate == "frozen" and (parts.branch is None or (parts.live and parts.size_at is None)):
        raise ValueError(f'`gate` must be "live" for this block, whose step size cannot be told apart: {parts.reason}.')
    held = 1.0 if parts.size_at is None else parts.size_at(states)

    def field(u):
        if parts.branch is None:
            return parts.increment(u.clone())
        f = parts.branch(u.clone())
        if parts.size_at is None:
            return f
        if gate == "frozen" or not parts.live:
            return held * f
        return (parts.size_at(u) if parts.size_of is None else parts.size_of(parts.shortcut(u), f)) * f

    slope = field(states)
    if slope.shape != states.shape:
        raise ValueError(
            f"`block` maps {tuple(states.shape[1:])} to {tuple(slope.shape[1:])}: a block that changes the "
            "shape is no step of a differential equation."
        )
    return field, slope


def unit_of_flow(field, states: torch.Tensor, substeps: int) -> torch.Tensor:
    """The flow over a unit of time by RK4, with as many substeps for each state as settle it."""
    if substeps < 1:
        raise ValueError(f"`substeps` must be at least 1, got {substeps!r}.")
    count = max(2, substeps)
    coarse, flow = (equal_steps(field, states, RK4, part) for part in (count // 2, count))
    open_ = ~is_settled(coarse, flow, states)
    while bool(open_.any()) and 2 * count <= MOST:
        count *= 2
        finer = equal_steps(field, states, RK4, count)
        settled = is_settled(flow, finer, states)
        flow = torch.where(along(open_, flow), finer, flow)
        open_ &= ~settled
    inside = flow.flatten(1).isfinite().all(1)
    return torch.where(along(open_ & inside, flow), torch.full_like(flow, torch.nan), flow)


def is_settled(coarse: torch.Tensor, fine: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """Of which states are two flows as close as it takes, (N,)?"""
    largest = torch.stack([coarse, fine, states]).abs().flatten(2).amax((0, 2))  # whose squares may be out of range
    unit = along(torch.where(largest > 0, largest, torch.ones_like(largest)), fine)
    apart, way = (
        torch.linalg.vector_norm((fine / unit - other / unit).flatten(1), dim=1) for other in (coarse, states)
    )
    return (apart <= SETTLED * way) & largest.isfinite()


def along(chosen: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A choice of states (N,) in as many dimensions as the states."""
    return chosen.view(-1, *(1,) * (like.ndim - 1))


def equal_steps(field, u: torch.Tensor, method, count: int) -> torch.Tensor:
    """The state after a unit of time of u' = field(u), by `count` equal steps of a method, through `integrate`.

    field   a function of the state
    u       the states to start from, (N, ...)
    method  an `odelab` Method; with EULER this is a residual network whose blocks share their weights
    count   how many steps, of size 1 / count each
    """

    def propose(memory, t, t1, u, slope):
        return solve.next_time(t, count) - t, 1.0 / count, memory

    step = core.rk_step_of(core.combine, solve.fixed_tableau(method, frozen=False))
    state = core.State(0, u, None, False, None)
    _, state, *_ = core.integrate(
        step, core.slope_alone, lambda t, u, params: field(u), None, propose, solve.accept, core.no_projection,
        core.no_record, None, state, 1, count,
    )  # fmt: skip
    return state.u
