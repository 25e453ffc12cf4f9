"""`nb.explain`: what a trace takes for state, slope, step size and opening in a network, and where in the code.

Of somebody else's network the analysed operations say so; of one of ours the blocks, and of torchdiffeq's solvers their
steps, both in a pass that notes shapes."""

import dataclasses
import inspect
import linecache
import warnings
from typing import Any, NamedTuple

import torch
from torch import nn

from netbridge.common.batches import Samples, batches_of, to_network
from netbridge.common.preservation import preserve, unwrap
from netbridge.foreign.choices import Choices, short
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Factor, Place, Step
from netbridge.foreign.tracers import BlockTracer
from netbridge.recording.record import SLOPE
from netbridge.recording.recorder import Recorder
from netbridge.tracing.ours import SolverTracer
from netbridge.tracing.trace import tracer_of
from odelab.files.saved import register
from odelab.results import Result

WHY = {
    "": "",
    "coarse": "fewer numbers than the branch",
    "bounded": "of the size of the branch, between 0 and a bound",
    "normalisation": "normalisation: the product does not grow with the branch",
    "activation": "activation: each element depends on one element of the branch",
    "undecided": "two things of full size, neither of which is a step size by the rule",
    "chosen": "by `factors`",
    "unspelled": "a product with a constant that no * spells: it cannot be told from the weights of the branch",
}
MATRIX_PRODUCTS = {"matmul", "mm", "bmm", "mv", "einsum", "tensordot"}


FACTORS = ("counted", "left")  # the fields of a note that hold factors


class FactorNote(NamedTuple):
    """A factor of a branch: what it is, its shape (N the images), the line of the product, and why it counts or not."""

    what: str
    shape: str
    line: str
    reason: str


@dataclasses.dataclass(frozen=True)
class StepNote:
    """What one residual step was taken for.

    name      the step's name, as in a record
    line      file and line of the sum
    code      that line of code
    state     what the state comes from
    slope     what the branches come from
    opening   why it opens a stage and is not counted; "" where it does not
    counted   the factors that make the step size
    left      the factors that belong to the slope, and why
    """

    name: str
    line: str
    code: str
    state: str
    slope: tuple[str, ...]
    opening: str
    counted: tuple[FactorNote, ...] = ()
    left: tuple[FactorNote, ...] = ()

    def __str__(self):
        lines = [f"{self.name}  {self.line}  {self.code}".rstrip(), f"     state        {self.state}"]
        lines += [f"     slope        {slope}" for slope in self.slope]
        for title, some in (("step size", self.counted), ("not counted", self.left)):
            rows = [f"{one.what}  {one.shape}  {one.line}  {one.reason}".rstrip() for one in some]
            lines += [f"     {title if k == 0 else '':11s}  {row}" for k, row in enumerate(rows)]
        lines.append(f"     opening      {self.opening or 'no'}")
        return "\n".join(lines)


def explanation_of(steps, **rest) -> "Explanation":
    """An `Explanation` from the values in a file."""
    notes = [{**step, **{key: tuple(FactorNote(*one) for one in step[key]) for key in FACTORS}} for step in steps]
    return Explanation(tuple(StepNote(**note) for note in notes), **rest)


@register(fields=dataclasses.asdict, made=explanation_of)
@dataclasses.dataclass(frozen=True)
class Explanation(Result, kinds={}):
    """What `nb.explain` returns; `print` shows it as a table.

    steps   a `StepNote` for every step
    notes   what was left out, and what could be decided otherwise
    rows    along which axis the samples stand

    >>> import torch, netbridge as nb
    >>> class Block(torch.nn.Linear):
    ...     def forward(self, x):
    ...         return x + 0.5 * torch.tanh(super().forward(x))
    >>> explanation = nb.explain(Block(4, 4), torch.rand(3, 4))
    >>> len(explanation.steps), explanation.notes, explanation.rows
    (1, (), 'samples: axis 0 of what the network is given')
    """

    steps: tuple[StepNote, ...]
    notes: tuple[str, ...] = ()
    rows: str = ""

    def table(self):
        """A row per step: its name, the line of its sum, its state and slope, what counts, and why it opens a stage."""
        return {
            "step": [step.name for step in self.steps],
            "line": [step.line for step in self.steps],
            "state": [step.state for step in self.steps],
            "slope": [", ".join(step.slope) for step in self.steps],
            "step_size": [", ".join(factor.what for factor in step.counted) for step in self.steps],
            "opening": [step.opening for step in self.steps],
        }

    def __str__(self):
        return "\n".join([*map(str, self.steps), self.rows, *(f"note: {note}" for note in self.notes)])


