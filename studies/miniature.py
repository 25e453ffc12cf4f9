"""Small made-up data in the official formats of ImageNet, COCO, CIFAR-100 and STL-10, to try things with (about 1 s).

`python -m studies.miniature imagenet --out small` makes `small/imagenet/archives`, `.../tree`, `.../shards`, the same
pictures in three layouts; `python -m studies.train --dataset imagenet --data-root small/imagenet/shards --depth 18
--size 64 --resize 72 --batch 16 --epochs 1 --recipe imagenet-256` trains on one of them. The pictures are noise tinted
by class, so accuracies on them say nothing about real images. `python -m studies.miniature coco` writes scenes of
shapes with their boxes, on which a detector can be trained.
"""

import dataclasses
from pathlib import Path

import tyro

from netbridge import data
from studies.lab.command import plain_errors, start
from studies.lab.results import Results

STUDY = "miniature"
FORMATS = ("imagenet", "coco", "cifar100", "stl10")


@dataclasses.dataclass
class Arguments:
    """Write small made-up data."""

    name: tyro.conf.Positional[str] = "imagenet"
    """imagenet, coco, cifar100 or stl10."""
    out: Path = Path("results/miniature")
    """The folder that receives a folder of that name; it is what `--data-root` takes."""
    classes: int = 8
    """How many classes are used."""
    each: int = 24
    """Pictures of each class to train on; half as many to test with."""
    height: int = 60
    """Height of ImageNet's pictures, in pixels; widths differ. COCO's are square, of 32 pixels at least."""
    seed: int = 0
    """The pictures are drawn from it."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, classes=2, each=3, height=16)
    if arguments.name not in FORMATS:
        raise SystemExit(f"studies.{STUDY}: the format must be one of {', '.join(FORMATS)}, got {arguments.name!r}.")
    with plain_errors(STUDY):
        sizes = (arguments.classes, arguments.each, arguments.height, arguments.seed)
        try:
            place = (
                scenes(arguments) if arguments.name == "coco" else data.miniature(arguments.name, arguments.out, *sizes)
            )
        except FileExistsError as error:
            raise ValueError(error) from None
    results = Results(STUDY, arguments)
    files = sorted(file for kind in ("*.t*ar*", "*.json") for file in place.rglob(kind) if file.is_file())
    rows = [{"file": str(file.relative_to(arguments.out)), "bytes": file.stat().st_size} for file in files]
    results.save_table("files", rows, f"Made-up pictures in the format of {arguments.name}")
    results.write_record()


def scenes(arguments) -> Path:
    """As many scenes for detectors as there would be pictures of the classes."""
    from netbridge import detect

    train = arguments.classes * arguments.each
    return detect.shapes(arguments.out, train, max(train // 2, 1), max(arguments.height, 32), arguments.seed)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
