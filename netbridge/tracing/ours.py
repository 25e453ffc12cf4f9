"""How a pass of one of our networks is observed: its steps are those of `odelab`'s `integrate`, which reports each."""

import torch
from torch import nn

from netbridge.model.network import Network
from netbridge.recording.record import INCREMENT, SLOPE, Places
from netbridge.recording.recorder import Recorder
from netbridge.step_sizes.base import UNIT
from odelab.methods.explicit import EULER


def network_inside(net: nn.Module) -> tuple[str, Network] | None:
    """The one network of ours that `net` is or holds, and what its names begin with; None where there is none."""
    owned = [(name, module) for name, module in net.named_modules() if isinstance(module, Network)]
    if len(owned) != 1:
        return None
    ((name, network),) = owned
    return f"{name}." if name else "", network


class SolverTracer:
    """Observes a network of ours, perhaps inside another module.

    net         the module that is run
    call        call(net, batch) runs it
    network     the network of ours in it
    prefix      what the names of its blocks begin with
    """

    sees = (SLOPE, INCREMENT)
    notes: tuple[str, ...] = ()

    def __init__(self, net: nn.Module, call, network: Network, prefix: str):
        self.net, self.call, self.network, self.prefix = net, call, network, prefix
        self.plain = all(s.method.stages == s.depth_factor == 1 and s.solver is None for s in network.stages)
        self.places = Places()

    def __call__(self, batch, recorder: Recorder):
        places, blocks, measured = Places(), self.network.blocks, set()

        def step(rhs, params, t, u, slope, dt, h):
            """`odelab.core.rk_step` for Euler; where h is 1, norms and sum are formed in one pass over the maps."""
            k = len(places.names)
            if h is not UNIT or u.shape != slope.shape or u.dtype != slope.dtype:
                new, *rest = EULER.step(rhs, params, t, u, slope, dt, h)
                return blocks[k].project(new), *rest
            measured.add(k)
            new = recorder.advance(k, u, slope, blocks[k].project is torch.relu_, blocks[k].opens)
            return new, slope, [slope], [slope], False

        def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
            k = len(places.names)
            if k not in measured:
                recorder.slope(k, mean_slope)
                recorder.size(k, h, len(u), u.ndim)
                recorder.state(k, u)
                opens = t == 0 and self.network.stages[memory.stage].blocks[0].opens
                recorder.new_state(k, None if opens else u, u_new)
            places.add(self.name(memory.stage, t), memory.stage, t < 1)
            return carry

        with self.network.observed(record, step=step if self.plain and not recorder.keeps else None):
            output = self.call(self.net, batch)
        self.places = places
        return output

    def name(self, stage, t) -> str:
        part = t - int(t)
        return f"{self.prefix}stages.{stage}.blocks.{int(t)}" + (f" + {part:g}" if part else "")
