"""How much a perturbation really grows from the first residual block of a network to the end of every later one."""

import contextlib

import numpy as np
import torch
from torch import nn

from netbridge.model.network import Network
from netbridge.tracing import capture


def measured_growth(net, images, inputs, blocks: dict[str, nn.Module], size: float, search: int) -> np.ndarray:
    """epsilon_{t+1} / epsilon_0 after every block, the largest over images and over the perturbations tried, (T,)."""
    states = outputs(net, images, blocks, None)
    check_chain(net, states, inputs)
    start = states[0].detach()
    axes = tuple(range(1, start.ndim))
    scale = size * torch.linalg.vector_norm(start, dim=axes, keepdim=True)
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(0), dtype=start.dtype).to(start)
    largest = np.zeros(len(blocks))
    for turn in range(search + 1):
        delta = scale * direction / torch.linalg.vector_norm(direction, dim=axes, keepdim=True)
        delta.requires_grad_(turn < search)
        moved = outputs(net, images, blocks, delta)[1:]
        distances = [apart(new, old.detach()) for new, old in zip(moved, states[1:], strict=True)]
        grown = torch.stack(distances).detach() / apart(delta.detach(), torch.zeros_like(start))
        largest = np.maximum(largest, grown.amax(1).double().cpu().numpy())
        if turn < search:  # the gradient of the distance is the next vector of a power iteration on J'J
            direction = torch.autograd.grad(distances[-1].square().sum(), delta)[0]
    return largest


def apart(new, old) -> torch.Tensor:
    return torch.linalg.vector_norm((new - old).flatten(1), dim=1)


def outputs(net: nn.Module, images, blocks: dict[str, nn.Module], delta) -> list[torch.Tensor]:
    """The state before the first block, `delta` added to it, and the state after every block."""
    states: list[torch.Tensor] = []

    def shift(_, args):
        state = args[0].clone() if delta is None else args[0] + delta
        states.append(state)
        return (state.clone(), *args[1:])

    with contextlib.ExitStack() as stack, torch.set_grad_enabled(delta is not None and delta.requires_grad):
        own = [module for module in net.modules() if isinstance(module, Network)]
        if own:
            stack.callback(own[0].stages[0].register_forward_pre_hook(shift).remove)

            def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
                states.append(u_new.clone())
                return carry

            stack.enter_context(own[0].observed(record))
        else:
            for place, block in enumerate(blocks.values()):
                if place == 0:
                    stack.callback(block.register_forward_pre_hook(shift).remove)
                stack.callback(
                    block.register_forward_hook(
                        lambda _, args, out: states.append(capture.first_tensor(out).clone())
                    ).remove
                )
        net(images)
    return states


def check_chain(net: nn.Module, states: list[torch.Tensor], inputs: dict[str, torch.Tensor]):
    """Each block must begin where the one before it ended, and make one Euler step."""
    own = [stage for module in net.modules() if isinstance(module, Network) for stage in module.stages]
    if len(states) != len(inputs) + 1 or any(stage.method.stages > 1 or stage.solver for stage in own):
        raise ValueError("`net` does not make one Euler step per block, and the theorem speaks of nothing else.")
    for (name, state), before in zip(inputs.items(), states[:-1], strict=True):
        if state.shape != before.shape or not torch.allclose(state, before, rtol=1e-4, atol=1e-5):
            raise ValueError(
                f"`net` does something else just before block {name!r}: the growth from block to block is not the "
                "product of the blocks' own."
            )
