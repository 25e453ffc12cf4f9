"""Measuring all problems, here, on processes or on a Dask cluster; what is done is kept, and a stopped run goes on."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import odelab as ol
from netbridge.files import replacing
from studies.lab.report.terminal import show_progress
from studies.switching.design import Preset
from studies.switching.measures import all_subjects, measure
from studies.switching.subjects import Subject
from studies.switching.yours import file_of

SHARP = "RODAS5P"  # the method of the exact states
FORMAT = 2  # of what is kept; another number where it is told in another way


def options_of(preset: Preset, explicit: str, implicit: str, define: str | None) -> dict:
    """Everything that the measurements of a problem depend on, in plain JSON."""
    told = {name: getattr(preset, name) for name in ("windows", "tolerances", "others", "auto")}
    told |= {"explicit": explicit, "implicit": implicit, "format": FORMAT}
    if define is not None:
        told |= {"define": Path(define).read_text(), "eps": preset.eps}
    return json.loads(json.dumps(told))


def measure_all(
    wanted: list[Subject],
    preset: Preset,
    pair: tuple[str, str],
    folder: Path,
    define: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    fresh: bool = False,
) -> list[dict]:
    """The measurements of all problems, from an earlier run with the same options as far as they are there.

    pair       names of the explicit and the implicit method
    folder     where measurements are kept, a file per problem
    define     a file with problems and indices of the user's, which every worker must be able to read
    workers    processes, one thread each
    scheduler  the address of a Dask scheduler, whose workers measure instead
    fresh      measure anew what is there
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = options_of(preset, *pair, define)
    told: dict[str, dict] = {}
    missing: list[str] = []
    paths = {one.name: folder / f"{file_of(one.name)}.json" for one in wanted}
    for name, path in paths.items():
        kept = json.loads(path.read_text()) if path.is_file() and not fresh else {}
        if kept.get("options") == options and kept.get("name") == name:
            told[name] = kept
        else:
            missing.append(name)

    def keep(name: str, found: dict) -> None:
        with replacing(paths[name]) as unfinished:
            unfinished.write_text(json.dumps(found | {"options": options}))
        told[name] = found
        show_progress(f"{name}: {len(found['windows'])} windows ({len(told)} of {len(wanted)} problems)")

    rest = (preset, *pair, define, options.get("define"))
    if scheduler is not None and missing:
        on_a_cluster(scheduler, missing, rest, keep)
    elif workers > 1 and len(missing) > 1:
        with ProcessPoolExecutor(workers) as pool:
            futures = {pool.submit(measure_by_name, name, *rest): name for name in missing}
            for future in as_completed(futures):
                keep(futures[future], future.result())
    else:
        for name in missing:
            keep(name, measure_by_name(name, *rest))
    return [told[one.name] for one in wanted]


def on_a_cluster(address: str, missing: list[str], rest: tuple, keep: Callable[[str, dict], None]) -> None:
    """Measure on the workers of a Dask scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("`--executor` needs the package distributed: pip install distributed.") from None
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ValueError(f"`--executor` = {address!r} is not the address of a Dask scheduler: {error}") from None
    with client:
        futures = {client.submit(measure_by_name, name, *rest, pure=False): name for name in missing}
        from distributed import as_completed as finished

        for future in finished(list(futures)):
            keep(futures[future], future.result())


def measure_by_name(
    name: str, preset: Preset, explicit: str, implicit: str, define: str | None, text: str | None
) -> dict:
    """`measure` of the problem of this name: what a worker is sent is small and can be pickled.

    text   what the file `define` holds where the run was started; a worker that reads another one measures nothing
    """
    if define is not None and (not Path(define).is_file() or Path(define).read_text() != text):
        raise ValueError(f"`--define` = {define!r} is not the same file for the worker as where the run was started.")
    (one,) = (one for one in all_subjects(define) if one.name == name)
    try:
        return measure(one, preset, explicit, implicit, SHARP, define)
    except ol.RunFailed as failure:
        raise ValueError(f"the problem {name!r} cannot be measured. {failure}") from failure
