"""Files that are whole or not there, whenever the process that writes them is killed."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

ABANDONED = 600.0  # seconds without a change


@contextlib.contextmanager
def whole(path) -> Iterator[Path]:
    """A place to write to: beside `path` under another name, renamed once it is on the disk."""
    path = Path(path)
    sweep(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.chmod(0o666 & ~mask())  # safetensors writes for its owner's eyes only
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def mask() -> int:
    """The permissions new files do not get; it can only be read by setting it."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def sweep(path: Path, age: float = ABANDONED) -> None:
    """Remove what killed processes left half-written; what is younger than `age` may be a living one's."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # another process sweeps too
            if time.time() - leftover.stat().st_mtime >= age:
                leftover.unlink()
