"""Which blocks of somebody else's network are observed, and what a warning says of those that are not."""

import warnings

from torch import nn

from netbridge.foreign.operations import Step, is_within
from netbridge.foreign.tracers import BlockTracer, StepTracer
from netbridge.foreign.watching import Pass, watch_pass
from netbridge.tracing.batches import length, sample_of
from netbridge.tracing.record import SLOPE

MOST_TRIES = 8  # numbers of images


def foreign_tracer_of(net: nn.Module, call, batch, kinds: tuple[str, ...] | None, blocks):
    """The tracer for somebody else's network: by its steps where sums are found, else by the ends of its blocks."""
    named = None if blocks is None else named_blocks(net, blocks)
    first = watch_sample(net, call, batch)
    tracer = StepTracer(net, call, first, named)
    out_of_sight = first.graph().find_out_of_sight()
    if named is not None:
        out_of_sight = [module for module in out_of_sight if any(is_within(module, name) for name in named)]
    if tracer.steps and not tracer.hidden and not out_of_sight:
        if named is None:
            warn_of_unseen(net, first, tracer.steps)
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
            'nonlinearity, and the first axis is the batch. Name its blocks yourself: blocks=["layer1.0", ...].'
        )
    if SLOPE in (kinds or ()):
        raise ValueError(
            f"`of` = 'slope' needs the branch of every block, and inside {tracer.hidden[0]!r} no residual addition "
            "could be seen; use of='increment'."
        )
    return BlockTracer(net, call, named)


def watch_sample(net: nn.Module, call, batch) -> Pass:
    """A pass of a few images of a batch, written down.

    Inside the network there may be an axis as long as there are images, such as that of the tokens, which might stand
    first. Where it does so in a sum, another number of images tells the two apart.
    """
    avoided: set[int] = set()
    for again in range(MOST_TRIES):
        sample = sample_of(batch, avoided)
        first, images = watch_pass(net, call, sample), length(sample)
        steps = first.graph().steps()
        by_chance = any(step.shape.count(images) > 1 or (step.axis and not again) for step in steps)
        if not by_chance:
            break
        avoided |= {size for step in steps for size in step.shape}
    return first


def warn_of_unseen(net: nn.Module, first: Pass, steps: list[Step]):
    """Warns of blocks without an observed sum whose class has one elsewhere, and of such branches."""
    modules = dict(net.named_modules())
    warn_of_unadded(modules, first, steps)
    partial = [step.name for step in steps if first.graph().is_partial(step)]
    if partial:
        warnings.warn(
            f"the steps {partial} change a slice of their state: their index is that of the slice, not of the state.",
            stacklevel=4,
        )
    joined = first.graph().find_joined(steps)
    if joined:
        warnings.warn(
            f"behind the sums of the steps {joined} something else is added before the next state (the first state, a "
            "skip from further back, a constant): the index of the slope is that of the branch alone, that of the "
            "increment is of both.",
            stacklevel=4,
        )
    back = list(dict.fromkeys(step.name or type(net).__name__ for step in first.graph().sorted_steps()[1]))
    if back:
        warnings.warn(
            f"the trace is without sums in {back}: they mix an earlier state, "
            "such as the first one, into what later steps have made of it, and the steps that they are part of are "
            "not seen.",
            stacklevel=4,
        )
    unexplained = [name or type(net).__name__ for name in first.graph().find_unexplained(steps)]
    if unexplained:
        warnings.warn(
            f"the trace is without sums in {unexplained}: two things computed from one state, in which no state and "
            "branch could be told apart, or which have not one row an image, or which are broadcast over each other.",
            stacklevel=4,
        )
    classes = {type(modules[step.module]) for step in steps if step.module in modules}
    seen = {step.module for step in first.graph().candidates()}
    unseen = [
        name
        for name, (before, after) in first.ends.items()
        if type(modules[name]) in classes and before == after and not any(is_within(one, name) for one in seen)
    ]
    if unseen:
        warnings.warn(
            f"the trace is without the blocks {unseen}: like the blocks that were found they are of the class "
            f"{type(modules[unseen[0]]).__name__}, but no residual addition could be seen in them.",
            stacklevel=4,
        )


def warn_of_unadded(modules: dict[str, nn.Module], first: Pass, steps: list[Step]):
    """Warns of modules that have the class of an observed branch, but whose output no residual sum adds to a state."""
    graph = first.graph()
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
        for name, (before, after) in first.ends.items()
        if type(modules[name]) in kinds and before == after and any(p.ndim > 1 for p in modules[name].parameters())
        and not any(is_within(one, name) for one in seen)
    ]  # fmt: skip
    if unseen:
        warnings.warn(
            f"the trace is without {unseen}: like branches of the steps that were found they are of the class "
            f"{type(modules[unseen[0]]).__name__}, but no addition of their results to the state they are computed "
            "from could be seen (a momentum or a second state beside the first is no residual step).",
            stacklevel=5,
        )


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
