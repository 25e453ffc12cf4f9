"""What stands beside a residual addition of somebody else's network and looks at its operands."""

from collections.abc import Iterator
from typing import NamedTuple

from torch import fx, nn

from netbridge.tracing.graph import Step
from netbridge.tracing.norms import Recorder

BEFORE, BEHIND = "before", "behind"


class Look(NamedTuple):
    """Before or behind an operation; before it, `side` is the place of what is wanted among its two arguments."""

    operation: int
    moment: str
    action: str
    side: int = 0


class Probe(nn.Module):
    """Reports one step to a recorder. As a module it can stand in an fx program; it returns nothing."""

    def __init__(self, k: int, step: Step, recorder: Recorder):
        super().__init__()
        self.k, self.step, self.recorder = k, step, recorder
        self.held = None

    def looks(self) -> Iterator[Look]:
        step = self.step
        if step.gates:
            yield Look(step.gates[-1].operation, BEFORE, "gated", step.gates[-1].side)
        if step.inner is not None:
            yield Look(step.inner[0], BEFORE, "hold", step.inner[1])
            yield Look(step.addition, BEHIND, "total")
        else:
            yield Look(step.addition, BEFORE, "sum", step.side)
        yield Look(step.after, BEHIND, "left")

    def forward(self, action: str, *values):
        getattr(self, action)(*values)

    def gated(self, slope, h):
        self.recorder.slope(self.k, slope)
        if len(self.step.gates) == 1:
            self.recorder.size(self.k, h, slope)

    def hold(self, state, _):
        self.recorder.state(self.k, state)
        self.held = state.clone() if self.step.overwrites else state

    def sum(self, state, branch):
        if not self.step.gates:
            self.recorder.slope(self.k, branch)
        self.recorder.state(self.k, state)
        if self.recorder.needs_states and self.step.identity:
            self.held = state.clone() if self.step.overwrites else state

    def total(self, result):
        """(x + f) + g: the slope is what was added in all."""
        self.recorder.slope(self.k, result - self.held)

    def left(self, new):
        self.recorder.left(self.k, self.held, new)
        self.held = None


def instrument(program: fx.GraphModule, nodes: list[fx.Node], probes: list[Probe]) -> fx.GraphModule:
    """Put the probes into a program, in place."""
    graph = program.graph
    for k, probe in enumerate(probes):
        name = f"netbridge_probe_{k}"
        program.add_submodule(name, probe)
        for look in reversed(list(probe.looks())):  # insertions behind one node stack up in reverse
            node = nodes[look.operation]
            if look.moment == BEFORE:
                values = (node.args[look.side], node.args[1 - look.side])
                with graph.inserting_before(node):
                    graph.call_module(name, (look.action, *values))
            else:
                with graph.inserting_after(node):
                    graph.call_module(name, (look.action, node))
    graph.lint()
    program.recompile()
    return program


def visitor(probes: list[Probe], shapes: dict[int, tuple[int, ...]]):
    """The probes as a visitor of `capture.Watching`; refuses a pass that goes another way than the one recorded."""
    before: dict[int, list] = {}
    behind: dict[int, list] = {}
    for probe in probes:
        for look in probe.looks():
            place = before if look.moment == BEFORE else behind
            place.setdefault(look.operation, []).append((probe, look))

    def visit(number, name, args, kwargs):
        for probe, look in before.get(number, ()):
            found = getattr(args[look.side], "shape", None) if len(args) > look.side else None
            if found is None or tuple(found[1:]) != shapes[number][1:]:
                raise ValueError(
                    f"`net` did something else with these images than with the first ones: operation {number}, "
                    f"{name!r} in {probe.step.name!r}. Name its blocks in `blocks`, so that their ends are watched."
                )
            probe(look.action, args[look.side], args[1 - look.side])
        waiting = behind.get(number)
        if waiting is None:
            return None
        return lambda result: [probe(look.action, result) for probe, look in waiting]

    return visit
