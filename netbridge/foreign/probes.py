"""What looks at one residual step while it is taken, and reports state, slope and step size to a recorder."""

from typing import Any

import torch

from netbridge.common.nested_tensors import first_tensor
from netbridge.foreign.operations import Factor, Operation, Place, Product, Step
from netbridge.recording.recorder import Recorder


class Probe:
    """Reports one step to a recorder, at the moments that `looks` names.

    k           the number of the step, by which the recorder knows it
    step        what was found of it
    recorder    a `netbridge.recording.recorder.Recorder`
    operations  those of the pass in which the step was found

    Everything that is kept is kept in the layout of the sum: a change of layout on the way there is repeated on it.
    """

    def __init__(self, k: int, step: Step, recorder: Recorder, operations: list[Operation]):
        self.k, self.step, self.recorder, self.operations = k, step, recorder, operations
        self.values: dict[Any, Any] = {}  # by place
        branches = step.branches
        # One branch without a weight is measured where it stands; of several the sum is formed.
        alone = len(branches) == 1 and branches[0].how == "plain" and not branches[0].factors
        self.as_it_stands = alone and not (branches[0].layouts and recorder.keeps)
        self.keeps_state = (recorder.needs_states and step.identity) or branches[0].how == "towards"

    def looks(self):
        """(operation, is it before it, what to call) in the order in which they happen within one operation."""
        step, first = self.step, self.step.branches[0]
        kept: list = [*step.factors, *(one for branch in step.branches for one in (*branch.factors, *branch.own))]
        if self.as_it_stands:
            yield first.place.operation, True, self.see_slope
        else:
            kept += step.branches
        for place, layouts in dict.fromkeys((one.place, one.layouts) for one in kept):
            yield from self.keep(place, layouts)
        yield step.shortcut.operation, True, self.see_state
        for operation in step.layouts:
            yield operation, True, self.lay_out_state
        yield step.addition, True, self.see_sum
        for operation in step.tail:
            yield operation, True, self.lay_out_state
        yield step.after, False, self.see_next

    def keep(self, place: Place | None, layouts: tuple[int, ...]):
        """Keeps what stands at a place, and repeats on it every change of layout that follows."""
        if place is None:
            return
        overwritten = self.operations[place.operation].in_place and place.path == (0,)

        def see(arguments, again):
            value = argument_at(arguments, place)
            self.values[place, layouts] = value.clone() if overwritten and isinstance(value, torch.Tensor) else value

        def lay_out(arguments, again):
            value = self.values[place, layouts]
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                self.values[place, layouts] = again(value.expand(arguments[0].shape))

        yield place.operation, True, see
        for operation in layouts:
            yield operation, True, lay_out

    def see_slope(self, arguments, again):
        branch = self.step.branches[0]
        self.recorder.slope(self.k, first_axis(argument_at(arguments, branch.place), branch.axis))

    def see_state(self, arguments, again):
        state = argument_at(arguments, self.step.shortcut)
        self.recorder.state(self.k, first_axis(state, self.step.axis))
        if self.keeps_state:
            self.values["state"] = state.clone() if self.step.overwrites else state

    def see_sum(self, arguments, again):
        step, branches = self.step, self.step.branches
        size = self.total(step.size)
        if step.scale:
            size = size / self.total(step.scale)
        if not self.as_it_stands:
            parts = []
            for branch in branches:
                part = self.values[branch.place, branch.layouts]
                parts.append(
                    self.product((*branch.factors, *branch.own)) * part if branch.factors or branch.own else part
                )
            slope = sum(parts[1:], start=parts[0])
            if branches[0].how == "towards":
                slope = slope - self.values["state"]
            if step.tableau:
                weight = sum(self.product(branches[number].factors) for number in step.tableau)
                size, slope = size * weight, slope / weight
            self.recorder.slope(self.k, first_axis(slope, step.axis))
        if step.size or step.scale or step.tableau:
            if isinstance(size, torch.Tensor) and step.axis:
                size = first_axis(size[(None,) * (len(step.shape) - size.ndim)], step.axis)
            self.recorder.size(self.k, size, self.recorder.images(self.k), len(step.shape))
        state = self.values.get("state")
        self.values.clear()
        if self.recorder.needs_states and step.identity:
            self.values["state"] = state

    def total(self, products: tuple[Product, ...]):
        """A sum of products of factors; 1 for none."""
        found = [self.product(product) for product in products]
        return sum(found[1:], start=found[0]) if found else 1.0

    def product(self, factors: tuple[Factor, ...]):
        """The product of factors, numbers apart from tensors: their products do not depend on their order."""
        scalar: Any = 1.0
        size: Any = None
        for factor in reversed(factors):
            value = factor.number if factor.place is None else self.values[factor.place, factor.layouts]
            value = 1.0 - value if factor.how == "rest" else 1.0 / value if factor.how == "over" else value
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                size = value if size is None else size * value
            else:
                scalar = scalar * (value.item() if isinstance(value, torch.Tensor) else value)
        return scalar if size is None else size if scalar == 1.0 else scalar * size

    def lay_out_state(self, arguments, again):
        if self.values.get("state") is not None:
            self.values["state"] = again(self.values["state"])

    def see_next(self, new):
        state = self.values.pop("state", None)
        before = None if state is None else first_axis(state, self.step.end_axis)
        self.recorder.new_state(self.k, before, first_axis(first_tensor(new), self.step.end_axis))


def first_axis(value: torch.Tensor, axis: int) -> torch.Tensor:
    """A tensor with the axis of the samples first."""
    return value.movedim(axis, 0) if axis else value


def argument_at(arguments, place: Place):
    """What stands at a place among the arguments of its operation."""
    for part in place.path:
        arguments = arguments[part]
    return arguments
