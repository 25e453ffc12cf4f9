"""The residual steps of a forward pass: the sums of shortcut and branch that lead from state to state."""

import functools
import math
from typing import Any

from netbridge.foreign.choices import is_at
from netbridge.foreign.operations import UNSEEN, Step
from netbridge.foreign.sums import Sums
from netbridge.foreign.vocabulary import ACTIVATIONS, ADDING, ADDING_PRODUCTS, SIGNATURES, SLICES, TRANSPARENT

LONGEST_TAIL = 3  # operations between an addition and the next state


class Graph(Sums):
    """The operations of a pass and the residual steps among them, in order."""

    def steps(self) -> list[Step]:
        """The residual steps on the way to an output, in order."""
        return list(self.sorted_steps[0])

    @functools.cached_property
    def sorted_steps(self) -> tuple[list[Step], list[Step]]:
        """The residual steps in order, and the sums that reach back to an earlier state (`reaches_back`)."""
        found = self.candidates
        origins = {step.state for step in found if step.identity}
        reached = {step.addition: self.follow_tail(step.addition, origins) for step in found}
        tails = {tail for after, tail in reached.values() if after is not None}
        every = [self.ending(step, self.next_state(step.addition, reached[step.addition], tails)) for step in found]
        found = every
        regions = {step.addition: self.branch_between(step.state, step.addition) - {step.addition} for step in found}
        found = [step for step in found if not bridges(step, found, regions)]
        back = [step for step in found if self.reaches_back(step, found, regions[step.addition])]
        found = [step for step in found if step not in back]
        outermost = [step for step in found if not any(self.is_inside(step, regions[o.addition], o) for o in found)]
        sums = {step.addition for step in every}
        back = [
            step for step in back if not any(self.is_explained(step, regions[o.addition], o, sums) for o in outermost)
        ]
        named = number_names(outermost)
        if self.choices.steps is None:
            return named, back
        taken = [step for step in named if self.choices.takes(step, self.operations[step.addition])]
        known = {step.addition for step in taken}
        others = [step for step in every if step.addition not in known]
        taken += [
            step
            for step in others
            if any(is_at(self.operations[step.addition], w) and ":" in w for w in self.choices.steps)
        ]
        return number_names(sorted(taken, key=lambda step: step.addition)), []

    def reaches_back(self, step: Step, found: list[Step], region: set[int]) -> bool:
        """Does it add a projection of an old state to what other steps made of it since, which go on beside this sum?

        Such as the first state that GCNII and APPNP mix into every one: no state and branch, but two states.
        """
        whole = step.identity and not step.scale and step.branches[0].how != "towards"
        if whole or self.is_partial(step):
            return False
        others = (other for other in found if other is not step and other.addition in region)
        return any(not self.is_inside(other, region, step) for other in others)

    def is_inside(self, step: Step, region: set[int], outer: Step) -> bool:
        """Is this step a part of another's branch, and of nothing else? Half of a state may go on beside a branch."""
        if step.addition not in region:
            return False
        reached, waiting = {outer.addition}, [step.addition]
        while waiting:
            i = waiting.pop()
            if i not in reached:
                reached.add(i)
                waiting.extend(self.users[i])
        return not (reached - {outer.addition}) & set(self.outputs)

    def is_explained(self, step: Step, region: set[int], outer: Step, sums: set[int]) -> bool:
        """Is this sum inside another, none of whose branches is itself a sum of state and branch, a later state?"""
        leaves = {self.resolve(self.source(branch.place), layouts=True) for branch in outer.branches}
        return not leaves & sums and self.is_inside(step, region, outer)

    def follow_tail(self, addition: int, origins: set[int]) -> tuple[int | None, tuple[str, ...]]:
        """The next state if a step starts from it, and the names of the operations between."""
        i: int = addition
        names: list[str] = []
        for _ in range(LONGEST_TAIL + 1):
            if i in origins:
                return i, tuple(names)
            if len(self.users[i]) != 1:
                break
            (after,) = self.users[i]
            if self.operations[after].shape != self.operations[i].shape and not self.is_layout(after):
                break
            i = after
            names.append(self.operations[i].name)
        return None, tuple(names)

    def next_state(self, addition, reached, tails) -> int:
        """x_{t+1} of the step that adds at `addition`.

        A step followed by another ends where that one starts. The last step of a stage has no successor: it ends after
        the same operations (say norm, relu) as the steps before it, or, if none has any, after an activation that
        follows directly."""
        after, names = reached
        if after is not None:
            return after
        fitting = [tail for tail in tails if names[: len(tail)] == tail]
        activated = not tails and bool(names) and names[0] in ACTIVATIONS
        if not fitting and not activated:
            return self.scaling_behind(addition)[1]
        length = max(map(len, fitting)) if fitting else 1
        after = addition
        for _ in range(length):
            after = self.users[after][0]
        return max(after, self.scaling_behind(addition)[1])

    def ending(self, step: Step, after: int) -> Step:
        """The same step with its next state, and the changes of layout on the way there."""
        way = sorted(self.branch_between(step.addition, after))
        tail = tuple(i for i in way if self.is_layout(i))
        return step._replace(after=after, tail=tail, end_axis=self.axis[after] or 0)

    def in_branches(self, steps: list[Step]) -> set[int]:
        """The operations between the states of these steps and their sums."""
        return set().union(*(self.branch_between(step.state, step.addition) for step in steps))

    def is_partial(self, step: Step) -> bool:
        """Is the shortcut a slice of the state, so that the step changes a part of it only?"""
        way = self.between(step.state, self.source(step.shortcut))
        names = {self.operations[j].name for j in way if not self.is_layout(j)}
        return bool(names & SLICES) and names <= SLICES | TRANSPARENT

    def find_joined(self, steps: list[Step]) -> list[str]:
        """The steps behind whose sum, on the way to the next state, something else is added."""
        found = []
        for step in steps:
            way, i = [], step.addition
            while i != step.after:
                i = self.users[i][0]
                way.append(self.operations[i].name)
            if ADDING.intersection(way):
                found.append(step.name)
        return found

    def find_out_of_sight(self) -> list[str]:
        """The modules that add or multiply what was made out of sight, where nothing tells it from a constant."""
        hidden, found = [False] * len(self.operations), []
        for i, operation in enumerate(self.operations):
            hidden[i] = operation.name == UNSEEN or any(hidden[j] for j in operation.inputs)
            if operation.name in SIGNATURES and self.live[i]:
                unknown = [j for j in operation.inputs if hidden[j] and not self.live[j]]
                if any(self.operations[j].shape == operation.shape for j in unknown):
                    found.append(operation.module)
        return found

    def products_of(self, step: Step, why: str = "") -> list[int]:
        """The products of two live things on the way from the leaves of a step to its sum, or those judged so."""
        used: list[Any] = [*step.branches, *step.factors]
        places = {one.place.operation for one in used if one.place is not None}
        found = places | {self.resolve(self.source(branch.place), layouts=True) for branch in step.branches}
        return [i for i in sorted(found) if i > 0 and self.verdict(i)[1] and (not why or self.verdict(i)[1] == why)]

    def find_unexplained(self, steps: list[Step]) -> list[int]:
        """The sums of two things computed from one state, on the way from state to state, that are no step.

        steps   the steps that were found; what lies in their branches is no matter
        """
        ends = [*self.outputs, *(step.state for step in steps)]
        trunk = {i for end in ends for i in self.dominators(end)}
        covered = self.in_branches(steps)
        sizes = {math.prod(step.shape) for step in steps}
        found = []
        for i in sorted(trunk - covered):
            merged = self.parts_added(i)
            if len(merged) > 1 and math.prod(self.operations[i].shape) in sizes:
                within = self.between(self.common_dominator(*merged[:2]), i)
                if within.isdisjoint(step.addition for step in steps):
                    found.append(i)
        return found

    def parts_added(self, i: int) -> list[int]:
        """The things, as large as the result, that operation i adds or picks from: of a stack, what was stacked."""
        operation, sources = self.operations[i], self.sources(i)
        if operation.name in ADDING_PRODUCTS:
            return sources if self.is_live(operation.operand(0)) else []
        if operation.name in ("sum", "mean") and len(sources) == 1:
            stacked = self.resolve(sources[0])
            if self.operations[stacked].name in ("stack", "cat", "concat"):
                sources = self.sources(stacked)
        elif operation.name not in ADDING:
            return []
        size, parts = math.prod(operation.shape), list(dict.fromkeys(map(self.resolve, sources)))
        large = [j for j in parts if math.prod(self.operations[j].shape) == size]
        if operation.name == "add" and len(parts) == 2 and len(large) == 1:  # x + f(x), f one number for a whole map?
            state, other = large[0], parts[1 - parts.index(large[0])]
            branch = self.branch_between(state, other)
            if operation.shape[0] == self.operations[0].shape[0] and any(map(self.is_nonlinear, branch)):
                return [state, other]
        return large


