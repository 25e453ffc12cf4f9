"""Region proposals (Ren et al., Faster R-CNN, 2015): where in a picture is something, whatever it is?"""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.detect import boxes as geometry
from netbridge.detect.anchors import anchor_grid
from netbridge.detect.matching import match, sample
from netbridge.detect.scenes import Truth
from netbridge.detect.settings import Settings
from netbridge.detect.suppression import nms_within


class ProposalHead(nn.Module):
    """One convolution over every level of the pyramid; for each anchor a score and the way to a box.

    settings  numbers of the detector
    strides   pixels between two positions of each level
    """

    def __init__(self, settings: Settings, strides: list[int]):
        super().__init__()
        width, shapes = settings.features, len(settings.ratios)
        self.settings, self.strides = settings, strides
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.score = nn.Conv2d(width, shapes, 1)
        self.shift = nn.Conv2d(width, 4 * shapes, 1)
        for name, values in self.named_parameters():
            nn.init.zeros_(values) if name.endswith("bias") else nn.init.normal_(values, std=0.01)

    def forward(self, pyramid: list[torch.Tensor]):
        """(anchors (A, 4), levels (A,), scores (N, A), shifts (N, A, 4)) over all levels, in float32."""
        anchors, levels, scores, shifts = [], [], [], []
        s = self.settings
        for number, (maps, stride) in enumerate(zip(pyramid, self.strides, strict=True)):
            hidden = F.relu(self.conv(maps))
            count, _, height, width = maps.shape
            anchors.append(anchor_grid(height, width, stride, s.scale, s.ratios, maps.device))
            levels.append(torch.full((len(anchors[-1]),), number, device=maps.device))
            scores.append(self.score(hidden).permute(0, 2, 3, 1).reshape(count, -1))
            numbers = self.shift(hidden).unflatten(1, (-1, 4))  # (N, shapes, 4, H, W)
            shifts.append(numbers.permute(0, 3, 4, 1, 2).reshape(count, -1, 4))
        return torch.cat(anchors), torch.cat(levels), torch.cat(scores, 1).float(), torch.cat(shifts, 1).float()

    @torch.no_grad()
    def propose(self, anchors, levels, scores, shifts, sizes, training: bool) -> list[torch.Tensor]:
        """The proposals of every picture, (n, 4): the best of each level, cut off at the edges, suppressed."""
        s = self.settings
        before, after = s.best[0 if training else 1], s.proposals[0 if training else 1]
        found = []
        for own_scores, own_shifts, size in zip(scores, shifts, sizes, strict=True):
            best = []
            for level in range(len(self.strides)):
                members = (levels == level).nonzero()[:, 0]
                order = own_scores[members].sort(descending=True, stable=True).indices
                best.append(members[order[:before]])
            chosen = torch.cat(best)
            boxes = geometry.within(geometry.decode(anchors[chosen], own_shifts[chosen]), size)
            real = ((boxes[:, 2:] - boxes[:, :2]) > 0).all(1)
            boxes, chosen = boxes[real], chosen[real]
            kept = nms_within(boxes, own_scores[chosen], levels[chosen], s.proposal_overlap, after)
            found.append(boxes[kept])
        return found

    def losses(self, anchors, scores, shifts, truths: list[Truth], chances) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss of the scores, loss of the shifts), means over the pictures; each picture's over its sample."""
        s = self.settings
        total = [scores.new_zeros(()), scores.new_zeros(())]
        low, high = s.anchor_overlaps
        for own_scores, own_shifts, truth, chance in zip(scores, shifts, truths, chances, strict=True):
            matches = match(anchors, truth.boxes, truth.crowds, high, low, rescue=True)
            chosen = sample(matches, s.anchor_samples, 0.5, chance)
            objects = chosen[matches[chosen] >= 0]
            wanted = geometry.encode(anchors[objects], truth.boxes[matches[objects]])
            count = max(len(chosen), 1)
            labels = (matches[chosen] >= 0).to(own_scores.dtype)
            pairs = (
                F.binary_cross_entropy_with_logits(own_scores[chosen], labels, reduction="sum"),
                (own_shifts[objects] - wanted).abs().sum(),
            )
            total = [sum_ + part / count for sum_, part in zip(total, pairs, strict=True)]
        return total[0] / len(truths), total[1] / len(truths)
