"""The numbers of a Faster R-CNN, as data: those of MMDetection's schedule, and smaller ones for small pictures."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a detector looks for and how; the defaults are MMDetection's for Faster R-CNN with a pyramid on COCO.

    features           channels of the pyramid (256)
    hidden             units of the two layers behind a box's features (1024)
    scale              side of a square anchor in strides of its level (8)
    ratios             height over width of the anchors (1/2, 1, 2)
    canonical          boxes of this side, in pixels, take their features from the third level (224)
    anchor_samples     anchors per picture on which the loss of proposals is taken (256), at most half of them objects'
    anchor_overlaps    below the first, an anchor is background; from the second on, it stands for an object (0.3, 0.7)
    best               proposals of each level that enter the suppression, in training and in tests (2000, 1000)
    proposals          proposals that leave it per picture, in training and in tests (1000, 1000)
    proposal_overlap   of two proposals that overlap more, one goes (0.7)
    box_samples        proposals per picture on which the loss of boxes is taken (512), at most a quarter of objects
    box_overlap        from this overlap on, a proposal stands for an object (0.5)
    spread             what the four numbers of a box's correction are divided by (0.1, 0.1, 0.2, 0.2)
    cells              a box's features are maps of cells x cells (7)
    score              detections below this score are dropped (0.05)
    overlap            of two detections of a class that overlap more, one goes (0.5)
    most               detections kept per picture (100)

    >>> from netbridge import detect
    >>> detect.Settings().features, detect.SMALL.features
    (256, 48)
    """

    features: int = 256
    hidden: int = 1024
    scale: float = 8.0
    ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    canonical: float = 224.0
    anchor_samples: int = 256
    anchor_overlaps: tuple[float, float] = (0.3, 0.7)
    best: tuple[int, int] = (2000, 1000)
    proposals: tuple[int, int] = (1000, 1000)
    proposal_overlap: float = 0.7
    box_samples: int = 512
    box_overlap: float = 0.5
    spread: tuple[float, float, float, float] = (0.1, 0.1, 0.2, 0.2)
    cells: int = 7
    score: float = 0.05
    overlap: float = 0.5
    most: int = 100

    def __post_init__(self):
        for name in ("features", "hidden", "anchor_samples", "box_samples", "cells", "most"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)!r}.")
        shares = (*self.anchor_overlaps, self.proposal_overlap, self.box_overlap, self.score, self.overlap)
        if not all(0 <= share <= 1 for share in shares) or self.anchor_overlaps[0] > self.anchor_overlaps[1]:
            raise ValueError(f"overlaps and `score` must be from 0 to 1 and `anchor_overlaps` ascend, got {shares}.")

    def as_json(self) -> dict:
        return dataclasses.asdict(self)


COCO = Settings()
SMALL = Settings(  # for pictures of about 128 pixels with objects of 16 to 60
    features=48,
    hidden=128,
    scale=4.0,
    canonical=64.0,
    anchor_samples=128,
    best=(200, 100),
    proposals=(100, 50),
    box_samples=64,
)
