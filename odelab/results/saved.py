"""Results in files: arrays and a header of plain words and numbers, no pickles, so that any version can read them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from odelab.control.controllers import Controller, adaptive, fixed
from odelab.control.laws import Law
from odelab.engines.lanes.result import Ensemble
from odelab.files import replacing
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.results.shown import Result
from odelab.runs.dense import Dense
from odelab.runs.events import EventRecord
from odelab.runs.trajectory import Trajectory
from odelab.stiffness.spectrum import Spectrum

FORMAT = 1
CLASSES = {one.__name__: one for one in (Trajectory, Ensemble, Spectrum)}

__all__ = ["load", "save"]


def save(result: Result, path) -> Path:
    """Write a run, an ensemble or a spectrum to a file, whole or not at all.

    result   a Trajectory, an Ensemble or a Spectrum
    path     where to; the file ends in .npz

    Returns the path. Kept are all arrays, bit by bit, and what is said of the run; not kept is the right-hand side,
    which `odelab.load` is given again. Raises TypeError for other results.

    >>> import odelab as ol
    >>> sol = ol.solve(ol.problems.lorenz(), ol.DOPRI5)
    >>> path = ol.save(sol, "lorenz")
    >>> again = ol.load(path, ol.problems.lorenz())
    >>> bool((again.u == sol.u).all()), bool((again(5.0) == sol(5.0)).all())
    (True, True)
    """
    if type(result).__name__ not in CLASSES:
        raise TypeError(f"`result` must be one of {', '.join(CLASSES)}, got {type(result).__name__}.")
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
    arrays, header = parts_of(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        head = {"format": FORMAT, "class": type(result).__name__, **header}
        everything: dict[str, Any] = {"header": json.dumps(head), **arrays}
        np.savez_compressed(file, **everything)
    return path


def load(path, problem: Problem | None = None) -> Any:
    """Read a result that `odelab.save` has written.

    path     the file
    problem  the Problem of the run, of which a file keeps the name alone; with it the run has its dense output again.
             None by default

    Returns what was saved. Raises ValueError for a file that holds no such result, and for a problem of another name or
    start.

    >>> import odelab as ol
    >>> path = ol.save(ol.spectrum([[-1.0, 2.0], [0.0, -3.0]]), "spectrum")
    >>> ol.load(path).values.tolist()
    [-1.0, -3.0]
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != "header"}
            header = json.loads(str(file["header"]))
        cls = CLASSES[header["class"]]
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever the readers of archives, arrays and JSON raise
        raise ValueError(f"{path}: damaged, or no result of odelab ({error}).") from None
    if header["format"] > FORMAT:
        raise ValueError(f"{path} was written by a later version of odelab (format {header['format']}); update odelab.")
    if problem is not None and header.get("problem") != problem.name:
        raise ValueError(f"{path} holds a run of {header.get('problem')!r}, and `problem` is {problem.name!r}.")
    return built(cls, arrays, header, problem)


def parts_of(result) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a result, and everything else of it as words and numbers."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"fields": {}}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, np.generic):
            header["fields"][field.name] = value.item()
        elif value is None or isinstance(value, str | int | float | bool):
            header["fields"][field.name] = value
        elif isinstance(value, Problem | StepMethod):
            header[field.name] = value.name
        elif isinstance(value, Controller):
            header[field.name] = described(value)
    if isinstance(result, Trajectory):
        header["message"] = result.message
        header["continues"] = isinstance(result.interpolant, Dense) and result.interpolant.project is None
        for number, found in enumerate(result.events):
            header.setdefault("events", []).append({"undefined": found.undefined, "name": found.name})
            arrays |= {f"event{number}.{name}": np.asarray(getattr(found, name)) for name in ("t", "u", "direction")}
    return arrays, header


def described(controller: Controller) -> dict[str, Any]:
    """What a controller is called, and what `odelab.adaptive` or `odelab.fixed` made it from, where one of them did."""
    said: dict[str, Any] = {"name": controller.name}
    if controller.h is not None:
        return said | {"h": controller.h}
    if controller.law is None:
        return said
    weights = ([float(x) for x in part] for part in (controller.law.b, controller.law.a))
    law = None if controller.law_by_method else [controller.law.name, *weights, controller.law.smooth]
    numbers = {name: getattr(controller, name) for name in ("rtol", "first_step", "max_step")}
    return said | numbers | {"atol": np.asarray(controller.atol).tolist(), "law": law}


def made_again(said: dict[str, Any]) -> Controller | None:
    """The controller of a header; None for one of the user's own."""
    if "h" in said:
        return fixed(said["h"])
    if "rtol" not in said:
        return None
    law = None if said["law"] is None else known_law(*said["law"])
    atol = np.asarray(said["atol"]) if isinstance(said["atol"], list) else said["atol"]
    made = adaptive(said["rtol"], atol, law, said["first_step"], said["max_step"])
    return dataclasses.replace(made, name=said["name"])


def known_law(name, b, a, smooth):
    from odelab.control.laws import LAWS

    return name if name in LAWS else Law(name, tuple(b), tuple(a), smooth)


def method_named(name: str | None) -> StepMethod | None:
    """The method of odelab with this name; None for one of the user's own."""
    import odelab

    return {one.name: one for one in vars(odelab).values() if isinstance(one, StepMethod)}.get(name or "")


def built(cls, arrays, header, problem):
    """A result from its parts."""
    fields = {**header["fields"], **{name: value for name, value in arrays.items() if "." not in name}}
    known = {field.name for field in dataclasses.fields(cls)}
    fields = {name: value for name, value in fields.items() if name in known}
    if "method" in header:
        fields["method"] = method_named(header["method"])
        fields["controller"] = made_again(header["controller"])
        fields["problem"] = problem
    if cls is not Trajectory:
        return cls(**fields)
    fields["events"] = tuple(
        EventRecord(*(arrays[f"event{number}.{name}"] for name in ("t", "u", "direction")), **said)
        for number, said in enumerate(header.get("events", []))
    )
    method = fields["method"]
    if problem is not None and method is not None and header["continues"] and fields.get("step_u") is not None:
        numbers = {one.name: number for number, one in enumerate(method.members)}
        took = fields.get("took")
        took = None if took is None else np.array([numbers[name] for name in took.tolist()])
        fields["interpolant"] = Dense(problem, method, fields["step_t"], fields["step_u"], fields["h"], took=took)
    return Trajectory(**fields, known={"message": header["message"]})
