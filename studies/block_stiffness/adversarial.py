"""How a network answers to images that are moved against it: flipped answers, margins, and how far the move grows."""

import numpy as np
import torch
from torch.nn import functional as F

from studies.lab.stiffness import prepare

SIZES = (1, 2)  # of the move, in units of a pixel's 255 values


def robustness(net, data, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Per image, larger where it is the more easily answered otherwise.

    flips at 1/255, 2/255  1 where one step of that size along the sign of the loss's gradient (FGSM) changes the answer
    small margin           minus the distance of the largest logit from the second
    growth                 how many times larger the step of 1/255 is after the last block than before the first one,
                           both in the norm over the state
    """
    images = prepare(net, data, data.test_images[chosen]).to(next(net.parameters()).device)
    labels = data.test_labels[chosen]
    result = {}
    for size in SIZES:
        there, logits = move_images(net, images, labels, size / 255)
        with torch.inference_mode():
            result[f"flips at {size}/255"] = (net(there).argmax(1) != logits.argmax(1)).cpu().numpy().astype(float)
        if size == SIZES[0]:
            result["growth"] = growth(net, images, there)
    best = logits.topk(2, 1).values
    result["small margin"] = (best[:, 1] - best[:, 0]).double().cpu().numpy()
    return result


def move_images(net, images: torch.Tensor, labels: torch.Tensor, size: float):
    """Images moved by `size` along the sign of the loss's gradient, and the answers to the images before that."""
    images = images.to(next(net.parameters()).device).clone().requires_grad_()
    logits = net(images)
    loss = F.cross_entropy(logits, labels.to(images.device), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, images)
    std = torch.tensor(net.normalisation["std"], device=images.device).view(-1, 1, 1)
    return images.detach() + size / std * gradient.sign(), logits.detach()


def growth(net, images: torch.Tensor, there: torch.Tensor) -> np.ndarray:
    """The distance of two images' states after the last block, over that before the first block."""
    (first, last), (other_first, other_last) = (end_states(net, some) for some in (images, there))
    before, after = ((one - other).flatten(1).norm(dim=1) for one, other in ((first, other_first), (last, other_last)))
    return (after / before).double().cpu().numpy()


def end_states(net, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The states before the first block and after the last one."""
    states: list[torch.Tensor] = []
    handles = [
        net.stages[0].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0].clone())),
        net.stages[-1].register_forward_hook(lambda _, __, output: states.append(output.clone())),
    ]
    try:
        with torch.inference_mode():
            net(images)
    finally:
        for handle in handles:
            handle.remove()
    return states[0], states[1]
