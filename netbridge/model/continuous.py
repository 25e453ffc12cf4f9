"""A stage as an ODE-net: Chen et al., Neural Ordinary Differential Equations, NeurIPS 2018."""

import torch


def flow(stage, memory, start, u):
    """u' = h(u, f) f(u; theta(t)) from layer `start` to the last, by torchdiffeq, then the projection.

    Watched, the state is also asked for at every layer, and each layer is recorded as one step of size 1 whose slope is
    the increment over it.
    """
    from torchdiffeq import odeint

    def rhs(t, u):
        time = float(t.detach())
        slope = stage.rhs(time, u, None)
        h, _ = stage.block_at(time).controller.propose(None, u, slope)
        return h * slope

    end = len(stage.blocks)
    watched = stage.observation is not None
    points = torch.arange(start, end + 1.0) if watched else torch.tensor([float(start), float(end)])
    states = odeint(rhs, u, points.to(u.device), method=stage.solver, rtol=stage.tolerance, atol=stage.tolerance)
    final = stage.blocks[-1].project(states[-1].clone())
    if watched:
        seen = stage.observation
        for i, (before, after) in enumerate(zip(states[:-1], (*states[1:-1], final), strict=True)):
            mean_slope = states[i + 1] - before
            seen.carry = seen.record(seen.carry, memory, start + i, 1, 1.0, before, [mean_slope], mean_slope, after)
    return final
