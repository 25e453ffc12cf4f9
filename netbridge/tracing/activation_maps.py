"""Where a network looks: class activation maps, and the statistics of their position.

For a network that ends in an average over the map and one linear layer, Grad-CAM (Selvaraju et al., ICCV 2017) is CAM
(Zhou et al., CVPR 2016) over the number of positions: the gradient of a logit at the last map is its weight, divided.
"""

import torch

from netbridge.common.batches import to_network
from netbridge.common.preservation import preserve
from netbridge.model.network import Network


def class_maps(net: Network, images: torch.Tensor, classes: torch.Tensor | None = None, batch: int = 250):
    """Grad-CAM at the last state, in closed form: relu(sum over channels of weight times map) over the positions.

    net      a post-activation network of ours, whose head is an average and a linear layer
    images   images (N, C, H, W) as the network is shown them
    classes  the class of every image, (N,); None: the one that the network answers
    batch    images at a time

    Returns maps (N, height, width). Raises ValueError for another head.

    >>> import torch, netbridge as nb
    >>> from netbridge.tracing.activation_maps import class_maps
    >>> class_maps(nb.resnet(8), torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 8, 8])
    """
    head = getattr(net, "head", None)
    if not getattr(head, "post_activation", False):
        raise ValueError("`net` must end in an average over the map and a linear layer, as post-activation ones do.")
    found, last = [], []
    handle = head.register_forward_pre_hook(lambda _, args: last.append(args[0]))  # type: ignore[union-attr]
    try:
        with preserve(net), torch.no_grad():
            for number, part in enumerate(images.split(batch)):
                last.clear()
                logits = net(to_network(net, part))
                wanted = (
                    logits.argmax(1) if classes is None else classes[number * batch :][: len(part)].to(logits.device)
                )
                weights = head.fc.weight[wanted]  # type: ignore[union-attr]
                maps = torch.einsum("nc,nchw->nhw", weights, last[0])
                found.append(torch.relu(maps) / maps[0].numel())
    finally:
        handle.remove()
    return torch.cat(found)


def central_mass(maps: torch.Tensor) -> torch.Tensor:
    """The share of each map in the central quarter of the picture: half its height and half its width; (N,).

    A map that is 0 everywhere has no mass and gives nan; a map that is the same everywhere gives 0.25.

    >>> import torch
    >>> from netbridge.tracing.activation_maps import central_mass
    >>> central_mass(torch.ones(1, 8, 8))
    tensor([0.2500])
    """
    height, width = maps.shape[1:]
    inner = maps[:, height // 4 : height - height // 4, width // 4 : width - width // 4]
    return inner.sum((1, 2)) / maps.sum((1, 2))


def centre_of_mass(maps: torch.Tensor) -> torch.Tensor:
    """Row and column of each map's centre of mass, in cells, (N, 2).

    >>> import torch
    >>> from netbridge.tracing.activation_maps import centre_of_mass
    >>> centre_of_mass(torch.eye(3)[None])
    tensor([[1., 1.]])
    """
    total = maps.sum((1, 2))
    rows = maps.sum(2) @ torch.arange(maps.shape[1], dtype=maps.dtype, device=maps.device)
    columns = maps.sum(1) @ torch.arange(maps.shape[2], dtype=maps.dtype, device=maps.device)
    return torch.stack((rows, columns), dim=1) / total.unsqueeze(1)
