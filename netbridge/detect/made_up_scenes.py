"""Small made-up scenes in COCO's own format: ellipses, rectangles and triangles on smooth noise, and their boxes."""

import json
from pathlib import Path

import numpy as np

from netbridge.detect.coco import MADE_UP, TEST, TRAIN

CATEGORIES = {1: "ellipse", 3: "rectangle", 7: "triangle"}  # numbers with gaps, as COCO's have
SHORTEST, LONGEST = 1 / 8, 15 / 32  # sides of an object, as shares of the picture's
MOST = 3  # objects in a picture
CROWD_EVERY = 25  # pictures: in one of so many an object is marked as a crowd


def shapes(out, train: int = 400, test: int = 100, size: int = 128, seed: int = 0) -> Path:
    """Write made-up scenes with their boxes as COCO 2017 is laid out, to try a detector with.

    out    the folder that receives a folder `coco`, which must not be there yet; that one is what `detect.load` takes,
           and the name of what is loaded ends in "-miniature", so that no result passes for the real data's
    train  pictures to train on (400), with 1 to 3 objects each
    test   pictures to test with (100)
    size   height and width of every picture, in pixels (128)
    seed   everything is drawn from it; the same arguments give the same bytes

    Returns the folder. Raises ValueError for sizes that do not fit, FileExistsError where the folder is there already.

    >>> import tempfile
    >>> from netbridge import detect
    >>> root = detect.shapes(tempfile.mkdtemp(), train=2, test=1, size=64)
    >>> sorted(path.name for path in root.rglob("*.json"))
    ['instances_train2017.json', 'instances_val2017.json']
    """
    if train < 1 or test < 1 or size < 32:
        raise ValueError(f"`train` and `test` must be at least 1 and `size` at least 32, got {train}, {test}, {size}.")
    place = Path(out).expanduser() / "coco"
    if place.exists():
        raise FileExistsError(f"{place} is there already; choose another `out`, or remove it.")
    (place / "annotations").mkdir(parents=True)
    for stream, (part, count) in enumerate(((TRAIN, train), (TEST, test))):
        chance = np.random.default_rng([seed, stream])
        write_part(place, part, count, size, 1 + 100_000 * stream, chance)
    return place


def write_part(place: Path, part: str, count: int, size: int, first: int, chance) -> None:
    """The pictures of one part, as PNG, and their annotations."""
    folder = place / part
    folder.mkdir()
    images: list[dict] = []
    objects: list[dict] = []
    for number in range(first, first + count):
        picture, found = scene(size, chance)
        name = f"{number:012d}.png"
        picture.save(folder / name)
        images.append({"id": number, "file_name": name, "width": size, "height": size})
        for place_in, (category, box, area) in enumerate(found):
            crowd = int(number % CROWD_EVERY == 0 and place_in == 0 and len(found) > 1)
            one = {"id": len(objects) + 1, "image_id": number, "category_id": category, "bbox": box, "area": area}
            objects.append(one | {"iscrowd": crowd})
    record = {
        "info": {"description": f"{MADE_UP} by netbridge.detect: shapes on noise"},
        "images": images,
        "annotations": objects,
        "categories": [{"id": number, "name": name} for number, name in CATEGORIES.items()],
    }
    (place / "annotations" / f"instances_{part}.json").write_text(json.dumps(record))


def scene(size: int, chance):
    """A picture and its objects: (category, [left, top, width, height], area in pixels); later ones cover earlier."""
    from PIL import Image, ImageDraw

    coarse = chance.normal(110, 18, (size // 8, size // 8, 3)).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(coarse).resize((size, size), Image.Resampling.BILINEAR)
    drawing = ImageDraw.Draw(picture)
    found = []
    for _ in range(chance.integers(1, MOST + 1)):
        width, height = (int(side) for side in chance.integers(round(SHORTEST * size), round(LONGEST * size), 2))
        left, top = int(chance.integers(0, size - width)), int(chance.integers(0, size - height))
        right, bottom = left + width - 1, top + height - 1
        category = list(CATEGORIES)[int(chance.integers(len(CATEGORIES)))]
        colour = tuple(int(value) for value in chance.integers(0, 256, 3))
        if category == 1:
            drawing.ellipse([left, top, right, bottom], fill=colour)
            share = np.pi / 4
        elif category == 3:
            drawing.rectangle([left, top, right, bottom], fill=colour)
            share = 1.0
        else:
            drawing.polygon([(left + width / 2, top), (left, bottom), (right, bottom)], fill=colour)
            share = 0.5
        found.append(
            (category, [float(left), float(top), float(width), float(height)], round(share * width * height, 1))
        )
    return picture, found
