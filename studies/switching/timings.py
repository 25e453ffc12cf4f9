"""How long attempts take, and the parts of a linearly implicit one: weights for costs in other units than evaluations.

Times are this machine's, and measured here whoever measures the windows; only their ratios enter.
"""

import json
from pathlib import Path

import odelab as ol
from netbridge.files import replacing
from odelab.experiments import timing
from studies.lab.report.terminal import show_progress
from studies.switching.subjects import Subject
from studies.switching.yours import adopt


def measure_or_read(
    path: Path, wanted: list[Subject], pair: tuple[str, str], define: str | None = None, fresh: bool = False
) -> dict[str, dict]:
    """By problem "seconds", of an attempt of each method, and "parts", of `odelab.experiments.timing.Parts`.

    path    where they are kept; those of an earlier run with the same methods are taken from there
    wanted  the problems
    pair    names of the explicit and the implicit method
    define  the file of the user's that some of them are from
    fresh   measure anew what is there
    """
    kept = json.loads(path.read_text()) if path.is_file() else {}
    mine = adopt(define).problems
    for one in wanted:
        options = {"pair": list(pair), "file": Path(define).read_text() if define and one.name in mine else None}
        if fresh or kept.get(one.name, {}).get("options") != options:
            kept[one.name] = {"options": options} | measure(one.problem(), pair)
            with replacing(path) as unfinished:
                unfinished.write_text(json.dumps(kept))
            show_progress(f"{one.name}: timed")
    return {one.name: {key: kept[one.name][key] for key in ("seconds", "parts")} for one in wanted}


def measure(problem: ol.Problem, pair: tuple[str, str]) -> dict[str, dict]:
    seconds = (timing.seconds_per_attempt(problem, getattr(ol, name)) for name in pair)
    return {
        "seconds": dict(zip(("explicit", "implicit"), seconds, strict=True)),
        "parts": timing.seconds_of_parts(problem)._asdict(),
    }
