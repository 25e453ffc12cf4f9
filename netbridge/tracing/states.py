"""What goes into every block of a network: the states at which a spectrum or a norm is asked for."""

import contextlib

import torch
from torch import nn

from netbridge.common.batches import Samples, images_of, to_network
from netbridge.common.nested_tensors import state_given
from netbridge.common.preservation import preserve
from netbridge.foreign.blocks import named_blocks
from netbridge.model.block import Block
from netbridge.tracing.ours import SolverTracer
from netbridge.tracing.trace import tracer_of


def block_states(
    net: nn.Module, images: torch.Tensor, blocks=None, batch_axis: int | None = None
) -> dict[str, torch.Tensor]:
    """What goes into every residual block of a network for these images, the states at which a spectrum is asked for.

    The network is run in evaluation mode and is afterwards what it was before.

    net         the network, ours or anybody's
    images      a batch of images (N, ...)
    blocks      names of blocks, modules, or a class of modules, where the blocks are not found by themselves
    batch_axis  along which axis of `images` the samples stand, as in `nb.trace`

    Returns the input of every block by the block's name, in the order of the blocks, as the block is given it; of a
    block that acts several times, what goes into it first. Raises ValueError where no residual block can be seen, or
    where the network takes its steps in its own forward, so that no module is such a block.

    >>> import torch, netbridge as nb
    >>> net = nb.resnet(8)
    >>> states = nb.block_states(net, torch.randn(1, 3, 32, 32))
    >>> {name: tuple(state.shape) for name, state in states.items()}
    {'stages.0.blocks.0': (1, 16, 32, 32), 'stages.1.blocks.0': (1, 16, 32, 32), 'stages.2.blocks.0': (1, 32, 16, 16)}
    >>> name = "stages.1.blocks.0"
    >>> spectrum = nb.block_spectrum(net.get_submodule(name), states[name])
    """
    states: dict[str, torch.Tensor] = {}

    def enter(name, module, args, kwargs):
        state = state_given(module, args, kwargs)
        if state is None:
            raise ValueError(f"block {name!r} takes no tensor: there is no state before it.")
        if name not in states:  # a method of several stages evaluates a branch more than once
            states[name] = state.clone()

    with preserve(net), torch.no_grad(), contextlib.ExitStack() as stack:
        images = to_network(net, images_of(images)).clone()  # a network may change what it is given
        for name, block in blocks_of(net, images, blocks, batch_axis).items():
            door = block.branch if isinstance(block, Block) else block  # in a stage of ours the solver calls the branch
            hook = door.register_forward_pre_hook(lambda m, a, k, name=name: enter(name, m, a, k), with_kwargs=True)
            stack.callback(hook.remove)
        net(images)
    return states


def blocks_of(net: nn.Module, images, blocks=None, batch_axis: int | None = None) -> dict[str, nn.Module]:
    """The residual blocks of any network, by name; call it within `preserve`."""
    if blocks is not None:
        return named_blocks(net, blocks)
    samples = Samples(axis=batch_axis)
    tracer = tracer_of(net, samples, images, None, None)
    if samples.axis != batch_axis:
        raise ValueError(
            f"`images`: the samples stand along axis {samples.axis}, as layers with batch_first=False say, and so they "
            "do in the states of the blocks. Where that is meant, say batch_axis=1."
        )
    if isinstance(tracer, SolverTracer):
        network = tracer.network
        return {tracer.prefix + name: block for name, block in zip(network.block_names, network.blocks, strict=True)}
    bare = [step.name for step in tracer.steps if not step.module]
    bare += [f"of odeint in {name!r}" for name in tracer.solving]
    if bare:
        raise ValueError(
            f"`net` takes the steps {bare} in its own forward, so that no module is such a block with a state of its "
            "own. Put each into a module that returns x + f(x), or name `blocks`; nb.trace measures them as they are."
        )
    return {step.module: net.get_submodule(step.module) for step in tracer.steps}
