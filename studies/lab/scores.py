"""What a trained network scored: one small JSON file per network, found again by what determines the network."""

import dataclasses
import json
from pathlib import Path
from typing import ClassVar, Self

import torch

from netbridge.files import replacing
from studies.lab import jobs
from studies.lab.results import choose_current, source

FORMAT = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """What a network scored on the test set after its last epoch; a study adds fields of its own.

    specification, recipe  everything that determines the network; the recipe in full
    test_errors, test_images, test_loss  its score on the test set
    parameters  how many numbers were trained
    log         one record per epoch, as training wrote it
    made        seconds, threads, device, version of torch, and what `results.source` gives: which code made it
    """

    study: ClassVar[str]  # whose results these are
    tuples: ClassVar[tuple[str, ...]] = ()  # fields that are tuples; JSON keeps them as lists

    specification: dict
    recipe: dict
    test_errors: int
    test_images: int
    test_loss: float
    parameters: int
    log: list
    made: dict = dataclasses.field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The accuracy on the test set, in per cent."""
        return 100.0 * (self.test_images - self.test_errors) / self.test_images

    @property
    def seed(self) -> int:
        return self.specification["seed"]

    def __str__(self):
        return f"{self.accuracy:.2f} % on the test set, {self.made['seconds']:.0f} s of training."

    def write(self, path: Path) -> Path:
        """Write the file, one line per field; whoever reads it sees all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"format": FORMAT, **dataclasses.asdict(self)}
        lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in record.items()]
        with replacing(path) as unfinished:
            unfinished.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return path

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; the study ends with a line that names it where it is damaged."""
        try:
            record = json.loads(path.read_text())
            if record.pop("format") != FORMAT:
                raise ValueError(f"another format than {FORMAT}")
            tuples = {key: None if record[key] is None else tuple(record[key]) for key in cls.tuples}
            return cls(**record | tuples)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path}: damaged, or no result of {cls.study} ({error}). Delete it to train anew."
            raise SystemExit(message) from None

    @classmethod
    def find(cls, stem: str, specification: dict, recipe, folders) -> Self | None:
        """The result of exactly this network in the first of the folders that has one; None where none has.

        One that today's code has measured goes before others.
        """
        every = []
        for folder in folders:
            path = Path(folder) / f"{stem}.json"
            if not path.is_file():
                continue
            result = cls.read(path)
            if result.specification != specification or not jobs.same_recipe(result.recipe, recipe):
                message = f"{path}: holds the result of another network than its name says. Delete it to train anew."
                raise SystemExit(message)
            every.append(result)
        return choose_current(every)


def score_of(net, data, specification: dict, log: Path, rooms: tuple[str, ...] = ()) -> dict:
    """The fields of a `Score`, from a network whose training is finished and the log of that training.

    rooms  what its measurement goes through beside what every one does, see `results.source`
    """
    head, *records = map(json.loads, log.read_text().splitlines())
    return {
        "specification": specification,
        "recipe": head["recipe"],
        "test_errors": net.about["test_errors"],
        "test_images": len(data.test_labels),
        "test_loss": net.about["test_loss"],
        "parameters": sum(p.numel() for p in net.parameters()),
        "log": records,
        "made": {
            "seconds": net.about["seconds"],
            "threads": torch.get_num_threads(),
            "device": head["device"],
            "torch": head["torch"],
            **source(measured=rooms),
        },
    }


def remove_training(path: Path) -> None:
    """Delete a trained network, its log and the state from which its training would go on."""
    for ending in (".safetensors", ".jsonl", ".resume"):
        path.with_suffix(ending).unlink(missing_ok=True)
