"""Image data sets too large for memory: pictures stay in the files where they lie and are decoded when wanted.

An `Index` says for every picture in which file it lies, where it begins there, how long it is, and what class it shows.
A folder of files, an archive, an archive of archives and a row of shards all become such an index, so nothing is ever
unpacked. Cropping and mirroring belong to training and are in `netbridge.train`.
"""

import dataclasses
import hashlib
import io
import tarfile
import warnings
from collections.abc import Iterator, Sized
from pathlib import Path

import filelock
import numpy as np
import safetensors
import torch
from safetensors.torch import save_file

from netbridge.data.datasets import Normalised
from odelab.files import replacing

ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff"}
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # what ImageNet networks expect to see
Place = tuple[int, int, int]  # the number of a file, the first byte in it, the number of bytes; -1 bytes: all of it


@dataclasses.dataclass(frozen=True, eq=False)
class Index:
    """Where the pictures of one part of a data set lie, and what they show.

    files   the files, each once
    places  int64 (N, 3), a row for every picture: the number of its file, its first byte there, its number of bytes
            (-1: the whole file)
    labels  int64 (N,): the number of each picture's class

    >>> import tempfile
    >>> from netbridge import data
    >>> root = data.miniature("imagenet", tempfile.mkdtemp(), classes=2, each=3) / "archives"
    >>> index = data.imagenet(root, size=32, resize=40).train
    >>> len(index), index.places.shape, index.read(0)[:2], index.picture(0).mode
    (6, (6, 3), b'\\xff\\xd8', 'RGB')
    """

    files: tuple[str, ...]
    places: np.ndarray
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)

    def read(self, number: int) -> bytes:
        """The bytes of a picture's file, as they lie on the disk."""
        file, first, count = self.places[number].tolist()
        with open(self.files[file], "rb") as stream:
            stream.seek(first)
            return stream.read(count)

    def picture(self, number: int):
        """A picture, decoded and in RGB whatever it is stored as (grey, CMYK, a palette): a Pillow image.

        Raises ValueError, which names the file and the member of the archive, where it cannot be decoded.
        """
        from PIL import Image, UnidentifiedImageError

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="PIL")  # damaged EXIF data change no pixel
                return to_rgb(Image.open(io.BytesIO(self.read(number))))
        except (OSError, UnidentifiedImageError, SyntaxError, ValueError) as error:
            raise ValueError(f"{self.whereabouts(number)}: no picture that can be read ({error}).") from None

    def whereabouts(self, number: int) -> str:
        """The file of a picture and, in an archive, the member it is, as an error message names it."""
        file, first, count = self.places[number].tolist()
        path = self.files[file]
        if count < 0:
            return path
        for name, place, _ in members(Path(path), nested=True):
            if place == first:
                return f"{path}, member {name}"
        return f"{path} at byte {first}"

    def digest(self) -> str:
        """SHA-256 of what the index says: the names of the files without their folders, places and labels."""
        total = hashlib.sha256("\n".join(Path(file).name for file in self.files).encode())
        for part in (self.places, self.labels):
            total.update(part.tobytes())
        return total.hexdigest()


class OnDisk(Normalised):
    """Normalised pictures that stay on the disk; `train` holds those to train on."""

    train: Sized

    @property
    def train_count(self) -> int:
        """How many pictures there are to train on."""
        return len(self.train)


@dataclasses.dataclass(frozen=True, eq=False)
class Pictures(OnDisk):
    """A training and a test set of pictures that stay on the disk. `data.imagenet` makes one.

    name         how logs and files call it
    train, test  an `Index` of each part
    names        the classes; the labels are their numbers
    size         height and width of what a network is shown, in pixels
    resize       for testing, the shorter side of a picture is resized to this, and the middle of `size` is cut out
    mean, std    per channel, of pixels from 0 to 1; networks are shown (pixels - mean) / std

    >>> import tempfile
    >>> from netbridge import data
    >>> root = data.miniature("imagenet", tempfile.mkdtemp(), classes=2, each=3) / "tree"
    >>> small = data.imagenet(root, size=32, resize=40)
    >>> small.names, small.train_count, len(small.test)
    (('n01440764', 'n01440765'), 6, 2)
    """

    name: str
    train: Index
    test: Index
    names: tuple[str, ...]
    size: int = 224
    resize: int = 256
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def digest(self) -> str:
        """SHA-256 of the two indices and of how pictures are shown; the pictures themselves are not read."""
        parts = (self.train.digest(), self.test.digest(), self.size, self.resize, self.mean, self.std)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def to_rgb(picture):
    """A Pillow image in RGB, eight bits a channel.

    Raises ValueError where it has more of them (16 bits, or floating-point numbers): Pillow would cut them off at 255.
    """
    if picture.mode[0] in "IF":
        raise ValueError(
            f"its mode {picture.mode} has more than eight bits a channel, and what they mean is not known here; "
            "scale it to eight bits first"
        )
    return picture.convert("RGB")


