"""The deep networks that come with the repository, for claims that a stage of two counted blocks cannot decide."""

import dataclasses

from netbridge import data as datasets
from studies.lab import networks

USED = "digits"  # its deep networks serve where those of a data set do not come along


@dataclasses.dataclass(frozen=True)
class Deep:
    """Networks with nine blocks a stage, and the images that they are shown.

    subjects  the networks
    data      what they were trained on, perhaps not what the study is about
    """

    subjects: list[networks.Subject]
    data: datasets.Dataset

    def __str__(self):
        depths = ", ".join(f"ResNet-{depth}" for depth in sorted({one.depth for one in self.subjects}))
        return f"{len(self.subjects)} {depths} of {self.data.name}"


def deep_networks(data) -> Deep | None:
    """Those of a data set, or those of the digits in their place; None where neither come along."""
    for name in (data.name, USED):
        if paths := networks.shipped_files(f"{name}-deep"):
            images = data if data.name == name else datasets.load(name)
            return Deep(networks.name_subjects([networks.read_subject(path) for path in paths]), images)
    return None
