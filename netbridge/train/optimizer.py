"""The optimiser of a recipe, and what of a network can be averaged."""

import torch


def floats(net) -> list[torch.Tensor]:
    """Everything of a network that can be averaged."""
    return [x for x in (*net.parameters(), *net.buffers()) if x.is_floating_point()]


def make_optimizer(net, recipe) -> torch.optim.Optimizer:
    parameters = [x for x in net.parameters() if x.requires_grad]
    groups = [{"params": parameters}]
    if not recipe.decay_all:
        matrices = [x for x in parameters if x.ndim > 1]
        others = [x for x in parameters if x.ndim <= 1]
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=recipe.lr, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        groups, recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay, nesterov=recipe.nesterov
    )
