"""Networks whose layers are no steps: nothing is added to a state, and a step size only scales what a layer returns."""

import torch
from torch import nn

from netbridge.model.network import Configured
from netbridge.step_sizes import placement, spec
from netbridge.step_sizes.gated import Gated, gate

NO_STEP = {
    "vgg": "each layer maps x to relu(h f(x)), and nothing is added to x",
    "mobilenet": "each layer maps x to relu(h f(x)), and nothing is added to x (version 2 has steps)",
    "shufflenet": "a unit keeps half of its channels, changes the other half and permutes; nothing is added",
    "repvgg": "the step size multiplies the shortcut as well, relu(h (BN x + f(x))): it is a gain on the state",
}


class Plain(Configured):
    """A network without residual steps; `nb.vgg`, `nb.mobilenet`, `nb.shufflenet` and `nb.repvgg` make one.

    Step sizes may stand behind the layers that `places` names, each in a `nb.Gated`. `nb.save`, `nb.swap`, `nb.merge`,
    `nb.fold` and training take it as they take a `Network`; `nb.trace` says why it has no stiffness index.

    body    the layers, up to the last feature map
    head    the layers behind it
    config  the plain dictionary that rebuilds the network

    Further attributes: `normalisation` and `about`, as in `nb.Network`.

    >>> import torch, netbridge as nb
    >>> net = nb.vgg(11, width=8, controller="asr(se)", on=[2])
    >>> net.places[2], type(net.get_submodule(net.places[2])).__name__, net(torch.rand(2, 3, 32, 32)).shape
    ('body.4.layer', 'Gated', torch.Size([2, 10]))
    """

    def __init__(self, body: nn.Sequential, head: nn.Module, config: dict):
        super().__init__(config)
        self.body, self.head = body, head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.check_images(x)
        return self.head(self.body(x))

    @property
    def places(self) -> list[str]:
        """The names of the layers behind which a step size may stand, in the order they act."""
        found = self.body.named_modules(prefix="body")
        return [f"{name}.{layer}" for name, module in found for layer in getattr(module, "gated", ())]

    @property
    def specs(self) -> list[spec.Spec]:
        """What stands at each place now."""
        layers = map(self.get_submodule, self.places)
        return [layer.spec if isinstance(layer, Gated) else spec.Spec("constant") for layer in layers]

    @property
    def no_step(self) -> str:
        """Why these step sizes do not belong to residual steps, as text for an error; "" if the network has none."""
        family = self.config["family"]
        return "" if family == "repvgg" and set(self.specs) == {spec.Spec("constant")} else NO_STEP[family]

    def note(self) -> None:
        """Writes what stands at each place into `config`."""
        self.config["controllers"] = [one.as_json() for one in self.specs]


class Activated(nn.Module):
    """relu(h layer(x)), where h is 1 unless a step size stands behind the layer."""

    gated = ("layer",)

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.layer(x))


def with_controller(net: Plain, controller, on=None) -> Plain:
    """A fresh network with this controller at the places asked for."""
    net.config["controllers"] = [one.as_json() for one in specs_of_places(net, controller, on)]
    return furnish(net)


def specs_of_places(net: Plain, controller, on=None) -> list[spec.Spec]:
    """One specification per place: the controller's at those asked for, what stands there at the others."""
    wanted = spec.spec_of(controller)
    if wanted.kind.shared or wanted.kind.modifies_branch:
        raise ValueError(f"controller {wanted.name!r} needs the blocks of a stage; {NO_STEP[net.config['family']]}.")
    return placement.on_blocks(wanted, [len(net.places)], on, net.specs, uniform=True, names=net.places)


def furnish(net: Plain, anew: bool = False) -> Plain:
    """Puts in the step sizes that the configuration names: where others stand, or everywhere if `anew` is True."""
    specs, before, names = placement.present(net), net.specs, net.places
    if len(specs) != len(names):
        raise ValueError(f"{len(specs)} controllers for {len(names)} places.")
    for name, wanted, old in zip(names, specs, before, strict=True):
        if anew or wanted != old:
            parent, _, leaf = name.rpartition(".")
            layer = net.get_submodule(name)
            layer = layer.layer if isinstance(layer, Gated) else layer
            alone = wanted == spec.Spec("constant")
            setattr(net.get_submodule(parent), leaf, layer if alone else gate(layer, wanted))
    return net
