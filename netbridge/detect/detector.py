"""Faster R-CNN over one of our residual networks: the backbone is the same run of the solver as a classifier's."""

import json

import torch
from torch import nn

from netbridge.detect.heads import BoxHead, Detections
from netbridge.detect.pooling import pool_boxes
from netbridge.detect.proposals import ProposalHead
from netbridge.detect.pyramid import FeaturePyramid
from netbridge.detect.scenes import Truth
from netbridge.detect.settings import COCO, Settings
from netbridge.model.network import Network

FIRST_STRIDES = {"imagenet": 4, "cifar-pooled": 2, "cifar": 1}  # of the stem


class Detector(nn.Module):
    """Ren, He, Girshick and Sun, Faster R-CNN, 2015, with the feature pyramid of Lin et al. 2017, in plain torch.

    `nb.trace(detector, images)` measures the backbone within the detector, `nb.trace(detector.backbone, images)` alone:
    the same numbers.

    backbone       a `nb.Network` of feature maps; its head is taken off, since nothing uses it here
    classes        the classes, without the background: a number, or their names
    settings       a `Settings`; default: MMDetection's for COCO
    frozen_stages  the stem and so many stages keep their weights; 0: all are trained. Default 1, as in MMDetection
    frozen_norms   all batch normalisations of the backbone, a controller's among them, use their running statistics in
                   training, too. Default True, for a backbone that was trained before; False for a fresh one

    Call it with images (N, 3, H, W), normalised; H and W are multiples of the coarsest stride, or are cut off. It
    returns a list of `Detections` (boxes, scores, labels), one per picture; with `truths` a dictionary of the four
    losses and, as "right", the share of sampled proposals whose class is right.

    >>> import torch, netbridge as nb
    >>> from netbridge import detect
    >>> body = nb.resnet(8, stem="imagenet", widths=(8, 8, 16), controller="se")
    >>> net = detect.Detector(body, classes=3, settings=detect.SMALL, frozen_stages=0, frozen_norms=False).eval()
    >>> images = torch.rand(2, 3, 64, 64)
    >>> with torch.no_grad():
    ...     len(net(images))
    2
    >>> nb.trace(net, images).nsi.shape
    (2, 3)
    """

    def __init__(
        self,
        backbone: Network,
        classes,
        settings: Settings = COCO,
        frozen_stages: int = 1,
        frozen_norms: bool = True,
    ):
        super().__init__()
        check_backbone(backbone, frozen_stages)
        self.names = tuple(classes) if not isinstance(classes, int) else tuple(map(str, range(classes)))
        if not self.names:
            raise ValueError(f"`classes` must be at least one, got {classes!r}.")
        config = backbone.config
        expansion = 4 if config["bottleneck"] else 1
        channels = [width * expansion for width in config["widths"]]
        first = FIRST_STRIDES[config["stem"]]
        self.strides = [first * 2**k for k in range(len(channels) + 1)]
        self.settings, self.frozen_stages, self.frozen_norms = settings, frozen_stages, frozen_norms
        backbone.head = nn.Identity()
        self.backbone = backbone
        self.pyramid = FeaturePyramid(channels, settings.features)
        self.proposer = ProposalHead(settings, self.strides)
        self.head = BoxHead(settings, len(self.names))
        self.normalisation: dict | None = None
        self.about: dict = {}
        for part in self.frozen:
            part.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True):
        """As of any module, but frozen normalisations stay in evaluation mode."""
        super().train(mode)
        for part in [self.backbone] if self.frozen_norms else self.frozen:
            for module in part.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    @property
    def frozen(self) -> list[nn.Module]:
        """The parts of the backbone that keep their weights."""
        return [self.backbone.stem, *self.backbone.stages[: self.frozen_stages]] if self.frozen_stages else []

    def features(self, images: torch.Tensor) -> list[torch.Tensor]:
        """The outputs of the backbone's stages, fine to coarse."""
        self.backbone.check_images(images)
        x, found = self.backbone.stem(images), []
        for stage in self.backbone.stages:
            x = stage(x)
            found.append(x)
        return found

    def forward(
        self,
        images: torch.Tensor,
        truths: list[Truth] | None = None,
        chances: list[torch.Generator] | None = None,
        sizes: list[tuple[int, int]] | None = None,
    ) -> list[Detections] | dict[str, torch.Tensor]:
        """Detections, or with `truths` the losses.

        truths   of each picture
        chances  of each picture, where the random numbers of its samples come from; None: seeds 0, 1, 2, ...
        sizes    (height, width) of each picture within the images, which may be padded; None: those of the truths, or
                 the whole image
        """
        if sizes is None:
            height, width = images.shape[2:]
            sizes = [truth.size for truth in truths] if truths else [(height, width)] * len(images)
        levels = self.pyramid(self.features(images))
        anchors, level, scores, shifts = self.proposer(levels)
        proposals = self.proposer.propose(anchors, level, scores, shifts, sizes, training=truths is not None)
        if truths is None:
            scores, shifts = self.head(self.box_features(levels, proposals))
            return self.head.detections(scores, shifts, proposals, sizes)
        chances = chances or [torch.Generator().manual_seed(k) for k in range(len(truths))]
        objectness, regions = self.proposer.losses(anchors, scores, shifts, truths, chances)
        samples = self.head.choose_samples(proposals, truths, chances)
        scores, shifts = self.head(self.box_features(levels, [one.boxes for one in samples]))
        classes, boxes, right = self.head.losses(scores, shifts, samples)
        return {"objectness": objectness, "regions": regions, "classes": classes, "boxes": boxes, "right": right}

    def box_features(self, levels, boxes) -> torch.Tensor:
        """Features of boxes; the topmost level, made for large anchors only, gives none."""
        s = self.settings
        halves = (torch.bfloat16, torch.float16)  # with too few digits for places
        precise = [maps.float() if maps.dtype in halves else maps for maps in levels[:-1]]
        return pool_boxes(precise, self.strides[:-1], boxes, s.canonical, s.cells)

    def extra_repr(self):
        """Everything that tells detectors apart and is no layer; a training compares it with that of an older file."""
        text = json.dumps(self.settings.as_json() | {"controllers": self.backbone.config["controllers"]})
        return f"{len(self.names)} classes, frozen {self.frozen_stages} {self.frozen_norms}, {text}"


def check_backbone(backbone, frozen_stages: int) -> None:
    if not isinstance(backbone, Network) or "stem" not in backbone.config or "bottleneck" not in backbone.config:
        raise TypeError(f"`backbone` must be a network of nb.resnet, got {type(backbone).__name__}.")
    if not backbone.config["post_activation"]:
        raise ValueError("`backbone` must have post_activation=True: others normalise their last maps in their head.")
    if not 0 <= frozen_stages <= len(backbone.stages):
        raise ValueError(f"`frozen_stages` must be from 0 to {len(backbone.stages)}, got {frozen_stages!r}.")
