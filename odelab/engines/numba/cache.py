"""Kernels on disk: a folder for each kernel, with its source text and numba's machine code.

A folder's name contains a digest of everything the machine code depends on, so nothing in the folder is ever out of
date. Loading machine code means executing it. It is therefore loaded only from a folder that belongs to this user, that
nobody else can write to, and that nobody else can replace by another folder. Nothing here can make a run fail: where a
folder cannot be written, read or trusted, the kernel is compiled in memory.

Machine code of several processes meets in the one that loads it, and is linked there by names; `names_are_apart` sees
to it that no two functions have the same.
"""

import contextlib
import functools
import itertools
import os
import secrets
import shutil
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path

MODULE, LOCK = "kernel.py", "lock"
KEPT = 400  # kernels on disk at most; the least recently used ones are removed first


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


def load(text: str, name: str, given: dict[str, Callable] | None = None) -> dict:
    """Run a kernel's module and return its names; machine code is read from disk where possible.

    A kernel that does not compile raises numba's own error.

    text    the source, which is compiled as it is run
    name    under which its machine code is kept; it must differ where the machine code may
    given   functions of numba's that the text calls
    """
    from numba.core.errors import NumbaError, NumbaWarning

    given = given or {}
    if not names_are_apart():
        return in_memory(text, name, given)
    place = (folder() / "kernels").resolve() / name  # a link is resolved once, before any check
    with warnings.catch_warnings():
        # Machine code refers to a large captured array by its address, so that it cannot be stored on disk.
        warnings.filterwarnings("ignore", "Cannot cache compiled function", NumbaWarning)
        try:
            make_folder(place)
            if not is_private(place):
                return in_memory(text, name, given)
            with hold_lock(place / LOCK):
                try:
                    return from_disk(place, text, name, given)
                except NumbaError:
                    raise
                except Exception:  # damaged machine code, for example: numba does not check it
                    shutil.rmtree(place / "__pycache__")
                    return from_disk(place, text, name, given)
        except NumbaError:
            raise
        except Exception:  # no folder, no room, no lock, a cache numba does not like
            return in_memory(text, name, given)


@functools.cache
def names_are_apart() -> bool:
    """Will each function that numba compiles from now on have a name that it has in no other process?

    numba names machine code by a function's module and name, the types of its arguments, and how many functions this
    process had met before. Two functions `rhs` that two processes compiled may thus have one name, and a third process
    that loads both runs the first of them in place of the second. So counting is made to start at a random number, in
    every process that is forked as well. Where numba does not heed it, as another version might not, the answer is no,
    and nothing is read from disk or kept there.
    """
    from numba.core.bytecode import FunctionIdentity

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=count_from_elsewhere)
    start = count_from_elsewhere()
    return FunctionIdentity.from_function(count_from_elsewhere).unique_id == start


def count_from_elsewhere() -> int:
    """Have numba count functions from a random number on; returns the number."""
    from numba.core.bytecode import FunctionIdentity

    start = secrets.randbits(60)
    FunctionIdentity._unique_ids = itertools.count(start)
    return start


def in_memory(text: str, name: str, given: dict[str, Callable]) -> dict:
    namespace = {"__name__": f"odelab_kernel_{name}", **given}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace


def from_disk(place: Path, text: str, name: str, given: dict[str, Callable]) -> dict:
    """Run the module of `place`; numba loads its machine code, or compiles it and writes it there."""
    source = place / MODULE
    if not (source.is_file() and source.read_bytes() == text.encode()):
        replace(source, text)
    os.utime(place)
    module = types.ModuleType(f"odelab_kernel_{name}")
    vars(module).update(given, __file__=str(source))
    sys.modules[module.__name__] = module  # numba looks functions of a cached module up by its name
    try:
        exec(compile(text, str(source), "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return vars(module)


def forget(function) -> bool:
    """Remove the stored machine code of a kernel's function; returns whether there was any."""
    kept = Path(function.py_func.__globals__.get("__file__", "")).parent / "__pycache__"
    found = kept.parent.parent.name == "kernels" and kept.is_dir()
    if found:
        shutil.rmtree(kept, ignore_errors=True)
    return found


def make_folder(place: Path):
    """Make the folder of one kernel where it is missing; only its owner has access to it."""
    if not place.is_dir():
        prune(place.parent)
        for path in (*reversed(place.parents), place):
            if not path.is_dir():
                path.mkdir(mode=0o700, exist_ok=True)


def is_private(place: Path) -> bool:
    """Can nobody but this user decide what lies in a kernel's folder? If somebody can, one warning says so."""
    if os.name != "posix":
        return True
    for path in (*place.parents[:1:-1], place.parent.parent, place.parent, place, *place.rglob("*")):
        reason = why_unsafe(path, above=path in place.parents[2:])
        if reason:
            warn_once(path, reason)
            return False
    return True


def why_unsafe(path: Path, above: bool) -> str:
    """Who else may change a file or folder, in words; "" for nobody.

    above    whether `path` is a folder above the folder of kernels. Such a folder may belong to the administrator, and
             everybody may write to it if its sticky bit is set, as that of /tmp: then nobody can move another's folder
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if status.st_uid != os.getuid() and not (above and status.st_uid == 0):
        return "belongs to another user"
    others = status.st_mode & (stat.S_IWOTH if above and own_group(status.st_gid) else stat.S_IWGRP | stat.S_IWOTH)
    return "can be written by others" if others and not (above and status.st_mode & stat.S_ISVTX) else ""


def own_group(group: int) -> bool:
    """Is this the group that many systems give to every user, with the user as its only member?"""
    import grp
    import pwd

    try:
        user, known = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return known.gr_name == user and set(known.gr_mem) <= {user}


warned: set[Path] = set()


def warn_once(path: Path, reason: str):
    if path not in warned:
        warned.add(path)
        message = (
            f"odelab compiles in memory: {path} {reason}, and machine code is loaded only from a folder of your own; "
            "take the rights of others away (chmod -R go-w), or set ODELAB_CACHE to another folder."
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def replace(path: Path, text: str):
    """Write a file atomically: into a new file that is then renamed, so that a half-written file is never read."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


@contextlib.contextmanager
def hold_lock(path: Path):
    """A lock: one process compiles a kernel while the others wait, and then load it.

    On a file system without locks each process compiles it.
    """
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
    """Remove the least recently used kernels, so that fewer than KEPT are left."""
    try:
        places = sorted((p for p in kernels.iterdir() if p.is_dir()), key=last_used)
    except OSError:
        return
    for place in places[: max(0, len(places) - KEPT + 1)]:
        shutil.rmtree(place, ignore_errors=True)


def last_used(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:  # another process removed it
        return 0.0
