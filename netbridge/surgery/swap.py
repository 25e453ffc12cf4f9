"""The same branches under another controller."""

import copy
import logging

from torch import nn

from netbridge.model.network import Network
from netbridge.step_sizes import placement, spec

log = logging.getLogger("netbridge")


def swap(net: Network, controller, on=None, share: bool = False) -> Network:
    """A new network with the same branches and another controller, on all blocks or on those named by `on`.

    The branches are copied, or with share=True are the same tensors, trained together. Controllers start anew, except
    when this takes back the last swap: then those that were replaced return with what they had learnt.
    """
    if not isinstance(net, Network):
        raise TypeError(f"`net` must be a network of nb.resnet, nb.load or nb.load_foreign, got {type(net).__name__}.")
    wanted = spec.spec_of(controller)
    before = placement.present(net)
    after = placement.on_blocks(wanted, net.config["blocks"], on, before)
    new = copy.deepcopy(net, {id(tensor): tensor for tensor in tensors(net)} if share else None)
    if after == before:
        return new
    if wanted.kind.modifies_branch:
        if net.config["folded"]:
            raise ValueError(f"controller {wanted.name!r} lives in batch normalisations, which `fold` took away.")
        log.warning("%s modifies the branch: its normalisations are gated, the step size stays 1.", wanted.name)
    if net.replaced and placement.present(net.replaced[0]) == after:
        new = adopt(copy.deepcopy(net.replaced[0]), new)
    else:
        placement.install(new, after, before)
    new.replaced = (keepsake(net),)
    return new


def tensors(net):
    yield from net.parameters()
    yield from net.buffers()


def is_controllers(name: str) -> bool:
    """Does a state-dict entry belong to a controller, rather than to stem, branches, shortcuts and head?"""
    return ".controller." in name or ".shared." in name or ".instance_" in name


def named_backbone(net):
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if not is_controllers(name):
            yield name, tensor


def keepsake(net: Network) -> Network:
    """The network with its controllers copied and of everything else the shapes only."""
    hollow = {}
    for _, tensor in named_backbone(net):
        empty = tensor.detach().to("meta")
        hollow[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty
    kept = copy.deepcopy(net, hollow)
    kept.replaced = ()
    return kept


def adopt(hollow: Network, net: Network) -> Network:
    """Fill a keepsake with the stem, branches, shortcuts and head of `net`."""
    like = next(net.parameters())
    for name, tensor in (*hollow.named_parameters(), *hollow.named_buffers()):
        if is_controllers(name):
            tensor.data = tensor.data.to(device=like.device, dtype=like.dtype)
    for name, tensor in named_backbone(net):
        path, _, leaf = name.rpartition(".")
        setattr(hollow.get_submodule(path), leaf, tensor)
    for key in ("normalisation", "about"):
        setattr(hollow, key, copy.deepcopy(getattr(net, key)))
    return hollow.train(net.training)
