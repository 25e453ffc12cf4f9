"""ImageNet's pictures from the files in which people have them: the official archives, a folder tree, or shards.

Nothing is downloaded (the host asks for an account) and nothing is unpacked. `studies.miniature` makes small data in
the same three layouts.
"""

import io
import re
import tarfile
from pathlib import Path

import numpy as np

from netbridge.data.datasets import DataUnavailable, default_root
from netbridge.data.pictures import Index, Pictures, index_of, keep_indices, members, shards, tree

TRAIN_ARCHIVE, TEST_ARCHIVE = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"
DEVKIT, DEVKIT_ARCHIVE = "ILSVRC2012_devkit_t12", "ILSVRC2012_devkit_t12.tar.gz"
COUNT = 1_281_167  # training pictures
SYNSETS, TRUTH = "data/meta.mat", "data/ILSVRC2012_validation_ground_truth.txt"


def imagenet(root, size: int = 224, resize: int = 256, name: str | None = None) -> Pictures:
    """ImageNet, or any set of pictures in one of its layouts, indexed where it lies.

    root    the folder. It holds the official `ILSVRC2012_img_train.tar`, `ILSVRC2012_img_val.tar` and
            `ILSVRC2012_devkit_t12.tar.gz`; or folders `train` and `val` with a subfolder per class (a flat `val` needs
            the devkit, packed or not); or WebDataset shards, `*train*.tar` and `*val*.tar`, with KEY.jpg and KEY.cls
    size    height and width of what a network is shown, in pixels (224)
    resize  for testing, a picture's shorter side is resized to this before its middle is cut out (256)
    name    how logs and files call it; default "imagenet" where all 1,281,167 training pictures are there, else
            "imagenet-of-N" with their number, so that no result passes for ImageNet's

    Returns `Pictures`. The classes are sorted by name, as everybody numbers them; in shards the labels are numbers, and
    so are the names. The index is kept in the cache folder until a file changes. Raises DataUnavailable where the
    folder has none of the three layouts, ValueError where a file is damaged.

    >>> import tempfile
    >>> from netbridge import data
    >>> place = data.miniature("imagenet", tempfile.mkdtemp(), classes=3, each=4)
    >>> small = data.imagenet(place / "archives", size=32, resize=40)
    >>> small.name, len(small.train), len(small.test), small.train.picture(0).mode
    ('imagenet-of-12', 12, 6, 'RGB')
    """
    if not 1 <= size <= resize:
        raise ValueError(f"`size` must be from 1 to `resize` = {resize}, got {size}.")
    path = Path(root).expanduser()
    sources, make = layout(path)
    train, test, names = keep_indices(default_root() / "imagenet", sources, make)
    usual = "imagenet" if len(train) == COUNT else f"imagenet-of-{len(train)}"
    return Pictures(name or usual, train, test, names, size, resize)


def layout(path: Path):
    """(the files and folders that decide what is there, a function that goes through them)."""
    if (path / TRAIN_ARCHIVE).is_file():
        sources = [path / TRAIN_ARCHIVE, path / TEST_ARCHIVE, path / DEVKIT_ARCHIVE]
        if missing := [source.name for source in sources if not source.is_file()]:
            raise DataUnavailable(f"{path} has {TRAIN_ARCHIVE} but no {' and no '.join(missing)}; put it there.")
        return sources, lambda: from_archives(path)
    if (path / "train").is_dir() and (path / "val").is_dir():
        folders = [entry for part in ("train", "val") for entry in (path / part).iterdir() if entry.is_dir()]
        kit = [path / DEVKIT_ARCHIVE, *(path / DEVKIT / name for name in (SYNSETS, TRUTH))]
        kit = [file for file in kit if file.is_file()]
        return [path / "train", path / "val", *sorted(folders), *kit], lambda: from_tree(path)
    packed = [sorted(path.glob(f"*{part}*.tar")) for part in ("train", "val")] if path.is_dir() else [[], []]
    if both := sorted(set(packed[0]) & set(packed[1])):
        raise ValueError(f"{both[0]} could be a shard of either part; its name must hold one of `train` and `val`.")
    if all(packed):
        return [*packed[0], *packed[1]], lambda: from_shards(*packed)
    raise DataUnavailable(
        f"{str(path)!r} holds no ImageNet. What would be read: {TRAIN_ARCHIVE}, {TEST_ARCHIVE} and {DEVKIT_ARCHIVE}; "
        "or folders train/CLASS and val/CLASS; or WebDataset shards *train*.tar and *val*.tar. "
        "`python -m studies.miniature imagenet --out FOLDER` makes small ones to try with."
    )


