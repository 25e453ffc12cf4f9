"""Branch and step size of somebody else's block, each as a function of the state: what `nb.trace` calls f and h.

A block that torch.fx has read gives programs of its own for both. Any other block is run and watched as a trace does.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from netbridge.common.batches import run
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Place, Step
from netbridge.foreign.tracers import StepTracer
from netbridge.foreign.vocabulary import LAYOUTS
from netbridge.foreign.watching import Pass, watch_pass
from netbridge.recording.recorder import Recorder
from netbridge.surgery.symbolic import argument_of


class NotSeparable(Exception):
    """The branch cannot be told from its step size; the text says why."""


class Separation:
    """The step of a program taken apart.

    program, graph, nodes   as `symbolic` returns them
    step                    a step of one branch that is added or subtracted; NotSeparable for any other
    """

    def __init__(self, program: fx.GraphModule, graph: Graph, nodes: list[fx.Node], step: Step):
        self.program, self.graph, self.nodes, self.step = program, graph, nodes, step
        branch, *others = step.branches
        products = max(1, len(step.size))
        if others or branch.how != "plain" or branch.factors or step.scale or products > 1:
            raise NotSeparable("it adds no single branch to its state")
        places = [factor.place for factor in step.factors if factor.place is not None]
        self.gates = {place.operation: place.path[0] for place in places if place.operation != step.addition}
        self.slope = graph.source(branch.place)
        if graph.operations[self.slope].name == "glu":
            raise NotSeparable("its step size is a part of a gated linear unit")
        self.added = graph.source(Place(step.addition, (1 - step.shortcut.path[0],)))
        self.way = self.find_way()
        self.before = {nodes[i]: nodes[j] for i, j in zip(self.way, [self.slope, *self.way], strict=False)}

    def find_way(self) -> list[int]:
        """The operations from the slope to what is added, each of which takes the one before it."""
        way, i = [], self.added
        while i != self.slope:
            way.append(i)
            if i not in self.gates:
                i, *others = self.graph.sources(i)
                if others:
                    raise NotSeparable("its branch is multiplied in a way that cannot be read")
                continue
            inside, gate = (self.graph.operations[i].operand(k) for k in (1 - self.gates[i], self.gates[i]))
            if inside == gate:
                raise NotSeparable("its branch is multiplied by itself")
            i = inside
        return way[::-1]

    @property
    def changes_layout(self) -> bool:
        """Does something other than factors lie between the slope and the sum?"""
        return any(i not in self.gates and self.graph.operations[i].name in LAYOUTS for i in self.way)

    def shortcut(self) -> fx.GraphModule:
        """The program of the shortcut."""
        return program_until(
            self.program, argument_of(self.nodes[self.step.shortcut.operation], self.step.shortcut.path)
        )

    def branch(self) -> fx.GraphModule:
        """The program of the slope, in the layout in which it is added: without factors, which may overwrite it."""
        slope, end = self.nodes[self.slope], self.nodes[self.added]
        factors = {self.nodes[i] for i in self.way if i in self.gates or self.graph.operations[i].name == "neg"}
        needed: set[fx.Node] = set()  # beside the slope, by changes of layout: sizes
        waiting = [node for node in self.before if node not in factors]
        while waiting:
            inputs = set(waiting.pop().all_input_nodes) - needed - set(self.before)
            needed |= inputs
            waiting.extend(inputs)
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        for node in self.program.graph.nodes:
            if node in factors:
                copies[node] = copies[self.before[node]]
            elif slope not in copies or node in self.before or node in needed:
                copies[node] = graph.node_copy(node, copies.__getitem__)
            if node is end:
                break
        return with_output(self.program, graph, copies[end])

    def step_size(self) -> Callable:
        """The step size as a function of the state, in the layout of the sum: what becomes of ones as the slope."""
        slope, end = self.nodes[self.slope], self.nodes[self.added]
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        ones: dict[fx.Node, fx.Node] = {}
        for node in self.program.graph.nodes:
            if node in self.before:  # ahead of the node itself, which may overwrite a factor
                ones[node] = graph.node_copy(node, ({**copies, self.before[node]: ones[self.before[node]]}).__getitem__)
            if end in ones:
                break
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if node is slope:
                ones[node] = graph.call_function(torch.ones_like, (copies[node],))
        program, scale = with_output(self.program, graph, ones[end]), self.scale()
        return lambda u: scale * program(u)

    def scale(self) -> float:
        """What the addition itself multiplies by: -1 in a subtraction, `alpha`."""
        operation = self.graph.operations[self.step.addition]
        value: Any = argument_of(self.nodes[self.step.addition], (2,))
        if value is None:
            value = 1.0
        if not isinstance(value, int | float):
            raise NotSeparable("its branch is added with a factor (alpha) that is computed")
        return -float(value) if operation.name == "sub" else float(value)


def program_until(program: fx.GraphModule, end: Any) -> fx.GraphModule:
    """The program that ends at a node."""
    graph = fx.Graph()
    copies: dict = {}
    for node in program.graph.nodes:
        if node.op == "output":
            break
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node is end:
            break
    return with_output(program, graph, copies[end])


def with_output(program: fx.GraphModule, graph: fx.Graph, end: fx.Node) -> fx.GraphModule:
    graph.output(end)
    return fx.GraphModule(program, graph)


@contextlib.contextmanager
def fresh_buffers(block: nn.Module):
    """A context manager: within it a block writes into copies of its buffers, such as a count of its calls.

    Every call then sees the same ones, and torch.func, which refuses to write into what was made outside, sees its own.
    """
    kept = [(module, dict(module._buffers)) for module in block.modules() if module._buffers]
    for module, buffers in kept:
        module._buffers.update((name, buffer.clone()) for name, buffer in buffers.items() if buffer is not None)
    try:
        yield
    finally:
        for module, buffers in kept:
            module._buffers.update(buffers)


class Seen(Recorder):
    """Keeps slope and step size of the one step of a block, of which a trace keeps the norms."""

    keeps = True  # the slope is to be in the layout of the sum

    def __init__(self):
        super().__init__(())

    def begin(self):
        self.branch: Any = None
        self.step_size: Any = 1.0
        self.count = 0

    def state(self, k: int, state: torch.Tensor):
        self.count = len(state)

    def slope(self, k: int, slope: torch.Tensor):
        self.branch = slope.clone()

    def size(self, k: int, h, images: int, dimensions: int):
        self.step_size = h

    def images(self, k: int) -> int:
        return self.count

    def new_state(self, k: int, before, new):
        pass


def watch_block(block: nn.Module, sample: torch.Tensor) -> Pass:
    """One pass of a block, written down."""
    with torch.no_grad():
        return watch_pass(block, run, sample)


def watched_step(block: nn.Module, first: Pass, step: Step, sample: torch.Tensor) -> tuple[Callable, Callable]:
    """Branch and step size of a block that makes one step from its input on; `first` is a pass of the sample."""
    tracer, seen = StepTracer(block, run, first, None), Seen()

    def look(u: torch.Tensor) -> Seen:
        with fresh_buffers(block):
            tracer(u.clone(), seen)
        return seen

    return lambda u: look(u).branch, lambda u: look(u).step_size
