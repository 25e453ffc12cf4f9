"""Which blocks of somebody else's network are observed, and what a warning says of those that are not."""

import warnings
from typing import Any

import torch
from torch import nn

from netbridge.common.batches import length, sample_of
from netbridge.common.nested_tensors import first_tensor, map_tensors
from netbridge.foreign.choices import short
from netbridge.foreign.operations import Step, is_within
from netbridge.foreign.rows import find_mixed
from netbridge.foreign.solvers import ADAPTIVE, UNTOLD, solving
from netbridge.foreign.tracers import BlockTracer, StepTracer
from netbridge.foreign.watching import Pass, watch_pass
from netbridge.recording.record import SLOPE

MOST_TRIES = 8  # numbers of images


def foreign_tracer_of(net: nn.Module, call, batch, kinds: tuple[str, ...] | None, blocks, choices=None):
    """The tracer for somebody else's network: by its steps where sums are found, else by the ends of its blocks.

    What there is to say of what it found and left out stands in its `notes`, and is warned of once.
    """
    named = None if blocks is None else named_blocks(net, blocks)
    first, sample = watch_sample(net, call, batch, choices)
    tracer = StepTracer(net, call, first, named)
    out_of_sight = first.graph.find_out_of_sight()
    if named is not None:
        out_of_sight = [module for module in out_of_sight if any(is_within(module, name) for name in named)]
    if named is None and (untold := solving(first.operations, (UNTOLD,))):
        raise ValueError(
            f"`net` solves an equation in {untold[0] or type(net).__name__!r} by a solver of torchdiffeq that tells "
            "nobody of its steps (scipy_solver, or any with event_fn). Take another method, such as dopri5 or rk4, or "
            "name the blocks that are to be traced in `blocks`."
        )
    if (tracer.steps or tracer.solving) and not tracer.hidden and not out_of_sight:
        warned = notes_on_unseen(net, first, tracer.steps) if named is None and not (choices and choices.steps) else []
        if mixed := find_mixed(net, call, sample, first, tracer.steps):
            if choices is None or choices.batch_axis is None:
                look_for_axis(net, call, batch, choices, mixed)
            words = (
                f"the states of {mixed} of one row depend on other rows, so that the rows are no samples of their own"
            )
            if any(module.training for module in net.modules()) or (choices and choices.batch_axis is not None):
                tracer.notes.append(f"{words} (a statistic of the batch?).")
            else:
                warned.append(f"{words} (a graph, a set?), and along no axis are they: `batch_axis` cannot name one.")
        if adaptive := [module or type(net).__name__ for module in solving(first.operations, (ADAPTIVE,))]:
            warned.append(
                f"the steps in {adaptive} are chosen by an adaptive solver for all images of a batch together: their "
                "number, their sizes and so the indices depend on which images a batch holds (batch_size=...); `steps` "
                "takes others."
            )
        for note in warned:
            warnings.warn(note, stacklevel=6)
        tracer.notes += [*warned, *notes_on_products(first, tracer.steps)]
        return tracer
    if out_of_sight and (named is None or SLOPE in (kinds or ())):
        raise ValueError(
            f"`net` adds or multiplies, in {out_of_sight[0]!r}, what comes from no function of torch's (TorchScript, "
            "NumPy, vmap and operations of one's own are not seen): its branch cannot be told from its step size. "
            "Name its blocks in `blocks`, and use of='increment', so that only their ends are watched."
        )
    if named is None:
        raise ValueError(
            f"`net` ({type(net).__name__}) has no residual blocks that could be seen. Looked for sums of shortcut(x) "
            "and branch(x) computed from one state x, where the shortcut is x itself or a projection of it without "
            "nonlinearity, and the first axis is the batch. Of blocks that keep the shape of what goes in, "
            "of='increment' watches the ends: blocks=[\"layer1.0\", ...]. Blocks that join features to their state, as "
            "DenseNet's do, or put others in its place take no steps."
        )
    if SLOPE in (kinds or ()):
        raise ValueError(
            f"`of` = 'slope' needs the branch of every block, and inside {tracer.hidden[0]!r} no residual addition "
            "could be seen; use of='increment'."
        )
    return BlockTracer(net, call, named)