def members(path: Path, nested: bool = False) -> Iterator[tuple[str, int, int]]:
    """(name, first byte, number of bytes) of every file in an archive that is not compressed.

    nested  go into archives in the archive, too: their files are called ARCHIVE.tar/FILE

    Raises ValueError where the archive is damaged or cut short.
    """
    inside = ""
    try:
        with tarfile.open(path, "r:") as outer:
            for entry in outer:
                if nested and entry.isfile() and entry.name.endswith(".tar"):
                    inside = f", member {entry.name}"
                    with tarfile.open(fileobj=outer.extractfile(entry), mode="r:") as inner:
                        for found in inner:
                            if found.isfile():
                                yield f"{entry.name}/{found.name}", entry.offset_data + found.offset_data, found.size
                elif entry.isfile():
                    yield entry.name, entry.offset_data, entry.size
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"{path}{inside}: a damaged archive ({error}).") from None


def index_of(files, places, labels) -> Index:
    """An index from lists."""
    return Index(
        tuple(map(str, files)), np.array(places, np.int64).reshape(-1, 3), np.array(labels, np.int64).reshape(-1)
    )


def tree(path: Path, names: tuple[str, ...] | None = None) -> tuple[Index, tuple[str, ...]]:
    """(the index, the classes) of a folder with one subfolder per class; the classes are sorted by name.

    path   the folder
    names  the classes that it must have, where they are known already
    """
    classes = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    if names is not None and classes != list(names):
        odd = sorted(set(classes) ^ set(names))
        raise ValueError(f"{path} has other classes than the training pictures: {', '.join(odd[:5])}.")
    files, labels = [], []
    for label, name in enumerate(classes):
        found = sorted(file for file in (path / name).iterdir() if file.suffix.lower() in ENDINGS)
        if not found:
            raise ValueError(f"{path / name} holds no pictures; every class needs some.")
        files += found
        labels += [label] * len(found)
    return index_of(files, [(number, 0, -1) for number in range(len(files))], labels), tuple(classes)


def shards(paths: list[Path]) -> Index:
    """The index of WebDataset shards: archives in which KEY.cls holds the label of the picture KEY.jpg, as text.

    Pictures are ordered by shard and by their place in it, whatever the order of picture and label. Raises ValueError,
    which names the shard, where a key has no picture, no label or two of them, or a label is no number from 0 on.
    """
    places: list[Place] = []
    labels = []
    for number, path in enumerate(paths):
        found: dict[str, Place] = {}
        shown: dict[str, int] = {}
        with path.open("rb") as stream:
            for name, first, count in members(path):
                stem, _, ending = name.rpartition(".")
                picture = f".{ending.lower()}" in ENDINGS
                if (picture and stem in found) or (ending == "cls" and stem in shown):
                    raise ValueError(f"{path}: {stem} has more than one {'picture' if picture else 'label'}.")
                if picture:
                    found[stem] = (number, first, count)
                elif ending == "cls":
                    stream.seek(first)
                    shown[stem] = label_of(stream.read(count), f"{path}: {name}")
        if odd := sorted(found.keys() ^ shown.keys()):
            raise ValueError(f"{path}: {odd[0]} has no {'label' if odd[0] in found else 'picture'}.")
        places += found.values()
        labels += [shown[stem] for stem in found]
    return index_of(paths, places, labels)


def label_of(text: bytes, where: str) -> int:
    """The number of a class, as a shard's label holds it."""
    if not text.strip().isdigit():
        raise ValueError(f"{where} holds {text[:20]!r}; a label must be the number of a class, from 0 on.")
    return int(text)


def keep_indices(folder: Path, sources: list[Path], make) -> tuple[Index, Index, tuple[str, ...]]:
    """What `make()` returns, an index of each part and the classes, kept in `folder` until one of `sources` changes.

    Going through ImageNet's archives takes half a minute. Several processes may call this at once: one makes the
    index, the others wait.
    """
    stamps = [(str(path.resolve()), (facts := path.stat()).st_size, facts.st_mtime_ns) for path in sources]
    key = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"index-{key}.safetensors"
    with filelock.FileLock(folder / "lock"):
        try:
            return read_indices(ready)
        except (OSError, safetensors.SafetensorError, KeyError, ValueError):
            found = make()
            write_indices(ready, *found)
            return found


def write_indices(path: Path, train: Index, test: Index, names: tuple[str, ...]) -> None:
    tensors = {"names": text_tensor(names)}
    for part, index in (("train", train), ("test", test)):
        tensors[f"{part}_files"] = text_tensor(index.files)
        tensors[f"{part}_places"] = torch.from_numpy(index.places)
        tensors[f"{part}_labels"] = torch.from_numpy(index.labels)
    with replacing(path) as unfinished:
        save_file(tensors, unfinished, {"digest": train.digest() + test.digest()})


def read_indices(path: Path) -> tuple[Index, Index, tuple[str, ...]]:
    with safetensors.safe_open(path, framework="pt") as file:
        parts = [
            Index(
                texts(file.get_tensor(f"{part}_files")),
                file.get_tensor(f"{part}_places").numpy(),
                file.get_tensor(f"{part}_labels").numpy(),
            )
            for part in ("train", "test")
        ]
        names, digest = texts(file.get_tensor("names")), (file.metadata() or {}).get("digest")
    if digest != "".join(part.digest() for part in parts):
        raise ValueError(f"{path} is damaged")
    return parts[0], parts[1], names


def text_tensor(lines) -> torch.Tensor:
    """Lines of text as bytes, which a safetensors file can hold."""
    return torch.frombuffer(bytearray("\n".join(lines).encode() or b"\n"), dtype=torch.uint8)


def texts(tensor: torch.Tensor) -> tuple[str, ...]:
    return tuple(tensor.numpy().tobytes().decode().split("\n"))
