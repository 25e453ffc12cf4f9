"""Distillation (Hinton, Vinyals and Dean 2015): a trained network's answers are targets beside the labels."""

import hashlib
from pathlib import Path

import torch
from torch.nn import functional as F

from netbridge import checkpoint
from netbridge.pretrained_networks import ZOO
from netbridge.train import distributed
from netbridge.train.precision import Precision
from netbridge.train.recipes import Recipe


class Teacher:
    """The network that a recipe's `teacher` names, in evaluation mode.

    Images come normalised as the data set's are; a teacher that was shown others gets its own normalisation.

    recipe     a `Recipe` whose `teacher` is a name of `nb.pretrained` or a file of `nb.save`
    data       what is trained on: its classes must be the teacher's
    precision  what is computed in
    dtype      of weights and images

    `digest` tells files apart, since another file may take a name.
    """

    def __init__(self, recipe: Recipe, data, precision: Precision, dtype: torch.dtype):
        path = Path(recipe.teacher)
        if not path.is_file():
            path = ZOO / f"{recipe.teacher}.safetensors"
        if not path.is_file():
            raise ValueError(
                f"`teacher` = {recipe.teacher!r} is neither a file of nb.save nor a name that nb.pretrained() lists."
            )
        (header, tensors), self.digest = distributed.from_first(
            lambda: (
                checkpoint.read(path, checkpoint.NETWORK),
                hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            )
        )
        self.precision = precision
        self.net = checkpoint.network_from(path, header, tensors).to(precision.device, dtype).requires_grad_(False)
        if (classes := self.net.config["num_classes"]) != len(data.names):
            raise ValueError(
                f"`teacher` = {recipe.teacher!r} tells {classes} classes apart, {data.name} has {len(data.names)}."
            )
        self.temperature, self.weight = recipe.temperature, recipe.distillation
        own, given = self.net.normalisation or data.normalisation, data.normalisation
        self.same = own == given
        mean, std, shown_mean, shown_std = (
            torch.tensor(values, device=precision.device, dtype=dtype)[:, None, None]
            for values in (own["mean"], own["std"], given["mean"], given["std"])
        )
        self.scale, self.shift = shown_std / std, (shown_mean - mean) / std

    def loss(self, images: torch.Tensor, logits: torch.Tensor, labelled: torch.Tensor) -> torch.Tensor:
        """The weighted mean of the loss by the labels and T^2 times the divergence of the answers at temperature T.

        The square keeps the gradients of both about as large whatever T is.
        """
        with torch.no_grad(), self.precision.autocast():
            wanted = self.net(images if self.same else images * self.scale + self.shift).to(logits.dtype)
        ours, theirs = (F.log_softmax(x / self.temperature, 1) for x in (logits, wanted))
        met = F.kl_div(ours, theirs, reduction="batchmean", log_target=True)
        return (1.0 - self.weight) * labelled + self.weight * self.temperature**2 * met
