"""Charts that the page draws itself, from numbers of the record: they follow the switch, and points name their network.

A reading is a tuple of the words that the page's switch has, such as ("slope", "sample"); an index that needs one of
them only, such as a scale, has a shorter tuple. `script.js` draws what is collected here.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

Interval = tuple[float, float, float]  # value, low, high; the ends are NaN where there is no interval
Reading = tuple[str, ...]


def key(reading: Reading) -> str:
    """A reading as the page knows it."""
    return " ".join(reading)


@dataclasses.dataclass(frozen=True)
class Point:
    """A network as a point.

    group   what it is coloured and averaged by, such as its controller
    name    what a reader is told who points at it
    source  the file it was read from, or ""
    height  its place on the vertical axis, such as the accuracy
    values  its place on the horizontal axis, by quantity and reading
    """

    group: str
    name: str
    source: str
    height: Interval
    values: Mapping[str, Mapping[Reading, Interval]]


@dataclasses.dataclass(frozen=True)
class NetworksChart:
    """Networks by group, and against a number such as the accuracy: two panels with the same points.

    points    the networks
    colours   of each group
    height    what the vertical axis of the second panel shows
    baseline  the group that others are compared with, drawn as a dashed line; "" for none
    notes     a sentence by quantity and reading, such as the correlation
    """

    kind: ClassVar[str] = "networks"
    points: Sequence[Point]
    colours: Mapping[str, str]
    height: str
    baseline: str = ""
    notes: Mapping[str, Mapping[Reading, str]] = dataclasses.field(default_factory=dict)

    def data(self) -> dict:
        return {
            "kind": self.kind,
            "colours": dict(self.colours),
            "height": self.height,
            "baseline": self.baseline,
            "notes": {what: {key(r): words for r, words in by.items()} for what, by in self.notes.items()},
            "points": [
                {
                    "group": one.group,
                    "name": one.name,
                    "source": one.source,
                    "height": rounded(one.height),
                    "values": {what: {key(r): rounded(x) for r, x in by.items()} for what, by in one.values.items()},
                }
                for one in self.points
            ],
        }

    def rows(self) -> Iterator[dict]:
        """A row per network, quantity and reading, as CSV."""
        for one in self.points:
            for what, by in one.values.items():
                for reading, (value, low, high) in by.items():
                    about = {"network": one.name, "group": one.group, self.height: one.height[0], "quantity": what}
                    yield about | {"reading": key(reading), "value": value, "low": low, "high": high}


@dataclasses.dataclass(frozen=True)
class SurfaceChart:
    """Shares over two degrees M1 and M2, per group, with a slider for each degree.

    m1, m2    the degrees by reading, at equal distances
    surfaces  the shares, (M2, M1), by what they are shares of, reading and group
    colours   of each group
    """

    kind: ClassVar[str] = "surface"
    m1: Mapping[Reading, np.ndarray]
    m2: Mapping[Reading, np.ndarray]
    surfaces: Mapping[str, Mapping[Reading, Mapping[str, np.ndarray]]]
    colours: Mapping[str, str]

    def data(self) -> dict:
        """The shares go as one byte each, in 255ths: the page shows whole per cents."""
        return {
            "kind": self.kind,
            "colours": dict(self.colours),
            "m1": {key(r): [len(x), round(float(x[-1]), 4)] for r, x in self.m1.items()},
            "m2": {key(r): [len(x), round(float(x[-1]), 4)] for r, x in self.m2.items()},
            "surfaces": {
                what: {key(r): {group: packed(z) for group, z in groups.items()} for r, groups in by.items()}
                for what, by in self.surfaces.items()
            },
        }

    def rows(self) -> Iterator[dict]:
        """A row per point of a surface, as CSV."""
        for what, by in self.surfaces.items():
            for reading, groups in by.items():
                for group, shares in groups.items():
                    for (i, j), share in np.ndenumerate(shares):
                        degrees = {"M1": f"{self.m1[reading][j]:.4g}", "M2": f"{self.m2[reading][i]:.4g}"}
                        about = {"share of": what, "reading": key(reading), "group": group}
                        yield about | degrees | {"share": f"{share:.4g}"}


@dataclasses.dataclass(frozen=True)
class Line:
    """What one network has at every block.

    group, name  as of a `Point`
    values       by reading, (images + 1, blocks): the mean over all images first, then single images
    """

    group: str
    name: str
    values: Mapping[Reading, np.ndarray]


@dataclasses.dataclass(frozen=True)
class DepthChart:
    """A number at every block, a line per network, with a slider for single images.

    lines    the networks
    first    which blocks open a stage: they are hollow and not counted, and lines break before them
    colours  of each group
    label    what the vertical axis shows
    """

    kind: ClassVar[str] = "depth"
    lines: Sequence[Line]
    first: Sequence[bool]
    colours: Mapping[str, str]
    label: str

    def data(self) -> dict:
        return {
            "kind": self.kind,
            "colours": dict(self.colours),
            "label": self.label,
            "first": [bool(one) for one in self.first],
            "lines": [
                {
                    "group": one.group,
                    "name": one.name,
                    "values": {key(r): [rounded(row) for row in x] for r, x in one.values.items()},
                }
                for one in self.lines
            ],
        }

    def rows(self) -> Iterator[dict]:
        """A row per network, reading, image and block, as CSV."""
        for one in self.lines:
            for reading, values in one.values.items():
                for (image, block), value in np.ndenumerate(values):
                    about = {"network": one.name, "reading": key(reading), "image": image - 1 if image else "mean"}
                    yield about | {"block": block + 1, "value": f"{value:.4g}"}


def rounded(values) -> list[float]:
    """Numbers with four significant digits."""
    return [float(f"{value:.4g}") for value in values]


def packed(shares: np.ndarray) -> str:
    """Shares between 0 and 1 as bytes in base 64, row after row."""
    return base64.b64encode(np.round(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8).tobytes()).decode()
