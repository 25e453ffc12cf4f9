"""What a caller decides about somebody else's network where the rule decides otherwise."""

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from netbridge.foreign.operations import Operation, Step

VERDICTS = ("slope", "left", "right")
Factors = Mapping[str, str] | Callable[[str, str], str | None]


class Choices(NamedTuple):
    """The arguments of `nb.trace` of the same names.

    factors     {where: what}: of the products formed there, "slope" makes each a part of the slope; "left" and "right"
                make that argument the step size; or a function of module and line that says so, or None for the rule
    stage       the stage of every step, in order, or {name: stage} for some
    first       whether each step opens a stage, in order, or {name: bool} for some
    steps       where the steps are; None: wherever they are found
    batch_axis  along which axis the samples stand; None: where they do not depend on each other

    A place is the name of a module or step, with * for anything, or the end of "file:line" of the code.
    """

    factors: Factors | None = None
    stage: Any = None
    first: Any = None
    steps: Any = None
    batch_axis: int | None = None

    def verdict(self, operation: Operation) -> str | None:
        """What the caller wants of a product."""
        if callable(self.factors):
            said = [(operation.line, self.factors(operation.module, operation.line))]
        elif self.factors is not None and not isinstance(self.factors, Mapping):
            raise ValueError(f"`factors` must be a dictionary or a function of module and line, got {self.factors!r}.")
        else:
            said = [(where, what) for where, what in (self.factors or {}).items() if is_at(operation, where)]
        for where, what in said:
            if what not in VERDICTS and not (what is None and callable(self.factors)):
                raise ValueError(f"`factors` must say one of {VERDICTS} of {where!r}, got {what!r}.")
        return said[-1][1] if said else None

    def takes(self, step: Step, addition: Operation) -> bool:
        """Does the caller want this step?"""
        return self.steps is None or any(
            is_at(addition, where) or fnmatch.fnmatch(step.name, where) for where in self.steps
        )

    def takes_solver(self, module: str) -> bool:
        """Does the caller want the steps of a solver that runs in this module?"""
        return self.steps is None or any(fnmatch.fnmatch(module, where) for where in self.steps)

    def check(self, operations: list[Operation], steps: list[Step], solving: list[str]) -> None:
        """Raises ValueError where a place is none of this network's; `solving` are the modules in which solvers run."""
        products = [one for one in operations if one.name in ("mul", "div", "addcmul", "addcdiv")]
        sums = [operations[step.addition] for step in steps]
        named = () if callable(self.factors) else self.factors or ()
        for argument, places, known in (("factors", named, products), ("steps", self.steps or (), sums)):
            for where in places:
                names = [*(step.name for step in steps), *solving] if argument == "steps" else []
                if not any(is_at(one, where) for one in known) and not fnmatch.filter(names, where):
                    some = list(dict.fromkeys([*names, *(short(one.line) for one in known)]))
                    raise ValueError(f"`{argument}` names {where!r}, where there is none; there are {some[:12]}.")

    def arrange(self, names: list[str], stage: list[int], first: list[bool]) -> tuple[list[int], list[bool]]:
        """Stages and openings as the caller wants them; where only openings are given, stages follow from them."""
        opens = chosen("first", self.first, names, first)
        if self.first is not None and self.stage is None:
            stage = [sum(opens[: k + 1]) - 1 if opens[0] else sum(opens[: k + 1]) for k in range(len(opens))]
        return chosen("stage", self.stage, names, stage), opens


def chosen(argument: str, wanted: Any, names: list[str], found: list) -> list:
    """What was found, but for what the caller wants."""
    if wanted is None:
        return found
    if isinstance(wanted, Mapping):
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ValueError(f"`{argument}` names {unknown[0]!r}, which is no step; the steps are {names[:12]}.")
        return [wanted.get(name, value) for name, value in zip(names, found, strict=True)]
    if len(wanted) != len(names):
        raise ValueError(f"`{argument}` must have one entry for each of the {len(names)} steps, got {len(wanted)}.")
    return list(wanted)


def is_at(operation: Operation, where: str) -> bool:
    """Does an operation run in a module of this name, or on this line of code?"""
    line = operation.line.replace("\\", "/")
    return fnmatch.fnmatch(operation.module, where) or line == where or line.endswith(f"/{where}")


def short(line: str) -> str:
    """A file and line without the folders before the last."""
    return "/".join(line.replace("\\", "/").split("/")[-2:])
