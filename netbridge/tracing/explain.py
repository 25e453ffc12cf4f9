"""`nb.explain`: what a trace takes for state, slope, step size and opening in a network, and where in the code."""

import dataclasses
import linecache
import warnings
from typing import Any, NamedTuple

import torch
from torch import nn

from netbridge.foreign.choices import Choices, short
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Factor, Place, Step
from netbridge.foreign.tracers import StepTracer
from netbridge.tracing.batches import batches_of, run
from netbridge.tracing.preservation import preserve, unwrap
from netbridge.tracing.trace import Samples
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
}


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
    """What `nb.trace` takes for state, slope, step size and opening in somebody else's network; nothing is measured.

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
    as step size and every one that does not, with the reason, and why it opens a stage; then all notes. TypeError for
    networks of this library, whose blocks say what they are.

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
    samples, choices = Samples(call or run, batch_axis), Choices(factors or {}, stage, first, steps, batch_axis)
    with preserve(net), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all of it stands in the notes
        batches, _ = batches_of(images, net, call)  # a loader draws a number when it is asked for its batches
        tracer: Any = samples.tracer_of(net, next(batches), None, blocks, choices)
        if not isinstance(tracer, StepTracer):
            kind = type(tracer).__name__
            raise TypeError(
                f"`net` is observed by its own blocks ({kind}), not by its sums: there is nothing to explain."
            )
        names = {id(value): name for name, value in (*net.named_parameters(), *net.named_buffers())}
        reader = Reader(tracer.graph, names)
        notes = tuple(
            reader.note(step, name, opens, k)
            for k, (step, name, opens) in enumerate(
                zip(tracer.steps, tracer.places.names, tracer.places.first, strict=True)
            )
        )
    axis = samples.axis or 0
    return Explanation(notes, tuple(tracer.notes), f"samples: axis {axis} of what the network is given")


class Reader:
    """Puts what a graph says of its steps into words.

    graph   of the analysed pass
    names   of parameters and buffers, by `id`
    """

    def __init__(self, graph: Graph, names: dict[int, str]):
        self.graph, self.names = graph, names
        self.before: Step | None = None

    def note(self, step: Step, name: str, opens: bool, number: int) -> StepNote:
        graph = self.graph
        line = graph.operations[step.addition].line
        path, _, row = line.rpartition(":")
        code = linecache.getline(path, int(row)).strip() if path else ""
        left = [self.product(i) for i in graph.products_of(step) if not graph.verdict(i)[0]]
        weights = [factor for branch in step.branches for factor in branch.factors]
        counted = [self.factor(one) for one in step.factors]
        counted += [self.factor(one)._replace(reason="weight of a tableau") for one in weights if step.tableau]
        left += [self.factor(one)._replace(reason="a part of the slope") for b in step.branches for one in b.own]
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
        before = self.before
        if before is not None and step.start != before.start:
            return f"features {before.start} -> {step.start}"
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

    def factor(self, factor: Factor) -> FactorNote:
        if factor.place is None:
            return FactorNote(f"{factor.number:g}", "", "", "number")
        operation = self.graph.operations[factor.place.operation]
        line, sign = short(operation.line), {"over": "1 / ", "rest": "1 - "}.get(factor.how, "")
        source = self.graph.source(factor.place)
        if source >= 0:
            made = self.graph.operations[self.graph.resolve(source, layouts=True)]
            why = self.graph.verdict(factor.place.operation)[1]
            reason = (
                WHY["coarse" if why in ("normalisation", "activation") else why]
                if factor.live
                else "not computed from the images"
            )
            what = f"{made.name} in {made.module}" if made.module else made.name
            return FactorNote(f"{sign}{what}", self.shape(source), line, reason)
        value = self.graph.argument(factor.place)
        if isinstance(value, float):
            return FactorNote(f"{sign}{value:g}", "", line, "number")
        name = self.names.get(value[1]) if value[0] == "constant" else None
        return FactorNote(f"{sign}{name or 'a constant tensor'}", "", line, "parameter" if name else "constant")

    def product(self, i: int) -> FactorNote:
        operation = self.graph.operations[i]
        return FactorNote(
            f"{operation.name} of two", self.shape(i), short(operation.line), WHY[self.graph.verdict(i)[1]]
        )