def explain(
    net: nn.Module, images, blocks=None, call=None, factors=None, stage=None, first=None, batch_axis=None, steps=None
) -> Explanation:
    """What `nb.trace` takes for state, slope, step size and opening in a network; nothing is measured.

    net         the network
    images      a batch that it accepts, or what yields some
    blocks      as in `nb.trace`
    call        as in `nb.trace`
    factors     as in `nb.trace`
    stage       as in `nb.trace`
    first       as in `nb.trace`
    batch_axis  as in `nb.trace`
    steps       as in `nb.trace`

    Returns an `Explanation`: for every step the file and line of its sum, its state and slope, every factor that counts
    as step size and every one that does not, with the reason, and why it opens a stage; then all notes. Of a network of
    this library it names branch and controller of every block, and of a solver of torchdiffeq its steps. TypeError for
    networks of which only the ends of `blocks` can be watched.

    >>> import torch, netbridge as nb
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.f, self.scale = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.ones(4))
    ...
    ...     def forward(self, x):
    ...         return x + self.scale * torch.tanh(self.f(x))
    >>> explanation = nb.explain(torch.nn.Sequential(Block(), Block()), torch.rand(3, 4))
    >>> [(step.name, step.opening, step.counted[0].what) for step in explanation.steps]
    [('0', 'the first step', '0.scale'), ('1', '', '1.scale')]
    """
    net = unwrap(net)
    samples, choices = Samples(call, batch_axis), Choices(factors, stage, first, steps)
    with preserve(net), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all of it stands in the notes
        batches, _ = batches_of(images, net, call)  # a loader draws a number when it is asked for its batches
        batch = next(batches)
        tracer: Any = tracer_of(net, samples, batch, None, blocks, choices)
        if isinstance(tracer, BlockTracer):
            raise TypeError("`net` is watched at the ends of `blocks` alone: there is nothing to explain.")
        shapes = Shapes((SLOPE,))
        if isinstance(tracer, SolverTracer) or tracer.solving:
            tracer(to_network(net, samples.in_front(batch)).clone(), shapes)
        places, tensors = tracer.places, dict((*net.named_parameters(), *net.named_buffers()))
        rows = zip(places.names, places.stage, places.first, strict=True)
        if isinstance(tracer, SolverTracer):
            notes = [own_note(tracer, shapes, k, *row) for k, row in enumerate(rows)]
        else:
            own, reader = iter(tracer.steps), Reader(tracer.graph, tensors)
            notes = []
            for k, (name, _, opens) in enumerate(rows):
                solved = k in tracer.rows_of_solvers
                notes.append(solver_note(shapes, k, name, opens) if solved else reader.note(next(own), name, opens, k))
                reader.before = None if solved else reader.before
    return Explanation(
        tuple(notes), tuple(tracer.notes), f"samples: axis {samples.axis or 0} of what the network is given"
    )


class Shapes(Recorder):
    """The shapes of state and slope of every step, and its step size."""

    keeps = True  # every step is reported as it is

    def begin(self):
        super().begin()
        self.seen: dict[int, dict[str, Any]] = {}

    def tables(self):
        return [*super().tables(), self.seen]

    def state(self, k, state):
        super().state(k, state)
        self.seen.setdefault(k, {})["state"] = shape_of(state)

    def slope(self, k, slope):
        self.seen.setdefault(k, {})["slope"] = shape_of(slope)

    def size(self, k, h, images, dimensions):
        super().size(k, h, images, dimensions)
        self.seen[k]["h"] = h


