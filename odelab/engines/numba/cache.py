"""Machine code on disk: a file for each kernel and the types of its arguments, in numba's own form.

A file's name contains a digest of everything the machine code depends on, so nothing in the folder is ever out of date;
the file begins with a digest of its name and content, so that nothing damaged or renamed is loaded. Loading machine
code means executing it. It is therefore loaded only from a folder that belongs to this user, that nobody else can write
to, and that nobody else can replace by another folder. Nothing here can make a run fail: where a file cannot be
written, read or trusted, the kernel is compiled in memory.

Machine code of several processes meets in the one that loads it, and is linked there by names; `names_are_apart` sees
to it that no two functions have the same.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import pickle
import platform
import secrets
import shutil
import stat
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import odelab

KEPT = 400  # files at most; the least recently used ones are removed first
DIGEST = hashlib.sha256().digest_size


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


class OnDisk:
    """Where numba looks for the machine code of a kernel before it compiles it, and hands it to afterwards.

    It stands in the place of numba's own cache, which keeps functions of files alone, and takes them for changed where
    their closures hold other functions.

    name    of the kernel; it must differ where the machine code may
    """

    def __init__(self, name: str):
        self.name = name
        self.cache_path = str(folder())  # which numba shows in its statistics

    def file(self, signature) -> Path:
        types = hashlib.sha256(str(signature).encode()).hexdigest()[:12]
        return (folder() / "kernels").resolve() / f"{self.name}_{types}"  # a link is resolved once, before any check

    def load_overload(self, signature, context):
        """The compiled function for these types of arguments; None where there is none that can be trusted."""
        from numba.core.compiler import CompileResult

        with contextlib.suppress(Exception):
            path = self.file(signature)
            if os.path.lexists(path) and is_private(path):
                content = path.read_bytes()
                if content[:DIGEST] == seal(path, content[DIGEST:]):
                    with contextlib.suppress(OSError):  # of a file system that nobody can write to
                        os.utime(path)
                    context.refresh()
                    return CompileResult._rebuild(context, *pickle.loads(content[DIGEST:]))
        return None

    def save_overload(self, signature, compiled):
        """Keep a compiled function, unless its machine code holds an address."""
        from numba.core.serialize import dumps

        has_address = compiled.library.has_dynamic_globals or "jitclass" in str(signature)
        if has_address or not all(one.can_cache for one in compiled.lifted):
            return
        with contextlib.suppress(Exception):  # no folder, no room, a type that numba cannot write
            path = self.file(signature)
            make_folder(path.parent)
            if is_private(path):
                content = dumps(compiled._reduce())
                replace(path, seal(path, content) + content)
                prune(path.parent)

    def flush(self):
        """Called by numba where a function is compiled anew; the name of a kernel then changes."""


def seal(path: Path, content: bytes) -> bytes:
    """The digest with which a file begins."""
    return hashlib.sha256(path.name.encode() + content).digest()


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


def make_folder(place: Path):
    """Make the folder where it is missing; only its owner has access to it."""
    for path in (*reversed(place.parents), place):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)


def is_private(file: Path) -> bool:
    """Can nobody but this user decide what is in a file, there or not? If somebody can, one warning says so."""
    if os.name != "posix":
        return True
    for path in (*reversed(file.parents), *([file] if os.path.lexists(file) else [])):
        reason = why_unsafe(path, above=path in file.parents[2:])
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


def replace(path: Path, content: bytes):
    """Write a file atomically: into a new file that is then renamed, so that a half-written file is never read."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def prune(kernels: Path):
    """Remove the least recently used files, so that KEPT are left; earlier versions kept a folder for each kernel."""
    for path in sorted(kernels.iterdir(), key=last_used)[:-KEPT]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process removed it
        return 0.0


@functools.cache
def environment() -> str:
    """What else machine code depends on: versions, the processor, and odelab's own sources."""
    from importlib import metadata

    import numba
    from llvmlite import binding

    features = hashlib.sha256(binding.get_host_cpu_features().flatten().encode()).hexdigest()[:8]
    versions = {
        "odelab": f"{odelab.__version__} ({digest_of(Path(odelab.__file__).parent)})",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": metadata.version("llvmlite"),
        binding.get_host_cpu_name(): f"({features})",
    }
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def digest_of(package: Path) -> str:
    """A digest of all Python files of a package: any of them may be compiled along."""
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        found.update(f"{file.relative_to(package)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:12]
