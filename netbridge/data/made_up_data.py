"""Small made-up data in the official formats of ImageNet, CIFAR-100 and STL-10, to try every path without the data.

The pictures are smooth noise tinted by class: a network can learn them, and nobody has rights in them.
"""

import io
import tarfile
from pathlib import Path

import numpy as np

from netbridge.data.datasets import MINIATURE, ORIGINS, write_ready
from netbridge.data.layouts import DEVKIT, DEVKIT_ARCHIVE, SYNSETS, TEST_ARCHIVE, TRAIN_ARCHIVE, TRUTH

FORMATS = {"imagenet": 1000, "cifar100": 100, "stl10": 10}  # with the number of classes that there can be
SHARDS = 2  # of each part


def miniature(name: str, out, classes: int = 8, each: int = 24, height: int = 60, seed: int = 0) -> Path:
    """Write small made-up data in the format of a known data set.

    name     "imagenet" (the official archives in `archives`, the same pictures as a folder tree in `tree` and as
             WebDataset shards in `shards`), "cifar100" or "stl10" (the official archive)
    out      the folder that receives a folder `name`, which must not be there yet; it is the `root` that `data.load`
             takes, and the name of what is loaded ends in "-miniature", so that no result passes for the real data's
    classes  how many classes are used (8); STL-10 has ten
    each     pictures of each class to train on (24); half as many, at least one, to test with
    height   of ImageNet's pictures, in pixels (60); widths differ, as they do there
    seed     the pictures are drawn from it; the same arguments give the same bytes

    Returns the folder. Raises ValueError for an unknown name or sizes that do not fit, FileExistsError where the folder
    is there already: made-up pictures never lie beside real ones.

    >>> import tempfile
    >>> from netbridge import data
    >>> root = tempfile.mkdtemp()
    >>> sorted(file.name for file in data.miniature("stl10", root, each=2).glob("*10*"))
    ['stl10.safetensors', 'stl10_binary.tar.gz']
    >>> data.load("stl10", root).name
    'stl10-miniature'
    """
    if name not in FORMATS:
        raise ValueError(f"`name` must be one of {list(FORMATS)}, got {name!r}.")
    if not 2 <= classes <= FORMATS[name] or each < 1 or height < 8:
        raise ValueError(
            f"`classes` must be from 2 to {FORMATS[name]}, `each` at least 1 and `height` at least 8, got {classes}, "
            f"{each}, {height}."
        )
    place = Path(out).expanduser() / name
    if place.exists():
        raise FileExistsError(f"{place} is there already; choose another `out`, or remove it.")
    place.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    labels = {"train": np.repeat(np.arange(classes), each), "test": np.repeat(np.arange(classes), max(each // 2, 1))}
    labels = {part: chance.permutation(values) for part, values in labels.items()}
    if name == "imagenet":
        write_imagenet(place, labels, height, chance)
    else:
        size = 96 if name == "stl10" else 32
        images = {
            part: np.stack([picture(size, size, label, chance) for label in labels[part].tolist()]) for part in labels
        }
        write_binary(place, name, {part: x.transpose(0, 3, 1, 2) for part, x in images.items()}, labels)
    return place


def picture(height: int, width: int, label: int, chance) -> np.ndarray:
    """Smooth noise, tinted by class: uint8 (height, width, 3)."""
    from PIL import Image

    coarse = chance.integers(0, 256, (max(height // 8, 2), max(width // 8, 2), 3))
    hue = np.array([np.cos(2.4 * label + 2.1 * channel) for channel in range(3)])  # far apart for neighbouring labels
    tinted = np.clip(0.5 * coarse + 64 + 64 * hue, 0, 255).astype(np.uint8)
    return np.asarray(Image.fromarray(tinted).resize((width, height), Image.Resampling.BICUBIC))


def write_imagenet(place: Path, labels: dict, height: int, chance) -> None:
    """The same pictures in three layouts. One is grey and one is CMYK, as some of ImageNet's are."""
    names = [f"n{1440764 + number:08d}" for number in range(max(labels["train"]) + 1)]
    pictures = {
        part: [
            encode(picture(height, height + 4 * int(chance.integers(0, 9)), label, chance), number, part == "train")
            for number, label in enumerate(values.tolist())
        ]
        for part, values in labels.items()
    }
    trained: list[list[tuple[str, bytes]]] = [[] for _ in names]
    for label, content in zip(labels["train"], pictures["train"], strict=True):
        trained[label].append((f"{names[label]}_{len(trained[label])}.JPEG", content))
    tested = [(f"ILSVRC2012_val_{number:08d}.JPEG", content) for number, content in enumerate(pictures["test"], 1)]
    kit = [(f"{DEVKIT}/{SYNSETS}", synsets(names)), (f"{DEVKIT}/{TRUTH}", truth(labels["test"], len(names)))]
    archives, folders, packed = (place / kind for kind in ("archives", "tree", "shards"))
    for folder in (archives, packed):
        folder.mkdir(exist_ok=True)
    inner = [(f"{name}.tar", archive(files)) for name, files in zip(names, trained, strict=True)]
    (archives / TRAIN_ARCHIVE).write_bytes(archive(inner))
    (archives / TEST_ARCHIVE).write_bytes(archive(tested))
    (archives / DEVKIT_ARCHIVE).write_bytes(archive(kit, "w:gz"))
    for name, files in zip(names, trained, strict=True):
        write_files(folders / "train" / name, files)
    for label, file in zip(labels["test"], tested, strict=True):
        write_files(folders / "val" / names[label], [file])
    flat = {
        "train": [(label, content) for label, files in enumerate(trained) for _, content in sorted(files)],
        "val": list(zip(labels["test"], pictures["test"], strict=True)),
    }
    for part, samples in flat.items():
        for number in range(SHARDS):
            chosen = samples[number * len(samples) // SHARDS : (number + 1) * len(samples) // SHARDS]
            files = []
            for row, (label, content) in enumerate(chosen):
                files += [(f"{number:03d}{row:05d}.jpg", content), (f"{number:03d}{row:05d}.cls", str(label).encode())]
            (packed / f"imagenet-{part}-{number:06d}.tar").write_bytes(archive(files))


def encode(pixels: np.ndarray, number: int, odd: bool) -> bytes:
    """A picture as JPEG; the second is grey and the third CMYK where `odd` says so."""
    from PIL import Image

    image = Image.fromarray(pixels)
    mode = {1: "L", 2: "CMYK"}.get(number) if odd else None
    stream = io.BytesIO()
    (image.convert(mode) if mode else image).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def numbers_of(count: int) -> np.ndarray:
    """The numbers that the devkit gives the classes: not in alphabetical order, as in the official one."""
    return np.random.default_rng(1).permutation(count) + 1


def synsets(names: list[str]) -> bytes:
    """The devkit's table of classes, as a MATLAB file."""
    from scipy.io import savemat

    kind = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")]
    rows = [(number, name, f"class {name}", 0) for number, name in zip(numbers_of(len(names)), names, strict=True)]
    stream = io.BytesIO()
    savemat(stream, {"synsets": np.array(rows, dtype=kind).reshape(-1, 1)})
    return stream.getvalue()


def truth(labels: np.ndarray, count: int) -> bytes:
    """The devkit's list of the validation pictures' classes, by its own numbers."""
    return "".join(f"{number}\n" for number in numbers_of(count)[labels]).encode()


def write_files(folder: Path, files: list[tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_bytes(content)


def archive(files: list[tuple[str, bytes]], mode: str = "w") -> bytes:
    """A tar archive of these files, `mode` as `tarfile.open` takes it; always the same bytes when not compressed."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def write_binary(place: Path, name: str, images: dict, labels: dict) -> None:
    """The official binary archive of CIFAR-100 or STL-10, and what `data.load` would make of it."""
    y = {part: values[:, None].astype(np.uint8) for part, values in labels.items()}
    if name == "cifar100":  # a coarse label, which nothing reads, stands before the fine one
        files = {
            f"{part}.bin": np.concatenate([y[part] // 5, y[part], x.reshape(len(x), -1)], axis=1)
            for part, x in images.items()
        }
    else:  # images column by column, labels from 1
        files = {f"{part}_X.bin": np.ascontiguousarray(x.swapaxes(2, 3)) for part, x in images.items()}
        files |= {f"{part}_y.bin": values + 1 for part, values in y.items()}
    origin = ORIGINS[name]
    path = place / origin.archive.file
    path.write_bytes(archive([(f"{name}/{key}", x.tobytes()) for key, x in files.items()], "w:gz"))
    write_ready(place / f"{name}.safetensors", origin.decode(path), f"{name}{MINIATURE}")