def from_archives(path: Path):
    """The official archives: one archive per class inside the training archive, and a flat validation archive."""
    found = sorted(members(path / TRAIN_ARCHIVE, nested=True))
    classes = [name.partition(".tar/")[0] for name, *_ in found]
    names = tuple(sorted(set(classes)))
    numbers = {name: label for label, name in enumerate(names)}
    tested = sorted(members(path / TEST_ARCHIVE))
    shown = validation_labels(path, names, [name for name, *_ in tested])
    return (
        index_of(
            [path / TRAIN_ARCHIVE],
            [(0, first, count) for _, first, count in found],
            [numbers[name] for name in classes],
        ),
        index_of([path / TEST_ARCHIVE], [(0, first, count) for _, first, count in tested], shown),
        names,
    )


def from_tree(path: Path):
    """Folders train/CLASS, and val/CLASS or a flat val."""
    train, names = tree(path / "train")
    if any(entry.is_dir() for entry in (path / "val").iterdir()):
        test = tree(path / "val", names)[0]
        order = np.argsort([Path(file).name for file in test.files], kind="stable")  # as in the official archive
        return train, Index(test.files, test.places[order], test.labels[order]), names
    files = sorted((path / "val").iterdir())
    shown = validation_labels(path, names, [file.name for file in files])
    return train, index_of(files, [(number, 0, -1) for number in range(len(files))], shown), names


def from_shards(training: list[Path], testing: list[Path]):
    train, test = shards(training), shards(testing)
    count = int(max(train.labels.max(), test.labels.max())) + 1
    return train, test, tuple(map(str, range(count)))


def validation_labels(path: Path, names: tuple[str, ...], files: list[str]) -> list[int]:
    """The class of every validation picture, by the devkit: line n of its list is about the picture that ends in n."""
    from scipy.io import loadmat

    synsets = np.atleast_1d(loadmat(io.BytesIO(devkit_file(path, SYNSETS)), squeeze_me=True)["synsets"])
    word_net = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
    truth = [word_net[int(line)] for line in devkit_file(path, TRUTH).split()]
    numbers = [re.search(r"_(\d+)\.\w+$", name) for name in files]
    if len(truth) != len(files) or any(found is None for found in numbers):
        raise ValueError(
            f"{path}: the devkit lists {len(truth)} validation pictures, and there are {len(files)}, which should be "
            "called ILSVRC2012_val_00000001.JPEG and so on."
        )
    labels = {name: label for label, name in enumerate(names)}
    return [labels[truth[int(found[1]) - 1]] for found in numbers if found]


def devkit_file(path: Path, name: str) -> bytes:
    """A file of the devkit, from its folder or its archive."""
    if (path / DEVKIT / name).is_file():
        return (path / DEVKIT / name).read_bytes()
    packed = path / DEVKIT_ARCHIVE
    if not packed.is_file():
        raise DataUnavailable(
            f"{path} has validation pictures without classes; their labels are in {DEVKIT_ARCHIVE}: put it there."
        )
    with tarfile.open(packed, "r:gz") as archive:
        return archive.extractfile(f"{DEVKIT}/{name}").read()  # type: ignore[union-attr]  # None for folders only
