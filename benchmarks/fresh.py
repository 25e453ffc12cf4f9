"""What the first call costs: compiling a new right-hand side, loading a kernel, a whole fresh process. Each in a child
process with a cache folder of its own."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from benchmarks.rows import Goal, Row, below
from benchmarks.timing import wrong_answer

CHILD = """
import json, sys, time
began = time.perf_counter()
import numba
imported = time.perf_counter()
import odelab as ol
name, end, what = sys.argv[1], float(sys.argv[2]), sys.argv[3]
problem = getattr(ol.problems, name)().replace(t_span=(0.0, end))
control = ol.adaptive(1e-8, 1e-10, law="i")
start = time.perf_counter()
if what == "ensemble":
    u = ol.ensemble(problem, ol.DOPRI5, control, u0=problem.u0[None], params=[problem.params], threads=1).u[-1]
else:
    u = ol.solve(problem, ol.DOPRI5, control, engine="compiled").u[-1]
reference = next(known.u for known in problem.references if known.t == end)
error = float(max(abs(u - reference) / abs(reference)))
print(json.dumps({"call": time.perf_counter() - start, "error": error}))
"""
WORKS = (  # problem, its end, components, seconds allowed for compiling
    ("van_der_pol", 20.0, 2, 2.0),
    ("lorenz", 10.0, 3, 2.0),
    ("hires", 5.0, 8, 5.0),
)
ALLOWED = 1e-3


class Child(NamedTuple):
    call: float  # seconds of the first call
    process: float  # seconds of the whole process
    error: float
    failure: str = ""


def child(cache: str, name: str, end: float, what: str) -> Child:
    environment = {**os.environ, "ODELAB_CACHE": cache, "NUMBA_CACHE_DIR": cache}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, name, str(end), what],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    whole = time.perf_counter() - start
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return Child(0.0, 0.0, float("inf"), lines[-1])
    told = json.loads(done.stdout.splitlines()[-1])
    return Child(told["call"], whole, told["error"])


def rows(works=WORKS, repeats: int = 5) -> list[Row]:
    """First call with an empty cache; then, the cache warm, the first call and the whole process, medians."""
    found = []
    for name, end, size, seconds in works:
        for what in ("solve", "ensemble"):
            with tempfile.TemporaryDirectory() as cache:
                cold = child(cache, name, end, what)
                title = f"{what} {name}, n = {size}"
                found.append(row(f"{title}: compile", [cold], "call", below(seconds)))
                if cold.failure:
                    continue
                warm = [child(cache, name, end, what) for _ in range(repeats)]
                found.append(row(f"{title}: first call, warm cache", warm, "call", None))
                found.append(row(f"{title}: fresh process, warm cache", warm, "process", below(0.6)))
    return found


def row(work: str, children: list[Child], field: str, goal: Goal | None) -> Row:
    failure = children[0].failure
    missing = "has no attribute" in failure  # a public name that is not there yet
    return Row(
        work=work,
        name="odelab",
        peer="",
        ours=None if failure else statistics.median(getattr(c, field) for c in children),
        goal=goal,
        unit="s",
        error=None if failure else max(c.error for c in children),
        wrong="" if missing else failure or wrong_answer(max(c.error for c in children), ALLOWED),
        note=failure if missing else "",
    )
