"""One hypothesis of a theorem, measured: its value, the threshold it was held against, and what failing means."""

import dataclasses
from typing import Any

import numpy as np

from odelab.arrays import to_numpy

RELATIONS = {
    "<=": lambda value, threshold: value <= threshold,
    ">=": lambda value, threshold: value >= threshold,
    "<": lambda value, threshold: value < threshold,
    ">": lambda value, threshold: value > threshold,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Premise:
    """`measured` `relation` `threshold`, with the `value` found and whether it `holds`; arrays (...,) for a batch."""

    name: str
    measured: str
    value: Any
    relation: str
    threshold: float
    otherwise: str  # what follows where it does not hold
    needed: bool = True  # False: the paper states it, the corrected theorem does without
    holds: Any = None

    def __post_init__(self):
        if self.holds is None:
            object.__setattr__(self, "holds", RELATIONS[self.relation](self.value, self.threshold))

    @property
    def sentence(self) -> str:
        """The verdict in words; of a batch, how many systems it holds for."""
        claim = f"{self.name}: {self.measured} {self.relation} {self.threshold:.2g}"
        if np.ndim(self.holds) > 0:
            holds = to_numpy(self.holds)
            return f"{claim} holds for {int(holds.sum())} of {holds.size} systems; elsewhere {self.otherwise}."
        if self.holds:
            return f"{claim} holds, the value is {self.value:.3g}."
        return f"{claim} fails, the value is {self.value:.3g}: {self.otherwise}."
