"""COCO (Lin et al., Microsoft COCO, ECCV 2014), or any data in its format, read from where it lies.

The annotations are read from their JSON; pictures stay in their folder or in the official zip and are decoded when they
are wanted.
"""

import collections
import dataclasses
import functools
import hashlib
import io
import json
import math
import os
import zipfile
from pathlib import Path

import torch

from netbridge.data.pictures import IMAGENET_MEAN, IMAGENET_STD, OnDisk, to_rgb
from netbridge.detect.scenes import Truth

TRAIN, TEST = "train2017", "val2017"
MADE_UP = "made up"  # what the description of a miniature begins with
LEAST = 1.0  # pixels: a box that is narrower or lower shows nothing


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The training or the test pictures.

    place        the folder of the pictures, or the zip that holds it
    images       as the annotations list them: each with id, file_name, width, height
    annotations  as they are in the file, which is what the evaluation reads
    truths       of each picture, at its own size
    """

    place: Path
    images: list[dict]
    annotations: list[dict]
    truths: list[Truth]

    def __len__(self):
        return len(self.images)

    def picture(self, number: int):
        """A picture, decoded and in RGB: a Pillow image."""
        from PIL import Image

        image = self.images[number]
        name, size = image["file_name"], (image["width"], image["height"])
        try:
            picture = to_rgb(Image.open(io.BytesIO(read(self.place, name))))
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(f"{self.place}, {name}: no picture that can be read ({error}).") from None
        if picture.size != size:
            raise ValueError(
                f"{self.place}, {name}: a picture of {picture.size[0]} x {picture.size[1]} pixels, but its annotations "
                f"are for {size[0]} x {size[1]}."
            )
        return picture

    def shapes(self) -> list[torch.Tensor]:
        """The numbers of the wide pictures, and those of the high ones."""
        wide = torch.tensor([truth.size[1] > truth.size[0] for truth in self.truths])
        return [wide.nonzero()[:, 0], (~wide).nonzero()[:, 0]]


@dataclasses.dataclass(frozen=True, eq=False)
class Coco(OnDisk):
    """Pictures with their objects, to train and to test a detector on; `detect.load` makes one.

    name         how logs and files call it
    train, test  a `Part` each
    categories   the numbers that the annotations give to the classes, which need not be contiguous
    names        the classes, in the same order
    short        pictures are resized until their shorter side is so many pixels (800)
    long         or the longer one so many, where it would be above (1333)
    multiple     images are padded to a multiple of this (32)
    mean, std    per channel, of pixels from 0 to 1; a detector sees (pixels - mean) / std

    >>> import tempfile
    >>> from netbridge import detect
    >>> small = detect.load(detect.shapes(tempfile.mkdtemp(), train=4, test=2), short=64)
    >>> small.name, small.names, small.categories, small.train_count
    ('coco-miniature', ('ellipse', 'rectangle', 'triangle'), (1, 3, 7), 4)
    """

    name: str
    train: Part
    test: Part
    categories: tuple[int, ...]
    names: tuple[str, ...]
    short: int = 800
    long: int = 1333
    multiple: int = 32
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def digest(self) -> str:
        """SHA-256 of the annotations and of how pictures are shown; the pictures themselves are not read."""
        parts = [[part.images, part.annotations] for part in (self.train, self.test)]
        text = json.dumps([parts, self.categories, self.short, self.long, self.multiple, self.mean, self.std])
        return hashlib.sha256(text.encode()).hexdigest()


def load(root, short: int = 800, long: int = 1333, multiple: int = 32, train: int | None = None, test=None) -> Coco:
    """Data in COCO's format, such as COCO 2017 itself.

    root      a folder with `annotations/instances_train2017.json` and `..._val2017.json`, and with the pictures in the
              folders `train2017` and `val2017` or in zips of these names
    short     see `Coco`
    long      see `Coco`
    multiple  see `Coco`
    train     take only the first so many training pictures; None: all
    test      the same for the test pictures

    Regions marked as crowds are neither objects nor background; boxes narrower or lower than a pixel are left out;
    pictures without objects are left out of training and stay in the test. Raises FileNotFoundError, or ValueError that
    names what is wrong with a file.

    >>> import tempfile
    >>> from netbridge import detect
    >>> small = detect.load(detect.shapes(tempfile.mkdtemp(), train=4, test=2), short=64)
    >>> small.test.picture(0).size, small.test.truths[0].size
    ((128, 128), (128, 128))
    """
    root = Path(root).expanduser()
    if short < 1 or long < short or multiple < 1:
        raise ValueError(f"`short` and `multiple` must be at least 1 and `long` at least `short`: {short}, {long}.")
    records = {part: annotations(root, part) for part in (TRAIN, TEST)}
    known = {one["id"]: one["name"] for one in records[TRAIN]["categories"]}
    if wrong := [one for one in records[TEST]["categories"] if known.get(one["id"]) != one["name"]]:
        there = known.get(wrong[0]["id"], "no category")
        raise ValueError(
            f"category {wrong[0]['id']} of {TEST} is {wrong[0]['name']}, and {there} in {TRAIN}; both must agree."
        )
    ids = tuple(sorted(known))
    parts = {
        name: part_of(root, name, records[name], ids, most, name == TRAIN)
        for name, most in ((TRAIN, train), (TEST, test))
    }
    made_up = str(records[TRAIN].get("info", {}).get("description", "")).startswith(MADE_UP)
    name = "coco-miniature" if made_up else "coco"
    names = tuple(known[number] for number in ids)
    return Coco(name, parts[TRAIN], parts[TEST], ids, names, short, long, multiple)


def annotations(root: Path, part: str) -> dict:
    path = root / "annotations" / f"instances_{part}.json"
    if not path.is_file():
        raise FileNotFoundError(f"`root` = {str(root)!r} has no annotations/{path.name}; see `detect.load`.")
    try:
        record = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: damaged or cut short ({error}).") from None
    if missing := {"images", "annotations", "categories"} - (record.keys() if isinstance(record, dict) else set()):
        raise ValueError(f"{path}: no annotations in COCO's format, {', '.join(sorted(missing))} missing.")
    for kind, wanted in FIELDS.items():
        for number, one in enumerate(record[kind]):
            if lacking := [field for field in wanted if field not in one]:
                raise ValueError(f"{path}: entry {number} of `{kind}` has no {' and no '.join(lacking)}.")
    for kind in ("images", "categories"):
        counts = collections.Counter(one["id"] for one in record[kind])
        if twice := [number for number, count in counts.items() if count > 1]:
            raise ValueError(f"{path}: two of `{kind}` have the number {twice[0]}.")
    return record


def part_of(root: Path, name: str, record: dict, ids, most: int | None, training: bool) -> Part:
    """The pictures of a part; in training only those that show an object."""
    found: dict[int, list[dict]] = {image["id"]: [] for image in record["images"]}
    for one in record["annotations"]:
        if one["image_id"] not in found:
            raise ValueError(
                f"annotation {one.get('id', '?')} of {name} belongs to picture {one['image_id']}, which is not there."
            )
        found[one["image_id"]].append(one)
    images: list[dict] = []
    kept: list[dict] = []
    truths: list[Truth] = []
    for image in record["images"]:
        truth = truth_of(image, found[image["id"]], ids)
        if training and not len(truth.boxes):
            continue
        if most is not None and len(images) == most:
            break
        images.append({key: image[key] for key in FIELDS["images"]})
        kept += [{key: one[key] for key in EVALUATED if key in one} for one in found[image["id"]]]
        truths.append(truth)
    folder = root / name
    return Part(folder if folder.is_dir() else root / f"{name}.zip", images, kept, truths)


FIELDS = {
    "images": ("id", "file_name", "width", "height"),
    "annotations": ("image_id", "category_id", "bbox"),
    "categories": ("id", "name"),
}
EVALUATED = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")


def truth_of(image: dict, objects: list[dict], ids) -> Truth:
    """The boxes of one picture, cut off at its edges."""
    height, width = image["height"], image["width"]
    single: list[list[float]] = []
    crowds: list[list[float]] = []
    labels = []
    for one in objects:
        if len(one["bbox"]) != 4 or not all(map(math.isfinite, one["bbox"])) or one["category_id"] not in ids:
            raise ValueError(
                f"annotation {one.get('id', '?')} of picture {image['id']} has category {one['category_id']} and the "
                f"box {one['bbox']}; a box is four numbers, and its category must be listed."
            )
        left, top, w, h = one["bbox"]
        box = [max(left, 0.0), max(top, 0.0), min(left + w, width), min(top + h, height)]
        if box[2] - box[0] < LEAST or box[3] - box[1] < LEAST:
            continue
        if one.get("iscrowd"):
            crowds.append(box)
        else:
            single.append(box)
            labels.append(ids.index(one["category_id"]))
    boxes, regions = (torch.tensor(x, dtype=torch.float32).reshape(-1, 4) for x in (single, crowds))
    return Truth(boxes, torch.tensor(labels, dtype=torch.long), regions, (height, width))


def read(place: Path, name: str) -> bytes:
    """A picture's file, from a folder or from the zip that holds the folder."""
    if place.suffix != ".zip":
        return (place / name).read_bytes()
    return archive(place, os.getpid()).read(f"{place.stem}/{name}")


@functools.cache
def archive(path: Path, process: int) -> zipfile.ZipFile:
    """An open zip, once in every process: workers that share one would read at each other's places."""
    return zipfile.ZipFile(path)