def shape_of(x: torch.Tensor) -> str:
    return f"({', '.join(['N', *map(str, x.shape[1:])])})"


def own_note(tracer: SolverTracer, shapes: Shapes, k: int, name: str, stage: int, opens: bool) -> StepNote:
    """What a block of ours says of itself."""
    block: Any = tracer.net.get_submodule(name.partition(" + ")[0])
    seen = shapes.seen[k]
    method, forward = tracer.network.stages[stage].method, type(block.branch).forward
    code = inspect.unwrap(forward).__code__
    h, why = seen["h"], "computed from the images" if block.controller.settle(None)[1] is not None else "a constant"
    what = f"{h:g}" if isinstance(h, float | int) else f"{type(block.controller).__name__} in {name}.controller"
    opening = f"the shortcut is {type(block.shortcut).__name__} in {name}.shortcut" if block.opens else "the first step"
    return StepNote(
        name, short(f"{code.co_filename}:{code.co_firstlineno}"), f"a step of {method.name}", f"u  {seen['state']}",
        (f"{type(block.branch).__name__} in {name}.branch  {seen['slope']}",), opening if opens else "",
        (FactorNote(what, shape_of(h) if isinstance(h, torch.Tensor) and h.ndim else "", "", why),),
    )  # fmt: skip


def solver_note(shapes: Shapes, k: int, name: str, opens: bool) -> StepNote:
    """What a solver of torchdiffeq tells of a step."""
    seen = shapes.seen[k]
    return StepNote(
        name, "", "a step of odeint", f"y  {seen['state']}", (f"(y' - y) / h  {seen['slope']}",),
        "the first step of a solver" if opens else "", (FactorNote(f"{seen['h']:g}", "", "", "the solver's step"),),
    )  # fmt: skip


