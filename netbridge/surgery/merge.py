"""Constant controllers folded into the layers before them: after training they cost nothing (the ASR paper, Eq. 5)."""

import copy
import logging
from collections import Counter

import torch
from torch import nn

from netbridge.common.preservation import independent_copy
from netbridge.layers.absorb import absorb, last_layer, settle_weights
from netbridge.model.network import Network
from netbridge.model.plain import Plain
from netbridge.step_sizes import spec
from netbridge.step_sizes.base import Shared
from netbridge.step_sizes.gated import Gated
from netbridge.step_sizes.placement import in_use, place, present

log = logging.getLogger("netbridge")


def merge(net: nn.Module, keep_live: bool = False) -> nn.Module:
    """A new module that computes the same with its constant step sizes folded into its branches; `net` is not changed.

    Weights that weight_norm, spectral_norm or another parametrisation computes become plain ones, as they are in
    evaluation; a layer whose parameters are another's, too, gets its own. Behind a ReLU, LeakyReLU, PReLU or max-pool a
    constant is folded into what comes before, which is exact where no step size is negative.

    The step size becomes part of the branch. So the slope's index ||f||/||x|| of a merged block is h times what it was
    (per channel, where h is a vector), while the increment's index stays the same.

    net        a network of ours, or any module with such networks or `nb.Gated` layers in it
    keep_live  True: step sizes that depend on the input stay as they are; False: they are refused

    Returns a new module. A live module beside a constant (`beside=`) stays. A warning is logged where there was nothing
    to merge. Raises ValueError, with the block's or layer's name, where folding would not be exact.

    >>> import torch, netbridge as nb
    >>> net, images = nb.resnet(14, controller=nb.asr("se")).eval(), torch.rand(2, 3, 32, 32)
    >>> merged = nb.merge(net)
    >>> set(merged.config["controllers"]), bool(torch.allclose(merged(images), net(images), atol=1e-5))
    ({'constant'}, True)
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a network, got {type(net).__name__}.")
    new = independent_copy(net)
    merger = Merger(new, keep_live)
    with torch.no_grad():
        new = merger.merge_gated(new)
    if not merger.merged:
        log.warning(
            "merge: nothing to merge in this %s; it has no constant step size but 1 (nb.asr, nb.Gated, nb.insert).",
            type(net).__name__,
        )
    return new


class Merger:
    def __init__(self, net: nn.Module, keep_live: bool):
        self.keep_live = keep_live
        self.merged = 0  # step sizes folded so far
        self.owners = count_owners(net)
        self.done: dict[nn.Module, nn.Module] = {}  # what each module has become, also where it stands twice
        like = first_number(net)
        self.like = torch.empty(0) if like is None else like  # precision and device for layers without tensors

    def network(self, net: Network, prefix: str) -> None:
        """Merge one of our networks in place; `prefix` is its name within a larger one."""
        specs, names = present(net), [f"{prefix}.{name}".lstrip(".") for name in net.block_names]
        number = 0
        for stage in net.stages:
            memory, mixed = None, stage.between_blocks and not has_one_step_size(stage)
            for block in stage.blocks:
                memory = self.block(stage, block, memory, specs, number, names[number], mixed)
                number += 1
            for key in [key for key in stage.shared if not in_use(stage.shared[key], stage)]:
                del stage.shared[key]
        net.config["controllers"] = [one.as_json() for one in specs]

    def block(self, stage, block, memory, specs, number, name, mixed):
        """Merge one block and its entry in `specs`; the memory its controller hands to the next one.

        mixed  whether its weights are mixed with those of blocks of other step sizes
        """
        h, live, memory = block.controller.settle(memory)
        if h is None:
            self.refuse_live(name, specs[number])
            return memory
        if specs[number] == spec.Spec("constant"):
            return memory
        if stage.depth_factor > 1 and any(isinstance(part, Shared) for part in block.controller.modules()):
            raise ValueError(
                f"{name}: {specs[number]} moves on with every step of the refined grid; it is no constant."
            )
        if mixed:
            raise ValueError(
                f"{name}: its step size is the block's own, its slopes are mixed with the next block's "
                '(weights="interpolated"); merging would mix the step sizes too, which are not alike.'
            )
        if self.is_shared(block.branch.last):
            self.refuse_shared(block.branch.last, name)
        self.take_up(block.branch.last, h, name)
        beside = specs[number].options.get("beside")
        specs[number] = spec.Spec("constant") if beside is None else spec.spec_of(beside)
        place(block, spec.build("constant", 0, {}) if live is None else live)
        return memory

    def merge_gated(self, module: nn.Module, name: str = "") -> nn.Module:
        """The module with every `Gated` in it, or itself, replaced by its layer, and our networks in it merged."""
        if isinstance(module, Network):
            self.network(module, name)
            return module
        for child_name, child in list(module._modules.items()):
            if child is not None and child not in self.done:
                self.done[child] = self.merge_gated(child, f"{name}.{child_name}".lstrip("."))
            module._modules[child_name] = None if child is None else self.done[child]
        if isinstance(module, Plain):
            module.note()
        if not isinstance(module, Gated):
            return module
        where = name or type(module.layer).__name__
        h, live, _ = module.controller.settle(None)
        if h is None:
            self.refuse_live(where, module.controller.name)
            return module
        if module.into is None:
            module.layer = self.own(module.layer)
            self.take_up(module.layer, h, where)
        else:
            self.take_up_before(module, h, where)
        if live is None:
            return module.layer
        module.controller, module.spec = live, spec.spec_of(module.spec.options["beside"])
        return module

    def own(self, layer: nn.Module) -> nn.Module:
        """The layer, or a copy of it where another place needs it as it is."""
        return copy.deepcopy(layer) if self.is_shared(layer) else layer

    def is_shared(self, layer: nn.Module) -> bool:
        return any(self.owners[id(parameter)] > 1 for parameter in layer.parameters())

    def take_up_before(self, gated: Gated, h, name) -> None:
        """Fold a constant that stands behind an activation or at a sum into the layers before it."""
        if not gated.into:
            raise ValueError(
                f"{name}: its step size stands behind what no constant can be moved through, such as an activation "
                "other than ReLU, LeakyReLU and PReLU, or behind a layer that acts elsewhere, too; it stays a constant."
            )
        if gated.positive and bool((torch.as_tensor(h) < 0).any()):
            raise ValueError(
                f"{name}: its step size is negative in places (least {float(torch.as_tensor(h).min()):.3g}), and an "
                "activation is not the same in front of a negative constant and behind it."
            )
        for layer in gated.into:
            if self.is_shared(layer):
                self.refuse_shared(layer, name)
            self.take_up(layer, h, name)

    def take_up(self, layer, h, name) -> None:
        for part in last_layer(layer).modules():
            settle_weights(part)
        try:
            absorb(layer, h.to(self.like) if first_number(layer) is None else h)
        except ValueError as error:
            raise ValueError(f"{name}: {error}.") from None
        self.merged += 1

    def refuse_shared(self, layer, name) -> None:
        raise ValueError(f"{name}: its {type(layer).__name__} shares parameters with another layer; untie them first.")

    def refuse_live(self, name, controller) -> None:
        if not self.keep_live:
            raise ValueError(
                f"{name}: controller {controller} depends on its input and cannot be merged; train it as nb.asr(...), "
                "or pass keep_live=True to merge the constant ones only."
            )


def has_one_step_size(stage) -> bool:
    """Have all blocks of a stage the same constant?"""
    memory, found = None, []
    for block in stage.blocks:
        h, _, memory = block.controller.settle(memory)
        found.append(h)
    return all(h is not None and torch.equal(torch.as_tensor(h), torch.as_tensor(found[0])) for h in found)


def first_number(module: nn.Module) -> torch.Tensor | None:
    """The first floating-point tensor, which has the module's precision and device; None without one."""
    return next((x for x in (*module.parameters(), *module.buffers()) if x.is_floating_point()), None)


def count_owners(net: nn.Module) -> Counter:
    """In how many places each parameter acts; a module used twice counts twice."""
    modules = (module for _, module in net.named_modules(remove_duplicate=False))
    return Counter(id(parameter) for module in modules for parameter in module._parameters.values())
