"""What looks at one residual step while it is taken, and reports state, slope and step size to a recorder."""

import math
from typing import Any

import torch

from netbridge.foreign.operations import Factor, Operation, Place, Step
from netbridge.nested_tensors import first_tensor
from netbridge.tracing.recorder import Recorder


class Probe:
    """Reports one step to a recorder, at the moments that `looks` names.

    k           the number of the step, by which the recorder knows it
    step        what was found of it
    recorder    a `netbridge.tracing.recorder.Recorder`
    operations  those of the pass in which the step was found
    """

    def __init__(self, k: int, step: Step, recorder: Recorder, operations: list[Operation]):
        self.k, self.step, self.recorder = k, step, recorder
        self.operations = operations
        self.parts: dict[int, torch.Tensor] = {}
        self.values: dict[Factor, Any] = {}
        self.state: torch.Tensor | None = None
        self.slope_shape: tuple[int, ...] = ()

    def looks(self):
        """(operation, is it before it, what to call) in the order in which they happen within one operation."""
        step = self.step
        several = len(step.branches) > 1
        for number, branch in enumerate(step.branches):
            if branch.how == "plain":
                yield branch.place.operation, True, self.look(self.see_part if several else self.see_slope, number)
            for factor in branch.factors:
                if factor.place is not None:
                    yield factor.place.operation, True, self.see_factor(factor)
        yield step.shortcut.operation, True, self.see_state
        yield step.addition, True, self.see_sum
        yield step.after, False, self.see_next

    def look(self, see, number):
        return lambda arguments: see(number, argument_at(arguments, self.step.branches[number].place))

    def see_slope(self, number, slope):
        self.slope_shape = tuple(slope.shape)
        self.recorder.slope(self.k, slope)

    def see_part(self, number, slope):
        overwritten = self.operations[self.step.branches[number].place.operation].in_place
        self.parts[number] = slope.clone() if overwritten else slope

    def see_factor(self, factor):
        """A function that keeps the value of a factor, which its operation may overwrite."""

        def see(arguments):
            value = argument_at(arguments, factor.place)
            overwritten = self.operations[factor.place.operation].in_place and factor.place.path == (0,)
            self.values[factor] = value.clone() if overwritten and isinstance(value, torch.Tensor) else value

        return see

    def see_state(self, arguments):
        state = argument_at(arguments, self.step.shortcut)
        self.recorder.state(self.k, state)
        formed = self.step.branches[0].how == "towards"
        if formed or (self.recorder.needs_states and self.step.identity):
            self.state = state.clone() if self.step.overwrites else state

    def see_sum(self, arguments):
        branches = self.step.branches
        first = branches[0]
        if len(branches) > 1:
            parts = [self.size(branch.factors) * self.parts[number] for number, branch in enumerate(branches)]
            self.recorder.slope(self.k, sum(parts[1:], start=parts[0]))
        elif first.how != "plain":
            given = argument_at(arguments, first.place)
            if first.how == "towards":
                slope = given - self.state
            else:
                other = arguments[first.place.path[0] + 1]
                slope = given / other if first.how == "quotient" else given * other
            self.see_slope(0, slope)
        if len(branches) == 1 and first.factors:
            crossed = first.factors[-1].layout
            shape = self.slope_shape if crossed else self.step.shape
            self.recorder.size(self.k, self.size(first.factors), self.recorder.images(self.k), len(shape))
        self.parts.clear()
        self.values.clear()
        if not (self.recorder.needs_states and self.step.identity):
            self.state = None

    def size(self, factors: tuple[Factor, ...]):
        """The product of the factors; NaN where two of them belong to different layouts of the same features."""
        scalar: Any = 1.0
        by_layout: dict[int, Any] = {}
        for factor in reversed(factors):
            value = factor.number if factor.place is None else self.values[factor]
            value = 1.0 - value if factor.how == "rest" else 1.0 / value if factor.how == "over" else value
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                by_layout[factor.layout] = by_layout.get(factor.layout, 1.0) * value
            else:
                scalar = scalar * (float(value) if isinstance(value, torch.Tensor) else value)
        if not by_layout:
            return scalar
        (size, *others) = by_layout.values()
        return math.nan if others else size if scalar == 1.0 else scalar * size

    def see_next(self, new):
        self.recorder.new_state(self.k, self.state, first_tensor(new))
        self.state = None


def argument_at(arguments, place: Place):
    """What stands at a place among the arguments of its operation."""
    for part in place.path:
        arguments = arguments[part]
    return arguments