def bridges(step: Step, found: list[Step], regions: dict[int, set[int]]) -> bool:
    """Does this addition span a chain of steps, as a skip around a whole network does?"""
    inside = [other for other in found if other.addition in regions[step.addition] - set(step.stages)]
    states = {other.state for other in inside}
    return any(other.after in states for other in inside)


def number_names(steps: list[Step]) -> list[Step]:
    """Several additions in one module are told apart by a number."""
    modules = [step.module for step in steps]
    named = []
    for i, step in enumerate(steps):
        again = modules[: i + 1].count(step.module)
        alone = modules.count(step.module) == 1 and step.module
        named.append(step if alone else step._replace(name=f"{step.module} ({again})".strip()))
    return named


def same_layout(shape, other) -> bool:
    """Is one shape (of a sample) the other with axes swapped, or with neighbours flattened into one?

    (H, W, C), (H W, C), (C, H, W) and (C, H W) are the same features in another layout.
    """
    if math.prod(shape) != math.prod(other):
        return False
    if len(shape) == len(other):
        return sorted(shape) == sorted(other)
    return bool({shape[0], shape[-1]} & {other[0], other[-1]})


def stages(steps: list[Step]) -> tuple[list[int], list[bool]]:
    """The stage of every step, and whether it is the stage's first.

    A change of the number of features, or a projection, opens a stage; a change of layout does not."""
    stage: list[int] = []
    first: list[bool] = []
    for i, step in enumerate(steps):
        opens = i == 0 or not step.identity or not same_layout(step.start, steps[i - 1].start)
        first.append(opens)
        stage.append((stage[-1] if stage else -1) + opens)
    return stage, first
