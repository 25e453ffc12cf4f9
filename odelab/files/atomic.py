"""Atomic writes: a file is whole or not there, whenever the process that writes it is killed.

Not for appending; a log is written anew each time.
"""

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

ABANDONED = 600.0  # seconds without a change after which the process that wrote an unfinished file counts as dead


@contextlib.contextmanager
def replacing(path) -> Iterator[Path]:
    """`with replacing(path) as unfinished:` write to `unfinished`, which then takes the place of `path` at once.

    The unfinished file lies beside `path` under another name, reaches the disk, and is renamed. Where the block raises
    or the process is killed, `path` stays what it was.
    """
    path = Path(path)
    sweep(path)
    unfinished, permissions = new_file(path)
    try:
        yield unfinished
        unfinished.chmod(permissions)  # safetensors creates files that only their owner may read
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def new_file(path: Path) -> tuple[Path, int]:
    """An empty file beside `path`, and the permissions that new files get here: reading the umask would set it."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")  # machines that share a folder share pids
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return unfinished, stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def sweep(path: Path, age: float = ABANDONED) -> None:
    """Remove the unfinished files of killed processes; one younger than `age` seconds may be a living process's."""
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # another process sweeps too
            if time.time() - leftover.stat().st_mtime >= age:
                leftover.unlink()