class OtherAxis(ValueError):
    """The samples stand along another axis than the first; `axis` is it."""

    def __init__(self, axis: int, mixed: list[str]):
        super().__init__(
            f"`images`: the states of {mixed} of one row depend on other rows, so that the rows of the first axis are "
            f"no samples of their own (tokens?). Along axis {axis} they are: batch_axis={axis} says so."
        )
        self.axis = axis


def look_for_axis(net: nn.Module, call, batch, choices, mixed: list[str]) -> None:
    """Raises `OtherAxis` where the rows along the second axis do not depend on each other."""
    if first_tensor(batch).ndim < 3:
        return

    def swapped(value):
        return map_tensors(value, lambda tensor: tensor.movedim(1, 0) if tensor.ndim > 2 else tensor)

    def call_swapped(net, value):
        return call(net, swapped(value))

    try:
        first, sample = watch_sample(net, call_swapped, swapped(batch), choices)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return
    steps = first.graph.steps()
    if len(steps) > 0 and not find_mixed(net, call_swapped, sample, first, steps):
        raise OtherAxis(1, mixed)


def watch_sample(net: nn.Module, call, batch, choices=None) -> tuple[Pass, Any]:
    """A pass of a few images of a batch, written down, and these images.

    Inside the network there may be an axis as long as there are images, such as that of the tokens, which might stand
    first. Where it does so in a sum, another number of images tells the two apart.
    """
    avoided: set[int] = set()
    for again in range(MOST_TRIES):
        sample = sample_of(batch, avoided)
        try:
            first, images = watch_pass(net, call, map_tensors(sample, torch.clone), choices), length(sample)
        except (RuntimeError, IndexError) as error:
            refuse_parts(net, call, batch, error)
            raise
        steps = first.graph.steps()
        by_chance = any(step.shape.count(images) > 1 or (step.axis and not again) for step in steps)
        if not by_chance:
            break
        avoided |= {size for step in steps for size in step.shape}
    return first, sample


def refuse_parts(net: nn.Module, call, batch, error: Exception) -> None:
    """Raises where a network takes all rows of a batch and not some: they are no samples, but parts of one."""
    try:
        call(net, map_tensors(batch, torch.clone))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return
    raise ValueError(
        f"`images`: the network takes all {length(batch)} rows together and no other number of them ({error}), so that "
        "they are no samples of their own but parts of one, such as the nodes of a graph. Give a batch of graphs, "
        "x[None] for one, or say along which axis the samples stand: nb.trace(net, images, batch_axis=1)."
    ) from error


def notes_on_unseen(net: nn.Module, first: Pass, steps: list[Step]) -> list[str]:
    """What a trace is without: blocks and branches whose class has a step elsewhere, and sums that are none."""
    modules, graph = dict(net.named_modules()), first.graph
    notes = notes_on_unadded(modules, first, steps)
    own = type(net).__name__
    if partial := [step.name for step in steps if graph.is_partial(step)]:
        notes.append(
            f"the steps {partial} change a slice of their state: their index is that of the slice, not of the state "
            "(`steps` takes others)."
        )
    if joined := graph.find_joined(steps):
        notes.append(
            f"behind the sums of the steps {joined} something else is added before the next state (the first state, a "
            "skip from further back, a constant): the index of the slope is that of the branch alone, that of the "
            'increment (of="increment") is of both.'
        )
    if back := graph.sorted_steps[1]:
        notes.append(
            f"the trace is without sums in {unique(step.name or own for step in back)}: they mix an earlier state, "
            "such as the first one, into what later steps have made of it, and the steps that they are part of are "
            f"not seen. {how_to_take(graph, [step.addition for step in back])}"
        )
    if unexplained := graph.find_unexplained(steps):
        where = unique(graph.operations[i].module or own for i in unexplained)
        notes.append(
            f"the trace is without sums in {where}: two things computed from one state, in which no state and branch "
            "could be told apart, or which have not one row an image, or which are broadcast over each other. With "
            "`blocks` and of='increment' they are measured."
        )
    classes = {type(modules[step.module]) for step in steps if step.module in modules}
    seen = {step.module for step in graph.candidates}
    unseen = [
        name
        for name in first.ends
        if type(modules[name]) in classes and first.keeps_shape(name) and not any(is_within(one, name) for one in seen)
    ]
    if unseen:
        notes.append(
            f"the trace is without the blocks {unseen}: like the blocks that were found they are of the class "
            f"{type(modules[unseen[0]]).__name__}, but no residual addition could be seen in them. With `blocks` and "
            "of='increment' they are measured."
        )
    return notes


