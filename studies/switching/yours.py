"""A user's own problems and indices: what a file of `--define` holds, and what its functions may return."""

import functools
import re
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import odelab as ol
from studies.lab import definitions
from studies.switching.observations import INDICES
from studies.switching.policies import CHOICES
from studies.switching.subjects import subjects


def adopt(path: str | None) -> SimpleNamespace:
    """What a file of `--define` holds: `problems` and `indices`, dictionaries that are empty without a file.

    Each is a dictionary of functions by their names:

        PROBLEMS = {"mine": make}        make() returns an `odelab.Problem`; it is a family of its own
        INDICES = {"my index": index}    index(J, f, f_t, u, scale, tol) returns a number, larger where it says stiff

    An index gets the Jacobian (n, n), the slope, its derivative with respect to time, the state and the scale of each
    component, (n,), and the error asked for, and may depend on nothing else. It is judged beside the study's own.
    What the file imports is not watched: measure anew, with `--fresh`, where that has changed.
    """
    if path is None:
        return SimpleNamespace(problems={}, indices={})
    return read_definitions(path, Path(path).read_bytes() if Path(path).is_file() else b"")


@functools.cache
def read_definitions(path: str, content: bytes) -> SimpleNamespace:
    """`adopt`, once for each content of the file: a worker may outlive it."""
    module = definitions.module_of(path)
    own = SimpleNamespace(
        **{name.lower(): definitions.named_functions(module, name) for name in ("PROBLEMS", "INDICES")}
    )
    if not (own.problems or own.indices):
        raise SystemExit(f"{path} defines neither `PROBLEMS` nor `INDICES`, dictionaries of functions by their names.")
    check_names(path, "PROBLEMS", own.problems, {*(one.name for one in subjects()), "timings"})
    check_names(path, "INDICES", own.indices, {*INDICES, *CHOICES})
    return own


def check_names(path: str, what: str, named: dict, known: set[str]) -> None:
    """Refuse names that the study has, or that make one file's name of two, for they would take each other's place."""
    taken = {file_of(one) for one in known}
    for name in named:
        unfit = what == "PROBLEMS" and re.search(r"^(factorial|network)|[/\\\0]", str(name))
        if not isinstance(name, str) or not name.strip() or unfit or file_of(name) in taken:
            raise SystemExit(
                f"{path}: `{what}` has {name!r}, a name that the study has itself or that is no file's; take another."
            )
        taken.add(file_of(name))


def file_of(name: str) -> str:
    """The name of the file in which a problem's measurements are kept, without its ending."""
    return name.replace(" ", "_")


def problem_of(name: str, make) -> ol.Problem:
    """What a function of the user's makes, if it is a problem."""
    problem = ask(f"the problem {name!r}", make)
    if not isinstance(problem, ol.Problem):
        raise TypeError(f"the problem {name!r} of `--define` must return an odelab.Problem, got {problem!r}.")
    return problem


def value_of(name: str, index, J, f, f_t, u, scale, tol) -> float:
    """What a user's index says of a state; it gets copies, so that it cannot change what others see.

    NaN, which ranks lowest, is allowed.
    """
    found = []
    for _ in range(2):
        value = ask(f"the index {name!r}", index, *(np.array(one) for one in (J, f, f_t, u, scale)), tol)
        if np.shape(value) != () or isinstance(value, str | bytes) or not np.isrealobj(value) or value is None:
            raise ValueError(f"the index {name!r} of `--define` must return one real number, got {value!r}.")
        found.append(float(value))
    if found[0] != found[1] and not np.isnan(found).all():
        raise ValueError(
            f"the index {name!r} of `--define` returned {found[0]!r} and then {found[1]!r} for one state; it must "
            "depend on its arguments alone."
        )
    return found[0]


def ask(what: str, function, *given):
    """Call a function of the user's; what it raises is told with the line that raised it."""
    try:
        return function(*given)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"line {last.lineno} of {Path(last.filename).name}"
        raise ValueError(f"{what} of `--define` raised {type(error).__name__} in {place}: {error}.") from error
