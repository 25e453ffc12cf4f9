"""How a pass of a network is observed: ours through the solver's `record`, others through their code or their calls.

A tracer has `names`, `stage`, `first`, `of`, and runs one batch: tracer(batch, recorder).
"""

import dataclasses

import torch
from torch import fx, nn

from netbridge import capture, graph
from netbridge.network import Network
from netbridge.probe import Probe, instrument, visitor
from netbridge.record import INCREMENT, SLOPE
from netbridge.recording import Measuring, Recorder


@dataclasses.dataclass
class Places:
    """Where the columns of a record stand."""

    names: list[str] = dataclasses.field(default_factory=list)
    stage: list[int] = dataclasses.field(default_factory=list)
    first: list[bool] = dataclasses.field(default_factory=list)

    def add(self, name, stage, first):
        self.names.append(name)
        self.stage.append(stage)
        self.first.append(first)


class SolverTracer:
    """A network of ours, perhaps inside another module: its steps are those of `odelab`'s `integrate`."""

    sees = (SLOPE, INCREMENT)

    def __init__(self, net: nn.Module, network: Network, prefix: str):
        self.net, self.network, self.prefix = net, network, prefix
        self.places = Places()

    def __call__(self, batch, recorder: Recorder):
        places, measured = Places(), set()

        def measure(u, slope):
            k = len(places.names)
            recorder.slope(k, slope)
            recorder.state(k, u)
            measured.add(k)

        def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
            k = len(places.names)
            if k not in measured:
                recorder.slope(k, mean_slope, h)
                recorder.state(k, u)
            opens = t == 0 and self.network.stages[memory.stage].blocks[0].opens
            recorder.left(k, None if opens else u, u_new)
            places.add(self.name(memory.stage, t), memory.stage, t < 1)
            return carry

        unit = None if recorder.keeps else Measuring(measure)
        with self.network.observed(record, unit=unit):
            self.net(batch)
        self.places = places

    def name(self, stage, t) -> str:
        part = t - int(t)
        return f"{self.prefix}stages.{stage}.blocks.{int(t)}" + (f" + {part:g}" if part else "")


class StepTracer:
    """Somebody else's network, whose additions were found: probes in its fx program, or beside its calls."""

    sees = (SLOPE, INCREMENT)

    def __init__(self, steps: list[graph.Step], chosen: list[int], program: fx.GraphModule | None, nodes, net, shapes):
        stage, first = graph.stages(steps)
        self.places = Places([steps[i].name for i in chosen], [stage[i] for i in chosen], [first[i] for i in chosen])
        self.steps = [steps[i] for i in chosen]
        self.program, self.nodes, self.net, self.shapes = program, nodes, net, shapes
        self.probes: list[Probe] = []

    def __call__(self, batch, recorder: Recorder):
        if not self.probes:
            self.probes = [Probe(k, step, recorder) for k, step in enumerate(self.steps)]
            if self.program is not None:
                instrument(self.program, self.nodes, self.probes)
        if self.program is not None:
            self.program(batch)
        else:
            with capture.Watching(visitor(self.probes, self.shapes)):
                self.net(batch)


class BlockTracer:
    """Named blocks, of which only the ends are seen: what goes in and what comes out."""

    sees = (INCREMENT,)

    def __init__(self, net: nn.Module, blocks: dict[str, nn.Module]):
        self.net, self.blocks = net, blocks
        self.places = Places()

    def __call__(self, batch, recorder: Recorder):
        places, entered, handles = Places(), {}, []
        shapes: list = []

        def enter(name, args, kwargs):
            state = next((t for t in capture.tensors((args, kwargs)) if t.is_floating_point()), None)
            if state is None:
                raise ValueError(f"block {name!r} takes no tensor: there is no state before it.")
            entered[name] = state.clone()  # the block may overwrite it

        def leave(name, output):
            k, before = len(places.names), entered.pop(name)
            new = capture.first_tensor(output)
            if new is None:
                raise ValueError(f"block {name!r} returns no tensor: there is no state after it.")
            opens = not shapes or new.shape != before.shape or before.shape != shapes[-1]
            shapes.append(new.shape)
            recorder.state(k, before)
            recorder.left(k, before if new.shape == before.shape else None, new)
            places.add(name, (places.stage[-1] if k else -1) + opens, opens)

        for name, block in self.blocks.items():
            handles.append(
                block.register_forward_pre_hook(lambda _, a, kw, name=name: enter(name, a, kw), with_kwargs=True)
            )
            handles.append(block.register_forward_hook(lambda _, a, out, name=name: leave(name, out)))
        try:
            self.net(batch)
        finally:
            for handle in handles:
                handle.remove()
        self.places = places


def tracer_of(net: nn.Module, sample: torch.Tensor, of: str | None, blocks):
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
    if of == SLOPE:
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
