"""What a trace leaves behind: one stiffness index per image and block, and where each block stands."""

import contextlib
import dataclasses
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import odelab
from netbridge.files import whole

SLOPE, INCREMENT = "slope", "increment"


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """`nsi` (N, T) over images and blocks; `stage`, `first` (T,) and `names` place the blocks.

    `of` = "slope": ||f(x_t)|| / ||x_t|| with the branch f before its gate and the final projection; "increment":
    ||x_{t+1} - x_t|| / ||x_t|| as Eq. 4 of Understanding Self-attention Mechanism via Dynamical System Perspective is
    printed, NaN where a block changes the shape. The first block of every stage is not counted (Section 2.2).
    """

    nsi: np.ndarray
    stage: np.ndarray
    first: np.ndarray
    names: tuple[str, ...]
    of: str

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
        for name, value in (("nsi", nsi), ("stage", stage), ("first", first), ("names", names)):
            object.__setattr__(self, name, value)

    def __len__(self):
        return len(self.nsi)

    def __repr__(self):
        images, blocks = self.nsi.shape
        return f"Record({images} images, {blocks} blocks in {len(np.unique(self.stage))} stages, of={self.of!r})"

    def counted(self) -> "Record":
        """Without the first block of every stage."""
        kept = ~self.first
        if not kept.any():
            raise ValueError(f"every stage has one block only ({list(self.names)}), and the first is not counted.")
        names = [name for name, keep in zip(self.names, kept, strict=True) if keep]
        return Record(self.nsi[:, kept], self.stage[kept], self.first[kept], tuple(names), self.of)

    def tns(self, mu: str = "sample") -> np.ndarray:
        """The exact total neural stiffness of every image, (N,); see `odelab.tns`. The paper's number is its mean."""
        counted = self.counted()
        return odelab.tns(counted.nsi, counted.stage, mu)

    def delta(self, m1, m2, mu: str = "sample"):
        """The share of images that are stiff to the degree (m1, m2), Eq. 5; see `odelab.delta`."""
        counted = self.counted()
        return odelab.delta(counted.nsi, counted.stage, m1, m2, mu)

    def proportion(self, m1, m2, mu: str = "sample"):
        """The expected share of counted blocks stiff to that degree; see `odelab.stiffness_proportion`."""
        counted = self.counted()
        return odelab.stiffness_proportion(counted.nsi, counted.stage, m1, m2, mu)

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
        return dataclasses.replace(head, nsi=np.concatenate([record.nsi for record in records]))

    def gathered(self) -> "Record":
        """The images of all processes of `torch.distributed`, by rank; this record where there is one process only."""
        from torch import distributed

        if not (distributed.is_available() and distributed.is_initialized()):
            return self
        records: list = [None] * distributed.get_world_size()
        distributed.all_gather_object(records, self)
        return Record.merge(records)

    def save(self, path) -> Path:
        """Write an .npz file: beside its place first, then renamed."""
        path = Path(path)
        with whole(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **{**dataclasses.asdict(self), "names": np.array(self.names, dtype=str)})
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
                fields = {field.name: file[field.name] for field in dataclasses.fields(cls)}
            except Exception as error:  # whatever the readers of zip archives and arrays raise on damage
                raise ValueError(f"{path}: damaged, or no record of a trace ({error}).") from None
        return cls(**{**fields, "names": tuple(str(n) for n in fields["names"]), "of": str(fields["of"])})
