"""What is in a proposal, and where exactly? Two layers over its features; their losses, and what they detect."""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.detect import boxes as geometry
from netbridge.detect.matching import match, sample
from netbridge.detect.scenes import Truth
from netbridge.detect.settings import Settings
from netbridge.detect.suppression import nms_within

OBJECTS = 0.25  # the largest share of objects in a sample of proposals


class Detections(NamedTuple):
    """What was found in one picture, the best first: boxes (n, 4), scores (n,), classes (n,)."""

    boxes: torch.Tensor
    scores: torch.Tensor
    labels: torch.Tensor


class Sampled(NamedTuple):
    """The proposals on which a loss is taken: boxes (n, 4), class of each (the last one is background), its object."""

    boxes: torch.Tensor
    labels: torch.Tensor
    objects: torch.Tensor


class BoxHead(nn.Module):
    """Scores of the classes and of the background, and for each class a correction of the box.

    settings  numbers of the detector
    classes   how many there are
    """

    def __init__(self, settings: Settings, classes: int):
        super().__init__()
        self.settings, self.classes = settings, classes
        self.first = nn.Linear(settings.features * settings.cells**2, settings.hidden)
        self.second = nn.Linear(settings.hidden, settings.hidden)
        self.score = nn.Linear(settings.hidden, classes + 1)
        self.shift = nn.Linear(settings.hidden, 4 * classes)
        for layer, deviation in ((self.score, 0.01), (self.shift, 0.001)):
            nn.init.normal_(layer.weight, std=deviation)
            nn.init.zeros_(layer.bias)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(scores (n, classes + 1), shifts (n, classes, 4)) of features (n, C, cells, cells), in float32."""
        hidden = F.relu(self.second(F.relu(self.first(features.flatten(1)))))
        return self.score(hidden).float(), self.shift(hidden).unflatten(1, (self.classes, 4)).float()

    def choose_samples(self, proposals: list[torch.Tensor], truths: list[Truth], chances) -> list[Sampled]:
        """Draw the sample of every picture's proposals, to which its objects' own boxes are added."""
        s, found = self.settings, []
        for own, truth, chance in zip(proposals, truths, chances, strict=True):
            boxes = torch.cat((truth.boxes, own))
            matches = match(boxes, truth.boxes, truth.crowds, s.box_overlap, s.box_overlap, rescue=False)
            chosen = sample(matches, s.box_samples, OBJECTS, chance)
            matches = matches[chosen]
            labels = torch.full_like(matches, self.classes)
            labels[matches >= 0] = truth.labels[matches[matches >= 0]]
            found.append(Sampled(boxes[chosen], labels, truth.boxes[matches[matches >= 0]]))
        return found

    def losses(self, scores, shifts, samples: list[Sampled]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(loss of the classes, loss of the corrections, share of right classes), each picture counting alike."""
        counts = [max(len(one.labels), 1) for one in samples]
        labels = torch.cat([one.labels for one in samples])
        weights = torch.cat(
            [scores.new_full((len(one.labels),), 1 / n) for one, n in zip(samples, counts, strict=True)]
        )
        objects = (labels < self.classes).nonzero()[:, 0]
        references = torch.cat([one.boxes for one in samples])[objects]
        wanted = geometry.encode(references, torch.cat([one.objects for one in samples]), self.settings.spread)
        apart = (shifts[objects, labels[objects]] - wanted).abs().sum(1)
        classes = F.cross_entropy(scores, labels, reduction="none")
        right = (scores.detach().argmax(1) == labels).float()
        classes, apart, right = (classes * weights).sum(), (apart * weights[objects]).sum(), (right * weights).sum()
        return classes / len(samples), apart / len(samples), right / len(samples)

    @torch.no_grad()
    def detections(self, scores, shifts, proposals: list[torch.Tensor], sizes) -> list[Detections]:
        """What is found in every picture: per class the boxes above the least score, suppressed; the best of all."""
        s, found = self.settings, []
        counts = [len(own) for own in proposals]
        for own, chances, numbers, size in zip(
            proposals, scores.softmax(1).split(counts), shifts.split(counts), sizes, strict=True
        ):
            row, label = (chances[:, :-1] > s.score).nonzero().unbind(1)
            boxes = geometry.within(geometry.decode(own[row], numbers[row, label], s.spread), size)
            real = ((boxes[:, 2:] - boxes[:, :2]) > 0).all(1)
            boxes, row, label = boxes[real], row[real], label[real]
            kept = nms_within(boxes, chances[row, label], label, s.overlap, s.most)
            found.append(Detections(boxes[kept], chances[row, label][kept], label[kept]))
        return found
