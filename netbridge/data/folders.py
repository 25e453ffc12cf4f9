"""A folder of pictures as a data set: one subfolder per class, every picture cut to one square size.

All pictures are decoded and held in memory; for sets that do not fit there, this is not the reader.
"""

from pathlib import Path

import numpy as np
import torch

from netbridge.data.datasets import Dataset, dataset
from netbridge.data.pictures import ENDINGS, to_rgb
from netbridge.progress import progress_bar

TRAINING, TESTING = ("train", "training"), ("test", "testing", "val", "validation")


def folder(path, size: int = 32, test_share: float = 0.2, seed: int = 0) -> Dataset:
    """A data set from a folder of pictures with one subfolder per class.

    path        the folder. Its subfolders are the classes, in alphabetical order; or it has one folder `train` and one
                folder `test` (or `val`) with the same classes in each
    size        height and width of the images, in pixels: a picture's shorter side is resized to it, and the middle is
                cut out (default 32)
    test_share  where there is no test folder: the share of each class that is set aside for testing (default 0.2)
    seed        decides which pictures are set aside for testing (default 0)

    Returns a `Dataset` named like the folder, its images RGB and whole in memory as uint8. Raises ValueError where the
    folder does not look like this or a picture cannot be read.

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> from netbridge import data
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "pets"
    >>> for kind, colour in (("cats", "grey"), ("dogs", "brown")):
    ...     (place / kind).mkdir(parents=True)
    ...     for number in range(5):
    ...         Image.new("RGB", (40, 30), colour).save(place / kind / f"{number}.png")
    >>> pets = data.folder(place, size=24)
    >>> pets.names, tuple(pets.train_images.shape), pets.test_labels.tolist()
    (('cats', 'dogs'), (8, 3, 24, 24), [0, 1])
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise ValueError(f"`path` = {str(path)!r} is not a folder.")
    if not 0 < test_share < 1:
        raise ValueError(f"`test_share` must lie between 0 and 1, got {test_share!r}.")
    inside = {entry.name.lower(): entry for entry in path.iterdir() if entry.is_dir()}
    training, testing = (next((inside[n] for n in names if n in inside), None) for names in (TRAINING, TESTING))
    if training is not None and testing is not None:
        parts = {"train": pictures_of(training), "test": pictures_of(testing)}
        if parts["train"].keys() != parts["test"].keys():
            odd = sorted(parts["train"].keys() ^ parts["test"].keys())
            raise ValueError(f"{path}: {odd[:3]} are classes of only one of {training.name} and {testing.name}.")
    else:
        parts = split(path, pictures_of(path), test_share, seed)
    names = tuple(sorted(parts["train"]))
    arrays = {}
    for part, found in parts.items():
        listed = [(picture, label) for label, name in enumerate(names) for picture in found[name]]
        with progress_bar(f"reading {path.name}", len(listed)) as advance:
            images = np.empty((len(listed), 3, size, size), np.uint8)
            for row, (picture, _) in enumerate(listed):
                images[row] = pixels(picture, size)
                advance()
        arrays[f"{part}_images"] = torch.from_numpy(images)
        arrays[f"{part}_labels"] = torch.tensor([label for _, label in listed])
    return dataset(path.resolve().name, arrays, names)


def some_pictures(path, size: int, count: int) -> torch.Tensor:
    """Pictures of a folder and its subfolders, evenly spread over their names: uint8 (N, 3, size, size).

    path   the folder
    size   height and width; the middle of each picture is cut out, its shorter side resized to this
    count  how many at most
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise ValueError(f"{str(path)!r} is not a folder.")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
    if not files:
        raise ValueError(f"{path} holds no pictures ({', '.join(sorted(ENDINGS))}).")
    chosen = np.unique(np.linspace(0, len(files) - 1, min(count, len(files))).astype(int))
    return torch.from_numpy(np.stack([pixels(files[place], size) for place in chosen]))


def pictures_of(path: Path) -> dict[str, list[Path]]:
    """The pictures of every class, sorted; classes are the subfolders that hold some."""
    found = {
        entry.name: sorted(file for file in entry.rglob("*") if file.suffix.lower() in ENDINGS)
        for entry in sorted(path.iterdir())
        if entry.is_dir()
    }
    found = {name: files for name, files in found.items() if files}
    if len(found) < 2:
        raise ValueError(
            f"{path}: {len(found)} folders with pictures, but a data set needs one for each of at least two classes."
        )
    return found


def split(path: Path, found: dict[str, list[Path]], share: float, seed: int) -> dict[str, dict[str, list[Path]]]:
    """The same share of every class for testing, at least one picture of each."""
    chance = torch.Generator().manual_seed(seed)
    parts: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for name, files in found.items():
        if len(files) < 2:
            raise ValueError(f"{path / name} holds one picture; a class needs one to train on and one to test with.")
        count = min(max(round(share * len(files)), 1), len(files) - 1)
        chosen = set(torch.randperm(len(files), generator=chance)[:count].tolist())
        parts["test"][name] = [file for place, file in enumerate(files) if place in chosen]
        parts["train"][name] = [file for place, file in enumerate(files) if place not in chosen]
    return parts


def pixels(path: Path, size: int) -> np.ndarray:
    """The middle of a picture, its shorter side resized to `size`: uint8 (3, size, size)."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            cut = ImageOps.fit(to_rgb(picture), (size, size), method=Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise ValueError(f"{path}: no picture that can be read ({error}).") from None
    return np.asarray(cut).transpose(2, 0, 1)
