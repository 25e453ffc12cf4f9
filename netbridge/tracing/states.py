"""What goes into every block of a network: the states at which a spectrum or a norm is asked for."""

import torch
from torch import nn

from netbridge.model.block import Block
from netbridge.model.network import Network
from netbridge.tracing import capture, detect
from netbridge.tracing.passes import evaluation, placed, sample_of


def block_states(net: nn.Module, images: torch.Tensor, blocks=None) -> dict[str, torch.Tensor]:
    """The input of every residual block for these images, by the block's name; in evaluation mode.

        for name, x in nb.block_states(net, images[:1]).items():
            print(name, nb.block_spectrum(net.get_submodule(name), x))

    `blocks` takes names, modules or a class of modules, where the blocks are not found by themselves.
    """
    states: dict[str, torch.Tensor] = {}

    def enter(name, args, kwargs):
        if name not in states:  # a method of several stages evaluates a branch more than once
            states[name] = capture.first_tensor((args, kwargs)).clone()

    with evaluation(net), torch.no_grad():
        images = placed(net, images)
        handles = [
            door.register_forward_pre_hook(
                lambda _, args, kwargs, name=name: enter(name, args, kwargs), with_kwargs=True
            )
            for name, door in doors(net, images, blocks).items()
        ]
        try:
            net(images)
        finally:
            for handle in handles:
                handle.remove()
    return states


def doors(net: nn.Module, images, blocks=None) -> dict[str, nn.Module]:
    """The module that every block's state enters first: of ours the branch, since the solver calls no block."""
    found = blocks_of(net, images, blocks)
    return {name: block.branch if isinstance(block, Block) else block for name, block in found.items()}


def blocks_of(net: nn.Module, images, blocks=None) -> dict[str, nn.Module]:
    """The residual blocks of any network, by name."""
    if blocks is not None:
        return detect.named_blocks(net, blocks)
    owned = [(name, module) for name, module in net.named_modules() if isinstance(module, Network)]
    if len(owned) == 1:
        prefix = f"{owned[0][0]}." if owned[0][0] else ""
        return {prefix + name: block for name, block in zip(owned[0][1].block_names, owned[0][1].blocks, strict=True)}
    tracer = detect.tracer_of(net, sample_of(images), None, None)
    return {step.module: net.get_submodule(step.module) for step in tracer.steps}
