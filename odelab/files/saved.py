"""Results in files: arrays and a header of plain words and numbers, no pickles, so that any version can read them."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from odelab.control.controllers import Controller, adaptive, fixed
from odelab.control.laws import LAWS, Law
from odelab.engines.lanes.result import Ensemble
from odelab.files.atomic import replacing
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.results import Result
from odelab.runs.dense import Dense
from odelab.runs.events import EventRecord
from odelab.runs.trajectory import Trajectory
from odelab.stiffness.spectrum import Spectrum

FORMAT = 1
KNOWN = ("slope", "sai", "h_rho")  # what is kept of a run where it is known: not all can be computed again
FOUND = ("t", "u", "direction")
CLASSES = {one.__name__: one for one in (Trajectory, Ensemble, Spectrum)}

__all__ = ["load", "register", "save"]


class Kept(NamedTuple):
    """How the results of a class are kept: `fields` of one, {name: value}, and what makes one of these again."""

    fields: Callable[[Any], Mapping[str, Any]]
    made: Callable[..., Any]


REGISTERED: dict[str, Kept] = {}  # classes of other packages, by their names


def register(cls=None, *, fields=None, made=None):
    """Let `save` and `load` know a class; a decorator for dataclasses of arrays, numbers, words, and tuples of them.

    cls     the class
    fields  fields(result), the arrays and plain values that a file keeps, by name; by default those of the dataclass
    made    made(**fields) makes the result again; by default the class. Arrays are NumPy's, sequences are tuples
    """
    if cls is None:
        return lambda cls: register(cls, fields=fields, made=made)
    REGISTERED[cls.__name__] = Kept(fields or values_of, made or cls)
    return cls


def values_of(result) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}


def as_tuples(value):
    """A value of JSON with tuples in place of its lists."""
    if isinstance(value, dict):
        return {name: as_tuples(one) for name, one in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def save(result: Result, path) -> Path:
    """Write a run, an ensemble, a spectrum or a result of `netbridge` to a file, whole or not at all.

    result   a Trajectory, an Ensemble or a Spectrum; of netbridge a Record, Records, Gates and other results
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
    name = type(result).__name__
    if name not in CLASSES and name not in REGISTERED:
        raise TypeError(f"`result` must be one of {', '.join([*CLASSES, *REGISTERED])}, got {name}.")
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
    arrays, header = plain_parts(REGISTERED[name].fields(result)) if name in REGISTERED else parts_of(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        head = {"format": FORMAT, "class": name, "package": type(result).__module__.partition(".")[0], **header}
        everything: dict[str, Any] = {"header": json.dumps(head), **arrays}
        np.savez_compressed(file, **everything)
    return path


def load(path, problem: Problem | None = None) -> Any:
    """Read a result that `odelab.save` has written.

    path     the file
    problem  the Problem of the run, of which a file keeps the name alone; with it the run has its dense output again.
             None by default

    Returns what was saved. Raises ValueError for a file that holds no such result, and for a problem of another name or
    start, span or parameters.

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
        name, package = header["class"], header.get("package", "odelab")
        known = name in CLASSES or name in REGISTERED
        if package == "odelab" and not known:
            raise ValueError(f"{name} is no result")
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever the readers of archives, arrays and JSON raise
        raise ValueError(f"{path}: damaged, or no result of odelab ({error}).") from None
    if header["format"] > FORMAT:
        raise ValueError(f"{path} was written by a later version of odelab (format {header['format']}); update odelab.")
    if not known:
        raise ValueError(f"{path} holds a {name} of {package}; import {package} first.")
    if name in REGISTERED:
        return REGISTERED[name].made(**arrays, **as_tuples(header["fields"]))
    if problem is not None and header.get("problem") != problem.name:
        raise ValueError(f"{path} holds a run of {header.get('problem')!r}, and `problem` is {problem.name!r}.")
    for field, value in (header.get("given") or {}).items():
        if problem is not None and given_by(problem)[field] != value:
            raise ValueError(f"{path} holds a run with `{field}` = {value}, and that of `problem` differs.")
    return built(CLASSES[name], arrays, header, problem)


def plain_parts(fields: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays among some fields, and a header with all others."""
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    return arrays, {"fields": {name: value for name, value in fields.items() if name not in arrays}}


def parts_of(result) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a result, and everything else of it as words and numbers."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"fields": {}}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            if field.name != "end_u" or value is not result.u:  # the same array, of an ensemble without wanted times
                arrays[field.name] = value
        elif isinstance(value, np.generic):
            header["fields"][field.name] = value.item()
        elif value is None or isinstance(value, str | int | float | bool):
            header["fields"][field.name] = value
        elif isinstance(value, Problem):
            header[field.name] = value.name
        elif isinstance(value, StepMethod):  # another with the name of one of odelab's is the user's own
            header[field.name] = value.name if method_named(value.name) == value else ""
        elif isinstance(value, Controller):
            header[field.name] = described(value)
    if isinstance(result, Ensemble) and result.events is not None:
        keep_events(result.events, arrays, header)
    if isinstance(result, Trajectory):
        known = {name: value for name, value in vars(result).items() if name in KNOWN}
        arrays |= {f"known.{name}": np.asarray(value) for name, value in known.items()}
        header["message"], header["ending"] = result.message, result.ending
        header["turns"] = None if result.turns is None else [int(count) for count in result.turns]
        header["doubt"], header["trials"] = result.doubt, int(result.trials)
        header["asked"] = asked_in_words(result.asked)
        header["given"] = None if result.problem is None else given_by(result.problem)
        header["continues"] = isinstance(result.interpolant, Dense) and result.interpolant.project is None
        keep_events([result.events], arrays, header)
    return arrays, header


def keep_events(runs, arrays, header):
    """Add the event records of runs to the parts of a result: those of one event stand one after the other."""
    header["events"] = [one.name for one in runs[0]] if len(runs) else []
    for number in range(len(header["events"])):
        found = [records[number] for records in runs]
        for name in FOUND:
            arrays[f"event{number}.{name}"] = np.concatenate([getattr(one, name) for one in found])
        arrays[f"event{number}.counts"] = np.array([[len(one.t), one.undefined] for one in found])


def kept_events(arrays, header, count: int) -> list[tuple[EventRecord, ...]]:
    """The event records of so many runs."""
    events = []
    for number, said in enumerate(header["events"]):
        counts, undefined = arrays[f"event{number}.counts"].T
        columns = [np.split(arrays[f"event{number}.{name}"], np.cumsum(counts)[:-1]) for name in FOUND]
        rows = zip(*columns, undefined.tolist(), strict=True)
        events.append([EventRecord(t, u, direction, unknown, said) for t, u, direction, unknown in rows])
    return [tuple(records[run] for records in events) for run in range(count)]


def asked_in_words(asked) -> dict[str, Any] | None:
    """The arguments with which a run can be repeated; None where a function of the user's is among them."""
    if asked is None or asked["project"] is not None or asked["changing"]:
        return None
    return {name: asked[name] for name in ("engine", "exact")} | {"tstops": asked["tstops"].tolist()}


def given_by(problem: Problem) -> dict[str, Any]:
    """What of a problem its run depends on, as far as it is numbers."""
    params = problem.params
    numbers = isinstance(params, tuple) and all(isinstance(one, Real) for one in params)
    return {
        "u0": problem.u0.tolist(),
        "t_span": list(problem.t_span),
        "params": [float(one) for one in params] if numbers else None,
    }


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


def known_law(name, b, a, smooth) -> Law:
    """The law of these weights: one of odelab's, whose weights are fractions, where they are the same."""
    usual = LAWS.get(name)
    if usual is not None and ([*map(float, usual.b)], [*map(float, usual.a)], usual.smooth) == (b, a, smooth):
        return usual
    return Law(name, tuple(b), tuple(a), smooth)


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
    if "events" in header:
        runs = kept_events(arrays, header, 1 if cls is Trajectory else len(fields["u"]))
        fields["events"] = runs[0] if cls is Trajectory else runs
    if cls is Ensemble:
        fields.setdefault("end_u", fields["u"])
    if cls is not Trajectory:
        return cls(**fields)
    fields["turns"] = None if header["turns"] is None else tuple(header["turns"])
    method = fields["method"]
    if problem is not None and method is not None and header["continues"] and fields.get("step_u") is not None:
        numbers = {one.name: number for number, one in enumerate(method.members)}
        took = fields.get("took")
        took = None if took is None else np.array([numbers[name] for name in took.tolist()])
        fields["interpolant"] = Dense(problem, method, fields["step_t"], fields["step_u"], fields["h"], took=took)
    asked = header.get("asked")
    if asked is not None and None not in (problem, method, fields["controller"]):
        fields["asked"] = {**asked, "tstops": np.array(asked["tstops"]), "project": None, "changing": {}}
    computed = {name: arrays[f"known.{name}"] for name in KNOWN if f"known.{name}" in arrays}
    run = Trajectory(**fields, known={"message": header["message"], "ending": header["ending"], **computed})
    run.doubt, run.trials = header.get("doubt"), header.get("trials", 0)
    return run
