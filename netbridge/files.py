"""Files that are whole or not there, whenever the process that writes them is killed."""

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

ABANDONED = 600.0  # seconds without a change


@contextlib.contextmanager
def whole(path) -> Iterator[Path]:
    """A place to write to: beside `path` under another name, renamed once it is on the disk."""
    path = Path(path)
    sweep(path)
    unfinished, permissions = started(path)
    try:
        yield unfinished
        unfinished.chmod(permissions)  # safetensors writes for its owner's eyes only
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def started(path: Path) -> tuple[Path, int]:
    """An empty file beside `path`, and the permissions that new files get here: reading the umask would set it."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")  # machines that share a folder share pids
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return unfinished, stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def sweep(path: Path, age: float = ABANDONED) -> None:
    """Remove what killed processes left half-written; what is younger than `age` may be a living one's."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # another process sweeps too
            if time.time() - leftover.stat().st_mtime >= age:
                leftover.unlink()
