"""What changes from epoch to epoch: gates, scales of normalisations and logits, each against its own spread."""

import torch
from torch import nn

import netbridge as nb

PROBES = 256  # test images that gates and logits are followed on


class Observer:
    """Called after every epoch of a training; what it returns joins the log.

    data  the images of the training; the first test images are followed

    The record has, under "moved", how far the gates of every block, the scales of all normalisations and the logits
    went since the epoch before, each as mean absolute difference divided by the standard deviation of the same numbers;
    and under "spread" the standard deviation over the channels of every block's mean gates. Of the first epoch nothing
    is known of the one before. What it remembers of the last epoch is kept with the state of the training.
    """

    def __init__(self, data):
        self.images = data.normalised(data.test_images[:PROBES])
        self.before: dict | None = None

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.before or {}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.before = dict(state) or None

    @torch.no_grad()
    def __call__(self, net, record) -> dict:
        now = {f"gate {number}": one.h for number, one in enumerate(nb.gates(net, self.images))}
        spread = [float(h.mean(0).std(correction=0)) for h in now.values()]
        now["scales"] = torch.cat([norm.weight.detach() for norm in net.modules() if isinstance(norm, nn.BatchNorm2d)])
        now["logits"] = net(self.images)
        before, self.before = self.before, now
        if before is None:
            return {"spread": spread}
        return {"spread": spread, "moved": {key: relative_change(before[key], now[key]) for key in now}}


def relative_change(before: torch.Tensor, after: torch.Tensor) -> float | None:
    """Mean absolute difference, divided by the standard deviation of the values after; None where that is 0."""
    spread = float(after.std(correction=0))
    return float((after - before).abs().mean()) / spread if spread else None
