"""A network: a stem, stages that are runs of the solver, a head."""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.model import solve as run
from netbridge.model.stage import Stage


class Stem(nn.Module):
    """The first convolution; ImageNet's is 7x7 with two halvings. Before pre-activation blocks it stands alone."""

    def __init__(self, channels_in: int, width: int, imagenet: bool, post_activation: bool):
        super().__init__()
        kernel, stride = (7, 2) if imagenet else (3, 1)
        self.conv = nn.Conv2d(channels_in, width, kernel, stride, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(width) if post_activation else nn.Identity()
        self.pooled, self.post_activation = imagenet, post_activation

    def forward(self, x):
        x = self.bn(self.conv(x))
        if self.post_activation:
            x = torch.relu_(x)
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1) if self.pooled else x


class Head(nn.Module):
    """Global average and a linear map; after pre-activation blocks a normalisation and a ReLU come first."""

    def __init__(self, width: int, num_classes: int, post_activation: bool):
        super().__init__()
        self.bn = nn.Identity() if post_activation else nn.BatchNorm2d(width)
        self.fc = nn.Linear(width, num_classes)
        self.post_activation = post_activation

    def forward(self, x):
        if not self.post_activation:
            x = torch.relu_(self.bn(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Network(nn.Module):
    """`config` rebuilds it; `normalisation` (mean, std) and `about` travel with it through `nb.save` and `nb.load`."""

    def __init__(self, stem: nn.Module, stages: list[Stage], head: nn.Module, config: dict):
        super().__init__()
        self.stem = stem
        self.stages = nn.ModuleList(stages)
        self.head = head
        self.config = config
        self.normalisation: dict | None = None
        self.about: dict = {}
        self.replaced: tuple = ()  # what the last swap took away: a tuple, so that it is no submodule

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.ndim != 4 or x.shape[1] != self.stem.conv.in_channels:
            raise ValueError(
                f"`x` must be images (N, {self.stem.conv.in_channels}, height, width), got shape {tuple(x.shape)}."
            )
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x)

    @property
    def blocks(self) -> list:
        """All blocks in the order they act, whatever their stage."""
        return [block for stage in self.stages for block in stage.blocks]

    @property
    def block_names(self) -> list[str]:
        return [f"stages.{s}.blocks.{b}" for s, stage in enumerate(self.stages) for b in range(len(stage.blocks))]

    @contextlib.contextmanager
    def observed(self, record, carry=None, step=None):
        """Within, every step of a forward pass calls `record` as `odelab.core.integrate` does; yields what it carries.

        record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new) -> carry, where memory.stage is the stage's number
        and t the layer within it. A block that opens a stage is a step from its shortcut's output, u. Nothing is
        overwritten while a pass is observed, unless by a `step` of one's own (`solve.Observation`).
        """
        before = [stage.observation for stage in self.stages]
        observation = run.Observation(record, carry, step)
        for stage in self.stages:
            stage.observation = observation
        try:
            yield observation
        finally:
            for stage, old in zip(self.stages, before, strict=True):
                stage.observation = old

    def normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1] as this network was trained to see them."""
        if self.normalisation is None:
            return images
        mean, std = (images.new_tensor(self.normalisation[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
        return (images - mean) / std
