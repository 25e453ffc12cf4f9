"""What a trace returns: one stiffness index per image and block, with the name and stage of every block."""

import contextlib
import dataclasses
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import odelab
from odelab.files import replacing
from odelab.files.saved import register, values_of
from odelab.results import Result

SLOPE, INCREMENT = "slope", "increment"


@dataclasses.dataclass
class Places:
    """Where the columns of a record stand: the name of each block, its stage, and whether it is the stage's first."""

    names: list[str] = dataclasses.field(default_factory=list)
    stage: list[int] = dataclasses.field(default_factory=list)
    first: list[bool] = dataclasses.field(default_factory=list)

    def add(self, name, stage, first):
        self.names.append(name)
        self.stage.append(stage)
        self.first.append(first)


@register
@dataclasses.dataclass(frozen=True, eq=False)
class Record(
    Result,
    kinds={
        "depth": "netbridge.figures:draw_depth",
        "images": "netbridge.figures:draw_images",
        "degrees": "netbridge.figures:draw_degrees",
        "step_sizes": "netbridge.figures:draw_step_sizes",
    },
):
    """The stiffness index (NSI) of every image at every residual block of one network, as `nb.trace` returns it.

    nsi         the indices, an array (N, T) of N images and T blocks. With of="slope" they are ||f(x_t)|| / ||x_t||, f
                being the branch before its step size and before the final activation; with of="increment" they are
                ||x_{t+1} - x_t|| / ||x_t||, Eq. 4 of Understanding Self-attention Mechanism via Dynamical System
                Perspective as it is printed, and NaN where a block changes the shape.
    stage       the number of the stage each block belongs to, (T,)
    first       True for the first block of every stage, (T,); these are not counted (Section 2.2 of the paper)
    names       the names of the blocks
    of          "slope" or "increment"
    step_sizes  the step size of every image at every block, averaged over channels and places, (N, T): 1 where nothing
                multiplies the branch, NaN where only the ends of a block could be seen; None in an older file
    outputs     what the network returned, (N, ...), where `trace` was asked for it with outputs=True, else None
    notes       what there is to say of how the network was read: each warning of the trace, and decisions that could
                be taken otherwise, with the argument of `nb.trace` that does so; `nb.explain` shows all of them

    `print` shows the mean, the least and the largest index of every block, and TNS.

    >>> import numpy as np, netbridge as nb
    >>> nsi = np.array([[0.5, 0.1, 0.4], [0.6, 0.3, 0.3]])
    >>> record = nb.Record(nsi, stage=[0, 0, 0], first=[True, False, False], names=("a", "b", "c"), of="slope")
    >>> record
    Record(2 images, 3 blocks in 1 stages, of='slope')
    >>> record.counted().names
    ('b', 'c')
    >>> record.tns().shape
    (2,)
    """

    nsi: np.ndarray
    stage: np.ndarray
    first: np.ndarray
    names: tuple[str, ...]
    of: str
    step_sizes: np.ndarray | None = None
    outputs: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        nsi, stage = np.asarray(self.nsi), np.asarray(self.stage)
        first, names = np.asarray(self.first, dtype=bool), tuple(self.names)
        if nsi.ndim != 2 or not nsi.shape[1:] == stage.shape == first.shape == (len(names),):
            raise ValueError(
                f"`nsi` must be (N, T) with T stages, T firsts and T names, got {nsi.shape}, {stage.shape}, "
                f"{first.shape} and {len(names)}."
            )
        if self.of not in (SLOPE, INCREMENT):
            raise ValueError(f"`of` must be {SLOPE!r} or {INCREMENT!r}, got {self.of!r}.")
        sizes = None if self.step_sizes is None else np.asarray(self.step_sizes)
        if sizes is not None and sizes.shape != nsi.shape:
            raise ValueError(f"`step_sizes` must be (N, T) as `nsi` is, {nsi.shape}, got {sizes.shape}.")
        outputs = None if self.outputs is None else np.asarray(self.outputs)
        if outputs is not None and outputs.shape[:1] != nsi.shape[:1]:
            raise ValueError(f"`outputs` must hold one entry per image, {len(nsi)}, got shape {outputs.shape}.")
        values = (nsi, stage, first, names, self.of, sizes, outputs, tuple(map(str, self.notes)))
        for field, value in zip(dataclasses.fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def __len__(self):
        return len(self.nsi)

    def __repr__(self):
        images, blocks = self.nsi.shape
        notes = f", {len(self.notes)} note{'s' * (len(self.notes) > 1)}" if self.notes else ""
        stages = len(np.unique(self.stage))
        return f"Record({images} images, {blocks} blocks in {stages} stages, of={self.of!r}{notes})"

    def __str__(self):
        return "\n".join([repr(self), *(self._line(k) for k in range(len(self.names))), f"  {self._total()}"])

    def _line(self, k) -> str:
        """One block: its index and step size over the images."""
        known = self.nsi[~np.isnan(self.nsi[:, k]), k]
        index = f"{known.mean():.3g} [{known.min():.3g}, {known.max():.3g}]" if len(known) else "not defined"
        size = "" if self.step_sizes is None else f"  step size {self.step_sizes[:, k].mean():.3g}"
        counted = "  (first of its stage, not counted)" if self.first[k] else ""
        return f"  {self.names[k]:{max(map(len, self.names))}s}  NSI {index}{size}{counted}"

    def _total(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TNS is 0 where no stage has two counted blocks
            try:
                total = self.tns()
            except ValueError as error:
                return f"no TNS: {error}"
        return f'TNS {np.nanmean(total):.3g}, mean over the images (mu="sample")'

    def counted(self) -> "Record":
        """The same record without the first block of every stage."""
        kept = ~self.first
        if not kept.any():
            raise ValueError(f"every stage has one block only ({list(self.names)}), and the first is not counted.")
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        sizes = None if self.step_sizes is None else self.step_sizes[:, kept]
        return Record(
            self.nsi[:, kept], self.stage[kept], self.first[kept], names, self.of, sizes, self.outputs, self.notes
        )

    def by_kind(self, kinds: int = 2) -> "Record":
        """The same record with each stage taken apart into its kinds of steps, each with a first step of its own.

        In a transformer attention and MLP alternate, and their indices differ by their nature: compared within a kind,
        only steps that are alike are.

        kinds   how many kinds follow one another in turn; 2
        """
        place = np.array([np.count_nonzero(self.stage[:k] == stage) for k, stage in enumerate(self.stage)], dtype=int)
        return dataclasses.replace(self, stage=kinds * self.stage + place % kinds, first=place < kinds)

    def tns(self, mu: str = "sample") -> np.ndarray:
        """The exact total neural stiffness of every image, (N,); see `odelab.tns`. The paper's number is its mean.

        mu      what a block's index is compared with: "sample", the image's own mean over the stage (the default), or
                "dataset", the mean over all images

        NaN for an image with an index that is not defined.
        """
        counted, good = self.counted(), self.defined()
        if mu == "sample" and max(np.bincount(counted.stage.astype(int))) == 1:
            warnings.warn(
                f"`tns` compares the counted blocks of a stage with their mean, and no stage of this record has two of "
                f'them ({len(counted.names)} counted in all): the result is 0. Take a deeper network, or mu="dataset".',
                stacklevel=2,
            )
        values = np.full(len(self), np.nan)
        values[good] = odelab.tns(counted.nsi[good], counted.stage, mu)
        return values

    def delta(self, m1, m2, mu: str = "sample"):
        """The share of images that are stiff to the degree (m1, m2), Eq. 5; see `odelab.delta`.

        m1, m2  the degree, numbers or arrays that broadcast
        mu      see `tns`
        """
        counted, good = self.counted(), self.defined()
        return odelab.delta(counted.nsi[good], counted.stage, m1, m2, mu)

    def proportion(self, m1, m2, mu: str = "sample"):
        """The expected share of counted blocks stiff to the degree (m1, m2); see `odelab.stiffness_proportion`.

        m1, m2  the degree, numbers or arrays that broadcast
        mu      see `tns`
        """
        counted, good = self.counted(), self.defined()
        return odelab.stiffness_proportion(counted.nsi[good], counted.stage, m1, m2, mu)

    def defined(self) -> np.ndarray:
        """Which images have an index at every counted block, (N,); all of them unless `on_bad` was "nan"."""
        good = ~np.isnan(self.counted().nsi).any(1)
        if not good.any():
            raise ValueError("no image of this record has an index at every counted block.")
        return good

    @classmethod
    def merge(cls, records: Iterable["Record"]) -> "Record":
        """The images of several records of one network as one record, in the order given."""
        records = list(records)
        if not records:
            raise ValueError("`records` is empty; give at least one record.")
        head = records[0]
        for other in records[1:]:
            if (other.names, other.of) != (head.names, head.of) or (other.stage != head.stage).any():
                raise ValueError(f"`records` must come from one network, measured alike; got {head} and {other}.")
        joined: dict[str, Any] = {}
        for field in ("nsi", "step_sizes", "outputs"):
            parts = [getattr(record, field) for record in records]
            joined[field] = None if any(part is None for part in parts) else np.concatenate(parts)
        return dataclasses.replace(head, **joined)

    def table(self):
        """A row for each image and block: stage, index, step size."""
        images, blocks = np.indices(self.nsi.shape)
        columns = {
            "image": images.ravel(),
            "block": np.array(self.names)[blocks.ravel()],
            "stage": self.stage[blocks.ravel()],
            "first": self.first[blocks.ravel()],
            "nsi": self.nsi.ravel(),
        }
        return columns if self.step_sizes is None else {**columns, "step_size": self.step_sizes.ravel()}

    def save(self, path) -> Path:
        """Write an .npz file atomically: to a temporary file in the same folder, which is then renamed."""
        path = Path(path)
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            fields = {name: value for name, value in vars(self).items() if value is not None}
            words = {name: np.array(fields[name], dtype=str) for name in ("names", "notes")}
            np.savez_compressed(file, **{**fields, **words})
        return path

    @classmethod
    def load(cls, path) -> "Record":
        """A record written by `save`; pickles are refused."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"`path` = {str(path)!r} is not a file.")
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(np.load(path, allow_pickle=False))
                fields = {
                    field.name: file[field.name]
                    for field in dataclasses.fields(cls)
                    if field.name in file or field.default is dataclasses.MISSING
                }
            except Exception as error:  # whatever the readers of zip archives and arrays raise on damage
                raise ValueError(f"{path}: damaged, or no record of a trace ({error}).") from None
        return cls(**{**fields, "names": tuple(str(n) for n in fields["names"]), "of": str(fields["of"])})


def parts_of(records: "Records") -> dict[str, Any]:
    """What a file keeps of several records: what they share once, and of each its kind, its indices and its notes."""
    each: dict[str, Any] = {"of": [one.of for one in records], "notes": [one.notes for one in records]}
    return values_of(records[0]) | each | {"nsi": np.stack([one.nsi for one in records])}


def records_of(of, notes, nsi, **shared) -> "Records":
    return Records(Record(nsi[k], of=of[k], notes=notes[k], **shared) for k in range(len(of)))


@register(fields=parts_of, made=records_of)
class Records(Result, tuple, kinds={"depth": "netbridge.figures:draw_indices"}):
    """The records of several kinds of index, all measured in one forward pass: `nb.trace(net, images, of=(...))`.

    A tuple in the order that was asked for, and by name: `records["slope"]`. What is the same for every kind, `names`,
    `stage`, `first`, `step_sizes` and `outputs`, can be read from it as from a `Record`.

    iterable    the records, of different kinds

    >>> import torch, netbridge as nb
    >>> slope, increment = both = nb.trace(nb.resnet(8), torch.ones(2, 3, 8, 8), of=("slope", "increment"))
    >>> both["increment"] is increment, both.step_sizes.shape
    (True, (2, 3))
    """

    def __getitem__(self, place):
        if not isinstance(place, str):
            return super().__getitem__(place)
        for record in self:
            if record.of == place:
                return record
        raise KeyError(f"{place!r}; this trace holds {[record.of for record in self]}")

    stage = property(lambda self: self[0].stage, doc="the number of the stage each block belongs to, (T,)")
    first = property(lambda self: self[0].first, doc="True for the first block of every stage, (T,)")
    names = property(lambda self: self[0].names, doc="the names of the blocks")
    step_sizes = property(lambda self: self[0].step_sizes, doc="the step size of every image at every block, (N, T)")
    outputs = property(lambda self: self[0].outputs, doc="what the network returned, or None")

    def table(self):
        """A row for each image and block, with a column for each kind of index."""
        columns = self[0].table()
        del columns["nsi"]
        return columns | {f"nsi_{record.of}": record.nsi.ravel() for record in self}

    def __str__(self):
        return "\n".join(map(str, self))

    @classmethod
    def merge(cls, parts: Iterable["Records"]) -> "Records":
        """The images of several traces of one network as one, in the order given."""
        return cls(Record.merge(records) for records in zip(*parts, strict=True))
