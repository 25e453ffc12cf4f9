"""Finding the residual blocks of a network, and the way to observe it that sees most."""

import torch
from torch import nn

from netbridge.model.network import Network
from netbridge.tracing import capture
from netbridge.tracing.record import SLOPE
from netbridge.tracing.tracers import BlockTracer, SolverTracer, StepTracer


def tracer_of(net: nn.Module, sample: torch.Tensor, kinds: tuple[str, ...] | None, blocks):
    """The way to observe `net` that sees most."""
    owned = [(name, module) for name, module in net.named_modules() if isinstance(module, Network)]
    if len(owned) == 1 and blocks is None:
        prefix, network = owned[0]
        return SolverTracer(net, network, f"{prefix}." if prefix else "")
    named = None if blocks is None else named_blocks(net, blocks)
    tracer, hidden, reason = step_tracer(net, sample, named)
    if tracer is not None and not hidden:
        return tracer
    if named is None:
        raise ValueError(
            f"`net` ({type(net).__name__}) has no residual blocks that could be seen. Looked for additions of "
            "shortcut(x) and branch(x) computed from one state x, where the shortcut is x itself or a projection of it "
            f"without nonlinearity, and the first axis is the batch{reason}. Name its blocks yourself: "
            'blocks=["layer1.0", ...].'
        )
    if SLOPE in (kinds or ()):
        raise ValueError(
            f"`of` = 'slope' needs the branch of every block, and inside {hidden[0]!r} no residual addition could be "
            "seen; use of='increment'."
        )
    return BlockTracer(net, named)


def step_tracer(net, sample, named):
    """A tracer of the additions found, the named blocks without one, and what fx had against this network."""
    reason = ""
    try:
        program, operations, nodes = capture.symbolic(net, sample)
        steps = operations.steps()
    except capture.NotTraceable as error:
        program, nodes, steps = None, None, []
        reason = f" (torch.fx: {str(error).strip().splitlines()[0] if str(error) else 'no'})"
    chosen, hidden = choose(steps, named)
    if not steps or hidden:
        watched = capture.watched(net, sample)
        others = watched.steps()
        if len(choose(others, named)[1]) < len(hidden) or not steps:
            operations, program, nodes, steps = watched, None, None, others
            chosen, hidden = choose(steps, named)
    if not chosen:
        return None, list(named or ()), reason
    shapes = {number: operation.shape for number, operation in enumerate(operations.operations)}
    tracer = StepTracer(steps, chosen, program, nodes, net, shapes)
    if named is not None:
        rename(tracer, named)
    return tracer, hidden, reason


def choose(steps, named):
    """The steps inside the named blocks, and the blocks without one."""
    if named is None:
        return list(range(len(steps))), []
    chosen = [i for i, step in enumerate(steps) if any(within(step.module, name) for name in named)]
    return chosen, [name for name in named if not any(within(step.module, name) for step in steps)]


def within(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def rename(tracer: StepTracer, named):
    """A block with one step gives it its name."""
    for name in named:
        inside = [k for k, step in enumerate(tracer.steps) if within(step.module, name)]
        if len(inside) == 1:
            tracer.places.names[inside[0]] = name


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
