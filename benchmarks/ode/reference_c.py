"""The C reference behind Python: compiled on the spot, kept in the user's cache folder, called through ctypes.

`limit.c` (scalar) and `limit_grid.c` are compiled by gcc where there is one, `limit_lanes.c` by clang with 16 lanes, or
by gcc with 8. The name of a library is the hash of its source, its command and the compiler's version.
"""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness.machine import first_line, processor

FLAGS = ("-O3", "-march=native", "-std=gnu11", "-ffp-contract=fast", "-fopenmp-simd", "-Wno-psabi", "-shared", "-fPIC")
PROBLEMS = ("van_der_pol", "lorenz", "robertson", "hires", "morse", "two_springs")  # the order of the enum in limit.c
METHODS = ("DOPRI5", "RKF45")
LAWS = ("i", "pi")
MOST = 10**9  # attempts


class Answer(NamedTuple):
    u: np.ndarray  # (N, n) end states
    accepted: np.ndarray  # (N,)
    rejected: np.ndarray


class NoCompiler(RuntimeError):
    """No C compiler is installed."""


def compiler(*names: str) -> str | None:
    return next((name for name in names if shutil.which(name)), None)


def scalar_compiler() -> str | None:
    return compiler("gcc", "clang", "cc")


def lanes_compiler() -> tuple[str, int] | None:
    """(compiler, lanes): the pair that is fastest for vector extensions; gcc 12 spills with 16 lanes."""
    name = compiler("clang", "gcc")
    return (name, 16 if name == "clang" else 8) if name else None


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ODELAB_CACHE") or Path(home) / "odelab") / "benchmarks"


@functools.cache
def library(source: str, compiler_name: str, *defines: str) -> ctypes.CDLL:
    """The compiled library of a C file beside this one; written beside its place, then renamed."""
    path = Path(__file__).with_name(source)
    command = [compiler_name, *FLAGS, *defines]
    cpu = processor()
    key = "\0".join(
        (path.read_text(), *command, first_line(compiler_name), cpu.get("model name", ""), cpu.get("flags", ""))
    )
    target = cache_folder() / f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            built = Path(folder) / target.name
            subprocess.run([*command, "-o", str(built), str(path), "-lm"], check=True, capture_output=True, text=True)
            built.replace(target)
    return ctypes.CDLL(str(target))


@functools.cache
def function(source: str, name: str, compiler_name: str, signature: str, *defines: str):
    kinds = {"i": ctypes.c_int, "l": ctypes.c_long, "d": ctypes.c_double, "p": ctypes.c_void_p}
    found = getattr(library(source, compiler_name, *defines), name)
    found.argtypes, found.restype = (
        [kinds[letter] for letter in signature],
        ctypes.c_int if source == "limit_grid.c" else None,
    )
    return found


def ensemble(problem, u0, params, t_span, rtol, atol, method="DOPRI5", law="i", first_step=0.0):
    """A callable that runs every row of `u0` (N, n) with its row of `params` (N, k) in turn and returns an Answer."""
    name = scalar_compiler()
    if name is None:
        raise NoCompiler("install gcc or clang")
    start, p, counts = states(u0), states(params), np.zeros((len(np.atleast_2d(u0)), 2), dtype=np.int64)
    if len(p) != len(start):
        raise ValueError(f"`params` must have one row per run, got {len(p)} rows for {len(start)} runs.")
    run = function("limit.c", "limit_ensemble", name, "iiiliiddppdddlp")
    which = (PROBLEMS.index(problem), METHODS.index(method), LAWS.index(law))
    t0, t1 = map(float, t_span)
    u = start.copy()
    arguments = (*which, *start.shape[:1], start.shape[1], p.shape[1], t0, t1, u.ctypes.data, p.ctypes.data)
    arguments += (rtol, atol, first_step, MOST, counts.ctypes.data)

    def call(_alive=(p, counts)):  # as long as their addresses are used
        u[:] = start
        run(*arguments)
        return Answer(u, counts[:, 0], counts[:, 1])

    return call


def lanes(u0, params, t_span, rtol, atol, first_step):
    """The same for van der Pol with DOPRI5 and the I law, many lanes at a time."""
    found = lanes_compiler()
    if found is None:
        raise NoCompiler("install clang or gcc")
    name, width = found
    run = function("limit_lanes.c", "limit_lanes", name, "lddppdddp", f"-DLANES={width}")
    start, p = states(u0), states(params)
    u, counts = start.copy(), np.zeros((len(start), 2), dtype=np.int64)
    t0, t1 = map(float, t_span)

    def call():
        u[:] = start
        run(len(start), t0, t1, u.ctypes.data, p.ctypes.data, rtol, atol, first_step, counts.ctypes.data)
        return Answer(u, counts[:, 0], counts[:, 1])

    return call


def grid(u0, params, t_span, rtol, atol, first_step):
    """DOPRI5 with the I law on the 1-D Brusselator; returns an Answer of one run."""
    name = scalar_compiler()
    if name is None:
        raise NoCompiler("install gcc or clang")
    run = function("limit_grid.c", "limit_grid", name, "iddppdddlp")
    start, p = np.array(u0, dtype=float), np.array(params, dtype=float)
    u, counts = start.copy(), np.zeros((1, 2), dtype=np.int64)
    t0, t1 = map(float, t_span)

    def call():
        u[:] = start
        if run(u.size // 2, t0, t1, u.ctypes.data, p.ctypes.data, rtol, atol, first_step, MOST, counts.ctypes.data):
            raise MemoryError(f"no memory for {u.size} components")
        return Answer(u[None], counts[:, 0], counts[:, 1])

    return call


def states(u) -> np.ndarray:
    return np.atleast_2d(np.array(u, dtype=float, order="C"))
