"""Results of `step_control` on the disk: one small JSON file per network, found again by its whole specification."""

import dataclasses
import json
from pathlib import Path

from netbridge.files import whole
from studies.step_control.runs import ASIDE, Run

SHIPPED = Path(__file__).parent / "shipped"
FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Result:
    """What a network scored on the test set, and how stiff each of its blocks was on training images."""

    specification: dict
    recipe: dict  # in full
    test_errors: int
    test_images: int
    test_loss: float
    parameters: int
    nsi: tuple[float, ...]  # per block, the mean of ||f|| / ||x|| over `traced` training images
    traced: int
    log: list
    made: dict = dataclasses.field(default_factory=dict)  # seconds, threads, device, versions, commit

    @property
    def accuracy(self) -> float:
        """Per cent."""
        return 100.0 * (self.test_images - self.test_errors) / self.test_images

    @property
    def seed(self) -> int:
        return self.specification["seed"]


def write(result: Result, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as unfinished:
        unfinished.write_text(json.dumps({"format": FORMAT, **dataclasses.asdict(result)}, indent=1) + "\n")
    return path


def read(path: Path) -> Result:
    try:
        record = json.loads(path.read_text())
        if record.pop("format") != FORMAT:
            raise ValueError(f"another format than {FORMAT}")
        return Result(**{**record, "nsi": tuple(record["nsi"])})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SystemExit(f"{path}: damaged, or no result of step_control ({error}). Delete it to train anew.") from None


def find(run: Run, folders) -> Result | None:
    """The result of exactly this run in the first folder that has one."""
    for folder in folders:
        path = Path(folder) / f"{run.stem}.json"
        if not path.is_file():
            continue
        result = read(path)
        if result.specification != run.specification or not same_recipe(result.recipe, run.scale.recipe):
            raise SystemExit(f"{path}: holds the result of another run than its name says. Delete it to train anew.")
        return result
    return None


def note_divergence(run: Run, folder: Path, message: str) -> Path:
    """A training that came to nothing comes to nothing again: what is written here is not tried a second time."""
    path = folder / f"{run.stem}.diverged.txt"
    with whole(path) as unfinished:
        unfinished.write_text(message + "\n")
    return path


def divergence(run: Run, folder: Path) -> str | None:
    """How the training of this run ended without a result, if it did."""
    path = folder / f"{run.stem}.diverged.txt"
    return path.read_text().strip() if path.is_file() else None


def same_recipe(record: dict, recipe) -> bool:
    """Fields that have joined the recipes since are at their defaults, or the specification would say so."""
    now = json.loads(json.dumps(recipe.as_json()))
    return all(now.get(key) == value for key, value in record.items() if key not in ASIDE)
