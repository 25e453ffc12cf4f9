"""How passes of somebody else's network are observed: by its residual steps, or by the ends of named blocks.

A first pass with a few images is written down as a list of operations, in which the residual steps are found; in the
passes that measure, probes look at the arguments of these operations. Every pass is compared with the list, operation
by operation: a pass that goes another way, because something was cached or the batch has another size, is read anew and
taken again.
"""

import contextlib
import math
from typing import Any

from torch import nn

from netbridge.common.nested_tensors import first_tensor, state_given, tensors
from netbridge.foreign.graph import number_names, stages
from netbridge.foreign.operations import is_within
from netbridge.foreign.probes import Probe
from netbridge.foreign.solvers import SolverSteps, solving
from netbridge.foreign.watching import Pass, Watching
from netbridge.recording.record import INCREMENT, SLOPE, Places
from netbridge.recording.recorder import Recorder

ATTEMPTS = 4  # passes of one batch; if no two in a row run the same operations, the network is refused
OTHER_WAY = (
    "`net` did something else with these images than with the first ones: {}. Name its blocks in `blocks`, and use "
    "of='increment', so that only their ends are watched."
)


class StepTracer:
    """Observes the residual steps of somebody else's network, which were found among its sums.

    net         the network
    call        call(net, batch) runs it
    first       its first pass, written down
    named       the blocks whose steps are observed; None: all steps
    """

    sees = (SLOPE, INCREMENT)

    def __init__(self, net: nn.Module, call, first: Pass, named):
        self.net, self.call, self.named, self.choices = net, call, named, first.choices
        self.notes: list[str] = []
        self.operations: list[Any] = []
        self.steps: list[Any] = []
        self.hidden: list[Any] = []
        self.read(first)
        every = self.graph.steps()
        stage, opens = stages(every)
        chosen, _ = choose(every, named)
        self.own = Places([every[i].name for i in chosen], [stage[i] for i in chosen], [opens[i] for i in chosen])
        self.places = self.own  # after a pass, those with the steps of solvers
        self.rows_of_solvers: list[int] = []  # where their steps stand among all
        self.count: int | None = None  # of all steps of a pass
        if named is not None:
            self.rename()
        runs = solving(first.operations)
        if self.choices is not None and (runs or self.graph.candidates):
            self.choices.check(first.operations, number_names(self.graph.candidates), runs)
            places = self.places
            places.stage, places.first = self.choices.arrange(places.names, places.stage, places.first)

    def read(self, seen: Pass):
        """Finds the steps of this pass; the passes that follow are expected to take the same ones."""
        self.graph = seen.graph
        steps = self.graph.steps()
        chosen, self.hidden = choose(steps, self.named)
        self.solving = [module for module in solving(seen.operations) if self.is_named(module)]
        self.hidden = [name for name in self.hidden if not any(is_within(module, name) for module in self.solving)]
        steps = [steps[i] for i in chosen]
        if self.steps and [(s.name, s.identity) for s in steps] != [(s.name, s.identity) for s in self.steps]:
            ours, theirs = ([step.name for step in some] for some in (self.steps, steps))
            raise ValueError(OTHER_WAY.format(f"the residual steps were {ours} and are {theirs}"))
        for k, known in enumerate(self.steps):  # in the first pass no other axis was as long as that of the samples
            steps[k] = steps[k]._replace(axis=known.axis, end_axis=known.end_axis)
        self.operations, self.steps = seen.operations, steps

    def __call__(self, batch, recorder: Recorder):
        for _ in range(ATTEMPTS):
            recorder.begin()
            before: dict[int, list] = {}
            behind: dict[int, list] = {}
            for k, step in enumerate(self.steps):
                for operation, is_before, probe in Probe(k, step, recorder, self.operations).looks():
                    (before if is_before else behind).setdefault(operation, []).append(probe)
            taken = SolverSteps(recorder, self.is_named)
            with Watching(self.net, tensors(batch), self.operations, before, behind, taken) as watching:
                output = self.call(self.net, batch)
            if watching.is_complete():
                self.arrange(taken)
                return output
            self.read(watching.written(output, self.choices))
        raise ValueError(OTHER_WAY.format(f"{ATTEMPTS} passes of one batch went different ways"))

    def arrange(self, taken: SolverSteps):
        """Puts the steps of solvers among the others; all batches must have as many."""
        self.places, self.rows_of_solvers = taken.arrange(self.own), taken.rows
        before, self.count = self.count, len(self.places.names)
        if before not in (None, self.count):
            raise ValueError(
                f"`net` solves an equation in {self.solving[0]!r} by a method that takes as many steps as it needs, "
                f"{self.count} for this batch and {before} for the one before. Trace one batch at a time, or all "
                "images at once (batch_size=...), or give the solver a grid."
            )

    def is_named(self, module: str) -> bool:
        """Are the steps of solvers in this module observed?"""
        if self.choices is not None and not self.choices.takes_solver(module):
            return False
        return self.named is None or any(is_within(module, name) for name in self.named)

    def rename(self):
        """Names a step after its block where the block has only this step."""
        for name in self.named:
            inside = [k for k, step in enumerate(self.steps) if is_within(step.module, name)]
            if len(inside) == 1:
                self.own.names[inside[0]] = name


class BlockTracer:
    """Observes named blocks at their ends only: what goes in and what comes out."""

    sees = (INCREMENT,)
    notes: tuple[str, ...] = ()

    def __init__(self, net: nn.Module, call, blocks: dict[str, nn.Module]):
        self.net, self.call, self.blocks = net, call, blocks
        self.places: Places | None = None

    def __call__(self, batch, recorder: Recorder):
        places, entered = Places(), {}
        shapes: list = []

        def enter(name, module, args, kwargs):
            state = state_given(module, args, kwargs)
            if state is None:
                raise ValueError(f"block {name!r} takes no tensor: there is no state before it.")
            entered[name] = state.clone()  # the block may overwrite it

        def leave(name, output):
            k, before = len(places.names), entered.pop(name)
            new = first_tensor(output)
            if new is None:
                raise ValueError(f"block {name!r} returns no tensor: there is no state after it.")
            opens = not shapes or new.shape != before.shape or before.shape != shapes[-1]
            shapes.append(new.shape)
            recorder.state(k, before)
            recorder.new_state(k, before if new.shape == before.shape else None, new)
            recorder.size(k, math.nan, len(new), new.ndim)
            places.add(name, (places.stage[-1] if k else -1) + opens, opens)

        with contextlib.ExitStack() as stack:
            for name, block in self.blocks.items():
                before = block.register_forward_pre_hook(
                    lambda m, a, k, name=name: enter(name, m, a, k), with_kwargs=True
                )
                stack.callback(before.remove)
                after = block.register_forward_hook(lambda _, a, out, name=name: leave(name, out))
                stack.callback(after.remove)
            output = self.call(self.net, batch)
        if self.places is not None and places != self.places:
            raise ValueError(OTHER_WAY.format(f"the blocks were {self.places.names} and are {places.names}"))
        self.places = places
        return output


def choose(steps, named):
    """The steps inside the named blocks, and the blocks without one."""
    if named is None:
        return list(range(len(steps))), []
    chosen = [i for i, step in enumerate(steps) if any(is_within(step.module, name) for name in named)]
    return chosen, [name for name in named if not any(is_within(step.module, name) for step in steps)]