def notes_on_unadded(modules: dict[str, nn.Module], first: Pass, steps: list[Step]) -> list[str]:
    """Modules that have the class of an observed branch, but whose output no residual sum adds to a state."""
    graph = first.graph
    seen = {operation.module for operation in map(graph.operations.__getitem__, graph.in_branches(steps))}
    kinds = set()
    for step in steps:
        for branch in step.branches:
            path = graph.maker(branch.place, step.module)
            inner = [path.rsplit(".", cut)[0] for cut in range(path.count(".") + 1)] if path else []
            kinds |= {type(modules[name]) for name in inner if name != step.module and is_within(name, step.module)}
    kinds = {kind for kind in kinds if not kind.__module__.startswith("torch.")}
    unseen = [
        name
        for name in first.ends
        if type(modules[name]) in kinds and first.keeps_shape(name)
        and any(p.ndim > 1 for p in modules[name].parameters()) and not any(is_within(one, name) for one in seen)
    ]  # fmt: skip
    if not unseen:
        return []
    return [
        f"the trace is without {unseen}: like branches of the steps that were found they are of the class "
        f"{type(modules[unseen[0]]).__name__}, but no addition of their results to the state they are computed "
        "from could be seen (a momentum or a second state beside the first is no residual step). `steps` takes a sum "
        "by its line all the same."
    ]


def notes_on_products(first: Pass, steps: list[Step]) -> list[str]:
    """The products of two things of full size at the ends of branches: which were step sizes, and which could be."""
    graph, notes = first.graph, []
    for why, text in (
        ("bounded", "one factor, as large as the branch, lies between 0 and a bound and is taken for the step size"),
        ("undecided", "neither of two factors can be told to be the step size, and the product is the slope"),
    ):
        lines = unique(short(graph.operations[i].line) for step in steps for i in graph.products_of(step, why))
        if lines:
            notes.append(f'in {lines} {text}; factors={{"{lines[0]}": "left"}}, "right" or "slope" decides otherwise.')
    return notes


def unique(names) -> list[str]:
    return list(dict.fromkeys(names))


def how_to_take(graph, sums: list[int]) -> str:
    lines = unique(short(graph.operations[i].line) for i in sums)
    return f"steps=[..., {lines[0]!r}] takes such a sum all the same." if lines and lines[0] else ""


def named_blocks(net: nn.Module, blocks) -> dict[str, nn.Module]:
    """Blocks by name from names, modules, or classes of modules."""
    modules = dict(net.named_modules())
    names = {id(module): name for name, module in modules.items()}
    found: list[str] = []
    for block in [blocks] if isinstance(blocks, str | type | nn.Module) else list(blocks):
        if isinstance(block, type):
            fitting = [name for name, module in modules.items() if isinstance(module, block)]
        elif isinstance(block, nn.Module):
            fitting = [names[id(block)]] if id(block) in names else []
        else:
            fitting = [block] if block in modules else []
        if not fitting:
            known = [name for name in modules if name]
            raise ValueError(f"`blocks` names {block!r}, which `net` does not have; it has {known[:8]} ...")
        found += fitting
    if not found:
        raise ValueError("`blocks` is empty; name at least one block.")
    order = {name: place for place, name in enumerate(modules)}
    return {name: modules[name] for name in sorted(set(found), key=order.__getitem__)}
