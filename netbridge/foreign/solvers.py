"""Solvers inside a network: each run of torchdiffeq's `odeint` is one operation of a pass, whose steps are seen.

A solver's sums are its stages, its interpolation and its error estimate, and none of them is a residual step. It tells
of its steps itself, by the callbacks that torchdiffeq documents, but not where the last one ends. Its result does, so
that what watches stands around the solver's `integrate`; the user's functions and torchdiffeq's stay as they are.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from netbridge.foreign.operations import Operation
from netbridge.recording.record import Places
from netbridge.recording.recorder import Recorder

FIXED, ADAPTIVE, UNTOLD = "odeint", "odeint_adaptive", "odeint_untold"  # the last tells nobody of its steps
ACCEPTED, TAKEN = "callback_accept_step", "callback_step"  # what adaptive and what fixed solvers call


class SolverSteps:
    """The steps of solvers in one pass, handed to a recorder, among the residual steps in the order they are taken.

    recorder    takes their norms
    within      says of a module's name whether its steps are wanted
    """

    def __init__(self, recorder: Recorder, within):
        self.recorder, self.within = recorder, within
        self.taken: dict[float, tuple[str, bool]] = {}  # the module that solves, and whether it is the first step
        self.rows: list[int] = []  # where they stand among all steps

    def add(self, module: str, first: bool, h: float, before: torch.Tensor, after: torch.Tensor) -> None:
        """Take a step of size h from `before` to `after`, the slope of which is what the method makes of all stages."""
        earlier = sum(type(k) is int for k in self.recorder.below)
        k: Any = earlier - 1 / (2 + len(self.taken))  # behind the residual step before it, ahead of the next one
        self.taken[k] = module, first
        self.recorder.state(k, before)
        self.recorder.slope(k, (after - before) / h)
        self.recorder.size(k, h, len(before), before.ndim)
        self.recorder.new_state(k, before, after)

    def arrange(self, own: Places) -> Places:
        """All steps of the pass in order; `own` are the residual ones. A run of a solver is a stage of its own."""
        if not self.taken:
            return own
        order = sorted(self.recorder.below)
        self.recorder.renumber(order)
        self.rows = [place for place, k in enumerate(order) if k in self.taken]
        places, modules = Places(), [module for module, _ in self.taken.values()]
        seen = dict.fromkeys(modules, 0)
        for place, k in enumerate(order):
            if k in self.taken:
                module, opens = self.taken[k]
                seen[module] += 1
                name = f"{module} ({seen[module]})".strip()
            else:
                name, opens = own.names[k], own.first[k] or order[place - 1] in self.taken
            places.add(name, (places.stage[-1] if place else -1) + opens, opens)
        return places


@contextlib.contextmanager
def watch_solvers(watching, steps: SolverSteps | None = None) -> Iterator[None]:
    """A context manager: within it each run of a solver of torchdiffeq is one operation of `watching`.

    steps   is told of the steps that they take; None: nobody is
    """
    solvers = getattr(sys.modules.get("torchdiffeq._impl.odeint"), "SOLVERS", {})
    before = dict(solvers)
    solvers.update({name: watched(kind, watching, steps) for name, kind in before.items()})
    try:
        yield
    finally:
        solvers.update(before)


def watched(kind: Any, watching, steps: SolverSteps | None) -> type:
    """The same solver, whose runs are watched; but for one within the right-hand side of another."""
    told = kind.valid_callbacks()
    name, callback = (ADAPTIVE, ACCEPTED) if ACCEPTED in told else (FIXED if TAKEN in told else UNTOLD, TAKEN)

    def integrate(solver, t):
        if watching.inside is not None:
            return kind.integrate(solver, t)
        module = watching.module()
        with watching.stand_for(name) as done:
            if name == UNTOLD or steps is None or not steps.within(module):
                solution = kind.integrate(solver, t)
            else:
                reach = tell_steps(solver, callback, lambda *step: steps.add(module, *step))
                solution = kind.integrate(solver, t)
                reach(t[-1], solution[-1])
            done(solution)
        return solution

    def integrate_until_event(solver, t0, event):
        if watching.inside is not None:
            return kind.integrate_until_event(solver, t0, event)
        with watching.stand_for(UNTOLD) as done:
            time, solution = kind.integrate_until_event(solver, t0, event)
            done(solution)
        return time, solution

    return type(kind.__name__, (kind,), {"integrate": integrate, "integrate_until_event": integrate_until_event})


def tell_steps(solver, callback: str, add: Callable) -> Callable:
    """Have a solver tell of its steps; returns the function that is to be told of the end, with its time and state.

    An adaptive solver steps over the end and goes back by interpolation: its last step is counted to the end.

    add     takes the steps: add(first, h, before, after)
    """
    own, state = getattr(solver.func, callback), states_of(solver.func)
    start: tuple | None = None

    def reach(t, y):
        nonlocal start
        time, y = float(t), state(y)
        if start is not None:
            t0, y0, first = start
            add(first, time - t0, y0, y)
        start = time, y, start is None

    def tell(t0, y0, dt):
        reach(t0, y0)
        return own(t0, y0, dt)

    setattr(solver.func, callback, tell)
    return reach


def states_of(func):
    """How a solver's states are read: tuples of tensors, which torchdiffeq joins in a row, image by image."""
    shapes = None
    while type(func).__module__.startswith("torchdiffeq."):
        shapes = getattr(func, "shapes", shapes)
        func = func.base_func
    if shapes is None:
        return lambda y: y

    def state(y):
        sizes = [shape.numel() for shape in shapes]
        parts = [part.view(shape) for part, shape in zip(y.reshape(-1).split(sizes), shapes, strict=True)]
        images = shapes[0][:1]
        return torch.cat([part.flatten(1) for part in parts if part.ndim > 1 and part.shape[:1] == images], 1)

    return state


def solving(operations: list[Operation], names=(FIXED, ADAPTIVE)) -> list[str]:
    """The modules in which solvers of these kinds ran, in order."""
    return list(dict.fromkeys(operation.module for operation in operations if operation.name in names))
