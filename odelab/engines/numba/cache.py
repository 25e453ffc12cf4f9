"""Kernels on disk: a folder per module, named by the hash of its text, with numba's machine code beside it.

Nothing here can make a run fail: where the folder cannot be written or read, a kernel is compiled in memory. Machine
code is checked against the sums written with it before it is loaded, for a flipped bit in it would be executed.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path

MODULE, SUMS, LOCK = "kernel.py", "sums.txt", "lock"
KEPT = 400  # kernels on disk; those not used for longest go first


def folder() -> Path:
    """Where kernels are kept: `ODELAB_CACHE`, or the user's cache folder."""
    given = os.environ.get("ODELAB_CACHE")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "odelab"


def load(text: str, label: str) -> dict:
    """The names of a kernel's module, from disk where possible; what does not compile raises numba's own error."""
    from numba.core.errors import NumbaError

    name = f"{label}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    try:
        return vars(from_disk(folder() / "kernels" / name, name, text))
    except NumbaError:
        raise
    except Exception:  # no folder, no room, no lock, unreadable pickles, a cache numba does not like
        return in_memory(text, name)


def in_memory(text: str, name: str, **given) -> dict:
    namespace = {"__name__": f"odelab_kernel_{name}", **given}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace


def from_disk(place: Path, name: str, text: str) -> types.ModuleType:
    """Load the module in `place`, writing and compiling it first where that has not been done, or not well."""
    new = not place.is_dir()
    if new:
        prune(place.parent)
        place.mkdir(parents=True, exist_ok=True)
    with locked(place / LOCK):
        source = place / MODULE
        if not (source.is_file() and source.read_text(encoding="utf-8") == text):
            replace(source, text)
        if not intact(place):
            forget(place)
        module = imported(source, f"odelab_kernel_{name}")
        if intact(place):
            with contextlib.suppress(OSError):
                os.utime(place / SUMS)
        else:
            replace(place / SUMS, sums(place))
    return module


def imported(source: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba looks functions of a cached module up by its name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def sums(place: Path) -> str:
    """A line per file of machine code or byte code: its digest and name."""
    files = sorted(place.glob("__pycache__/*"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.name}\n" for file in files)


def intact(place: Path) -> bool:
    """Is the code what it was when it was written?"""
    try:
        return (place / SUMS).read_text(encoding="utf-8") == sums(place)
    except (OSError, UnicodeDecodeError):
        return False


def forget(place: Path):
    shutil.rmtree(place / "__pycache__", ignore_errors=True)
    (place / SUMS).unlink(missing_ok=True)


def replace(path: Path, text: str):
    """Write beside, then rename: a half-written file is never read."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


@contextlib.contextmanager
def locked(path: Path):
    """One process at a time compiles a kernel, the others wait and load it; without locks each compiles."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(path, "a") as file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prune(kernels: Path):
    """Keep the folder from growing for ever."""
    try:
        places = sorted((p for p in kernels.iterdir() if p.is_dir()), key=last_used)
    except OSError:
        return
    for place in places[: max(0, len(places) - KEPT + 1)]:
        shutil.rmtree(place, ignore_errors=True)


def last_used(place: Path) -> float:
    try:
        return (place / SUMS).stat().st_mtime
    except OSError:
        with contextlib.suppress(OSError):
            return place.stat().st_mtime
        return 0.0
