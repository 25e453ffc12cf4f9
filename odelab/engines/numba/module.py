"""The source text of a kernel's module, and the name under which its machine code is stored."""

import functools
import hashlib
import platform
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import odelab
from odelab.control.controllers import Controller
from odelab.engines.numba import one_source
from odelab.engines.numba.fingerprint import Fingerprint, fingerprint
from odelab.engines.numba.obstacles import obstacle_to_kernel
from odelab.engines.numba.request import Request, request_of_run
from odelab.problem import Problem
from odelab.right_hand_side import name_of

HEADER = """
import math

import numpy as np
from numba import njit, types
from odelab.control import feedback as control, powers
from odelab.engines.numba.jit import INNER, teach_maths

teach_maths()
CACHE = "__file__" in globals()  # machine code is stored beside the module's file; a module in memory has none
EXACT = {"nogil": True, "error_model": "numpy", "fastmath": False, **INNER}
OPTIONS = {**EXACT, "fastmath": {"contract"}}  # a * b + c as one operation; nothing else is loosened
CALLED = {**OPTIONS, "no_cpython_wrapper": False, "cache": CACHE}  # for what Python calls
"""


class Module(NamedTuple):
    """A kernel's source, and the user's functions that are handed to it.

    text     the source; it calls the functions by their names in `given`
    name     of the module, equal for equal machine code
    form     of the right-hand side: component, array or in-place
    given    the user's functions by the names the text has for them
    taken    their fingerprint
    """

    text: str
    name: str
    form: str
    given: dict[str, Callable]
    taken: Fingerprint


def module_for(request: Request) -> Module:
    """The module of a kernel; raises `Unseen` where no fingerprint of the user's functions can be taken."""
    given = request.functions
    taken = fingerprint(*given.values())
    text = text_for(request)
    digest = hashlib.sha256((text + taken.digest).encode()).hexdigest()[:24]
    label = name_of(request.rhs)
    name = f"{label if label.isidentifier() else 'rhs'}_{digest}"
    return Module(text, name, request.form, given, taken)


def text_of_run(problem: Problem, method, controller: Controller, untraceable: str) -> tuple[str, list]:
    """The source of the kernel that numba compiles, and the user's functions that it calls."""
    reason = obstacle_to_kernel(problem, method, controller)
    if reason is not None:
        raise ValueError(f"there is no such kernel: {reason}; {untraceable}.")
    request = request_of_run(problem, method, controller)
    return text_for(request), list(request.functions.values())


def text_for(request: Request) -> str:
    """The source of a kernel, which calls the right-hand side by the name `rhs`."""
    definitions, lines = one_source.advance(request)
    parts = [
        f'"""A kernel of odelab: {request.about}.\n\nWritten for {environment()}.\n"""',
        HEADER.strip(),
        f"# Handed over by the caller, compiled: {', '.join(request.functions)}.",
        *definitions,
        "\n".join(["@njit(**CALLED)", *lines]),  # compiled at the first call, which shows the types of its arguments
    ]
    return "\n\n".join(parts) + "\n"


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
