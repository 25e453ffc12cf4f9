"""The passes of a trace: one for each batch, and what all of them have given together."""

from typing import Any

import numpy as np
import torch

from netbridge.common.batches import length
from netbridge.common.nested_tensors import first_tensor, map_tensors
from netbridge.recording.record import Record
from netbridge.recording.recorder import Keeper, Recorder, array


class Passes:
    """The passes of a trace: what each batch gives, and all of them together.

    tracer   how the network is observed
    kinds    which indices are measured
    keep     whether to keep the feature maps
    outputs  whether to keep what the network returns
    on_bad   "raise" or "nan", where an index is not defined
    """

    def __init__(self, tracer, kinds: tuple[str, ...], keep: bool, outputs: bool, on_bad: str):
        self.tracer, self.keep, self.outputs, self.on_bad = tracer, keep, outputs, on_bad
        self.recorder: Any = (Keeper if keep else Recorder)(kinds)
        self.rows: dict[str, list] = {kind: [] for kind in kinds}
        self.sizes: list = []
        self.kept: list = []
        self.results: list = []
        self.done = 0

    def add(self, batch) -> None:
        """Send one batch through the network, and note what it gives."""
        output = self.run(batch)
        images, seen = length(batch), len(self.recorder.state_norms)
        if seen != images:
            raise ValueError(f"`net` has states of {seen} samples for {images} images: their first axis is another.")
        for kind, rows in self.rows.items():
            rows.append(self.indices(kind))
        self.sizes.append(self.recorder.step_sizes)
        if self.outputs:
            self.results.append(output_of(output, images))
        if self.keep:
            self.kept.append(self.recorder.arrays_of_pass())
        self.done += images

    def run(self, batch):
        """One pass, and another one with care where norms came near the limits of their precision.

        The network gets a copy, because it may change what it is given (`x += f(x)`). Returns what it returned.
        """
        recorder = self.recorder
        recorder.begin()
        output = self.tracer(map_tensors(batch, torch.clone), recorder)
        if not recorder.collect() and not recorder.careful:
            recorder.be_careful()
            recorder.begin()
            output = self.tracer(map_tensors(batch, torch.clone), recorder)
            recorder.collect()
        return output

    def indices(self, kind: str) -> np.ndarray:
        """The indices of this batch; where one is not defined, NaN or an error that names image and block."""
        recorder, names = self.recorder, self.tracer.places.names
        nsi = recorder.indices(kind)
        wrong = ~np.isfinite(nsi)
        wrong[:, [k not in recorder.above[kind] for k in sorted(recorder.below)]] = False  # no increment across shapes
        if wrong.any() and self.on_bad == "raise":
            image, block = (int(i) for i in np.argwhere(wrong)[0])
            state = float(recorder.state_norms[image, block])
            cause = "its state is zero, so that an index relative to it is not defined" if state == 0 else "not finite"
            raise ValueError(
                f'`net` at image {self.done + image}, block {names[block]!r}: {cause}. With on_bad="nan" such images '
                "are NaN and the others measured."
            )
        return np.where(wrong, np.nan, nsi)

    def records(self) -> list[Record]:
        """A record of each kind, of all batches."""
        places, sizes = self.tracer.places, np.concatenate(self.sizes)
        returned = np.concatenate(self.results) if self.outputs else None
        return [
            Record(
                np.concatenate(rows),
                places.stage,
                places.first,
                places.names,
                kind,
                sizes,
                returned,
                tuple(self.tracer.notes),
            )
            for kind, rows in self.rows.items()
        ]


def output_of(output, images: int) -> np.ndarray:
    tensor = first_tensor(output)
    if tensor is None or tensor.shape[:1] != (images,):
        found = type(output).__name__ if tensor is None else f"a tensor of shape {tuple(tensor.shape)}"
        raise ValueError(f"`outputs` = True needs a network that returns a tensor (N, ...); it returned {found}.")
    return array(tensor)
