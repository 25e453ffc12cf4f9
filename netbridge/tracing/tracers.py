"""How a pass of a network is observed: ours through the solver's `record`, others through their code or their calls.

A tracer has `names`, `stage`, `first`, `of`, and runs one batch: tracer(batch, recorder).
"""

import dataclasses
import math

import torch
from torch import fx, nn

from netbridge.model import solve
from netbridge.model.network import Network
from netbridge.tracing import capture, graph
from netbridge.tracing.norms import Recorder
from netbridge.tracing.probe import Probe, instrument, visitor
from netbridge.tracing.record import INCREMENT, SLOPE
from odelab.methods.explicit import EULER


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
        self.plain = all(s.method.stages == s.depth_factor == 1 and s.solver is None for s in network.stages)
        self.places = Places()

    def __call__(self, batch, recorder: Recorder):
        places, blocks, measured = Places(), self.network.blocks, set()

        def step(rhs, params, t, u, slope, dt, h):
            """`odelab.core.rk_step` for Euler; a plain step is measured and taken while its maps are in the cache."""
            k = len(places.names)
            if h is not solve.UNIT or u.shape != slope.shape or u.dtype != slope.dtype:
                new, *rest = EULER.step(rhs, params, t, u, slope, dt, h)
                return blocks[k].project(new), *rest
            measured.add(k)
            new = recorder.advance(k, u, slope, blocks[k].project is torch.relu_, blocks[k].opens)
            return new, slope, [slope], [slope], False

        def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
            k = len(places.names)
            if k not in measured:
                recorder.slope(k, mean_slope)
                recorder.size(k, h, u)
                recorder.state(k, u)
                opens = t == 0 and self.network.stages[memory.stage].blocks[0].opens
                recorder.left(k, None if opens else u, u_new)
            places.add(self.name(memory.stage, t), memory.stage, t < 1)
            return carry

        with self.network.observed(record, step=step if self.plain and not recorder.keeps else None):
            output = self.net(batch)
        self.places = places
        return output

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
            return self.program(batch)
        with capture.Watching(visitor(self.probes, self.shapes)):
            return self.net(batch)


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
            recorder.size(k, math.nan, new)
            places.add(name, (places.stage[-1] if k else -1) + opens, opens)

        for name, block in self.blocks.items():
            handles.append(
                block.register_forward_pre_hook(lambda _, a, kw, name=name: enter(name, a, kw), with_kwargs=True)
            )
            handles.append(block.register_forward_hook(lambda _, a, out, name=name: leave(name, out)))
        try:
            output = self.net(batch)
        finally:
            for handle in handles:
                handle.remove()
        self.places = places
        return output