class Reader:
    """Puts what a graph says of its steps into words.

    graph    of the analysed pass
    tensors  the parameters and buffers of the network, by name
    """

    def __init__(self, graph: Graph, tensors: dict[str, torch.Tensor]):
        self.graph, self.tensors = graph, tensors
        self.names = {id(tensor): name for name, tensor in tensors.items()}
        self.before: Step | None = None

    def note(self, step: Step, name: str, opens: bool, number: int) -> StepNote:
        graph = self.graph
        line = graph.operations[step.addition].line
        path, _, row = line.rpartition(":")
        code = linecache.getline(path, int(row)).strip() if path else ""
        left = [self.product(i) for i in graph.products_of(step) if not graph.verdict(i)[0]]
        counted = [self.factor(one) for one in step.factors]
        counted += self.weights(step) if step.tableau else []
        left += [self.factor(one)._replace(reason="a part of the slope") for b in step.branches for one in b.own]
        left += [note for branch in step.branches for note in self.unspelled(graph.source(branch.place))]
        opening = self.opening(step, number) if opens else ""
        self.before = step
        slopes = tuple(self.thing(branch.place) for branch in step.branches)
        return StepNote(
            name, short(line), code, self.operation(step.state), slopes, opening, tuple(counted), tuple(left)
        )

    def opening(self, step: Step, number: int) -> str:
        if number == 0:
            return "the first step"
        if not step.identity:
            return f"the shortcut is {self.thing(step.shortcut)}"
        if self.before is None:
            return "behind the steps of a solver"
        if step.start != self.before.start:
            return f"features {self.before.start} -> {step.start}"
        return "by `first` or `stage`"

    def shape(self, i: int) -> str:
        graph = self.graph
        shape = graph.operations[i].shape or ()
        return f"({', '.join('N' if axis == graph.axis[i] else str(length) for axis, length in enumerate(shape))})"

    def operation(self, i: int) -> str:
        operation = self.graph.operations[i]
        where = f" in {operation.module}" if operation.module else ""
        return (
            f"{operation.name}{where}  {self.shape(i)}  {short(operation.line)}".rstrip()
            if i
            else f"the input  {self.shape(i)}"
        )

    def thing(self, place: Place) -> str:
        source = self.graph.source(place)
        return self.operation(self.graph.resolve(source, layouts=True)) if source >= 0 else "a constant"

    def weights(self, step: Step) -> list[FactorNote]:
        """The weights of a tableau, each evaluation once."""
        parts: dict[int, list] = {}
        for branch in map(step.branches.__getitem__, step.tableau):
            parts.setdefault(self.graph.same[self.graph.source(branch.place)], []).append(branch.factors)
        totals = [self.graph.polynomial(products) for products in parts.values()]
        if all(set(total) <= {()} for total in totals):
            text = " + ".join(f"{total.get((), 0.0):.4g}" for total in totals)
            return [FactorNote(text, "", short(self.graph.operations[step.addition].line), "weights of a tableau")]
        factors = dict.fromkeys(factor for products in parts.values() for product in products for factor in product)
        return [self.factor(factor)._replace(reason="weight of a tableau") for factor in factors]

    def factor(self, factor: Factor) -> FactorNote:
        if factor.place is None:
            return FactorNote(f"{factor.number:g}", "", "", "number")
        graph, operation = self.graph, self.graph.operations[factor.place.operation]
        line, sign = short(operation.line), {"over": "1 / ", "rest": "1 - "}.get(factor.how, "")
        source = graph.source(factor.place)
        shape = self.shape(source) if source >= 0 else ""
        if factor.live:
            made, why = graph.operations[graph.resolve(source, layouts=True)], graph.verdict(factor.place.operation)[1]
            what = f"{made.name} in {made.module}" if made.module else made.name
            why = "coarse" if why in ("", "normalisation", "activation") else why
            return FactorNote(f"{sign}{what}", shape, line, WHY[why])
        value = graph.argument(factor.place)
        parts = {(): value} if isinstance(value, float) else graph.expanded_value(value)
        if set(parts) <= {()}:
            return FactorNote(f"{sign}{parts.get((), 0.0):g}", "", line, "number")
        names = [self.names[one[1]] for key in parts for one, _ in key if one[0] == "constant" and one[1] in self.names]
        reason = "parameter" if names and len(parts) == 1 else "not computed from the images"
        return FactorNote(f"{sign}{' and '.join(names) or 'a constant tensor'}", shape, line, reason)

    def unspelled(self, i: int) -> list[FactorNote]:
        """The product with a constant that ends a branch: with a matrix, or a convolution by a number a channel."""
        graph = self.graph
        i = graph.resolve(i, layouts=True)
        operation, sources = graph.operations[i], graph.sources(i)
        if len(sources) != 1 or graph.operations[sources[0]].shape != operation.shape:
            return []
        waiting, names = [i], []
        while waiting:
            j = waiting.pop()
            waiting.extend(k for k in graph.operations[j].inputs if not graph.live[k])
            known = [self.names[one] for one in flat(graph.operations[j].constants) if one in self.names]
            names += known
        shapes = [graph.operations[j].shape for j in operation.inputs if not graph.live[j]]
        shapes += [tuple(self.tensors[name].shape) for name in names]
        channels = operation.name.startswith("conv") and any(
            len(shape) == len(operation.shape) and set(shape[1:]) == {1} for shape in shapes
        )
        if not channels and operation.name not in MATRIX_PRODUCTS:
            return []
        what = f"{operation.name} with {' and '.join(dict.fromkeys(names)) or 'a constant tensor'}"
        return [FactorNote(what, self.shape(i), short(operation.line), WHY["unspelled"])]

    def product(self, i: int) -> FactorNote:
        operation = self.graph.operations[i]
        return FactorNote(
            f"{operation.name} of two", self.shape(i), short(operation.line), WHY[self.graph.verdict(i)[1]]
        )


def flat(value) -> list:
    """The entries of nested tuples."""
    return [one for part in value for one in flat(part)] if isinstance(value, tuple) else [value]
