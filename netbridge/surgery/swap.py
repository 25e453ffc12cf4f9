"""The same branches under another controller."""

import copy
import logging

from netbridge.model import plain
from netbridge.model.network import Configured
from netbridge.model.plain import Plain
from netbridge.step_sizes import placement, spec

log = logging.getLogger("netbridge")


def swap(net, controller, on=None, share: bool = False):
    """A new network with the same branches and another controller; `net` stays as it is.

    New controllers start untrained. To get trained ones back, give the network that holds them as `controller`.

    net         a network of ours, a `Network` or a `Plain`
    controller  a name, such as "se" or "asr(se)", an `nb.Spec`, a class of your own, or a network of the same kind with
                as many blocks per stage: its controllers are then copied with everything they have learnt
    on          the blocks that change, by number or name; None: all on which the controller acts
    share       False: the branches are copied; True: both networks hold the same tensors and are trained together

    Returns a network of the kind of `net`. Raises ValueError for unknown controllers and blocks, and where the branches
    have lost the normalisations that the controller works in.

    >>> import netbridge as nb
    >>> net = nb.resnet(14, controller="se")
    >>> other = nb.swap(net, "eca", on=[0, 1])
    >>> [block.controller.name for block in other.blocks]
    ['eca', 'eca', 'se', 'se', 'se', 'se']
    >>> again = nb.swap(other, net)  # the controllers of `net`, as they are now
    >>> bool((again.blocks[0].controller.excite[0].weight == net.blocks[0].controller.excite[0].weight).all())
    True
    """
    if not isinstance(net, Configured):
        raise TypeError(
            f"`net` must be a network of nb.resnet, nb.load or nb.load_foreign, got {type(net).__name__}; nb.insert "
            "puts step sizes into any other network."
        )
    trained = controller if isinstance(controller, Configured) else None
    before = placement.present(net)
    if trained is not None and (on is not None or not alike(trained, net)):
        raise ValueError(
            f"`controller` is a network with {trained.config['blocks']} blocks per stage: all {net.config['blocks']} "
            "controllers are taken from it, so the numbers and the kind of network must agree and `on` must be None."
        )
    if trained is not None:
        after = placement.present(trained)
    elif isinstance(net, Plain):
        after = plain.specs_of_places(net, controller, on)
    else:
        uniform = "family" in net.config  # all but residual networks of convolutions open no stage by a block
        after = placement.on_blocks(spec.spec_of(controller), net.config["blocks"], on, before, uniform)
    for one, old in zip(after, before, strict=True):
        if one != old and one.kind.modifies_branch:
            if net.config["folded"]:
                raise ValueError(f"controller {one.name!r} lives in batch normalisations, which `fold` took away.")
            log.warning("%s modifies the branch: its normalisations are gated, the step size stays 1.", one.name)
            break
    new = copy.deepcopy(net, {id(tensor): tensor for tensor in tensors_of(net)} if share else None)
    if isinstance(new, Plain):
        new.config["controllers"] = [one.as_json() for one in after]
        plain.furnish(new, anew=trained is not None)
    else:
        placement.install(new, after, before if trained is None else [None] * len(after))
    if trained is not None:
        new.load_state_dict({k: v for k, v in trained.state_dict().items() if is_controllers(k)}, strict=False)
    return new


def alike(net: Configured, other: Configured) -> bool:
    """Do two networks have the same kind of blocks, and equally many in every stage?"""
    return type(net) is type(other) and all(
        net.config.get(key) == other.config.get(key) for key in ("blocks", "family")
    )


def tensors_of(net):
    yield from net.parameters()
    yield from net.buffers()


def is_controllers(name: str) -> bool:
    """Does a state-dict entry belong to a controller, rather than to stem, branches, shortcuts and head?"""
    return ".controller." in name or ".shared." in name or ".instance_" in name
