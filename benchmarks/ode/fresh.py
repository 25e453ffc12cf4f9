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

from benchmarks.harness.rows import Goal, Row, below
from benchmarks.harness.timing import wrong_answer

CHILD = """
import json, resource, sys, time
name, end, what, state = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4]
if state == "cold":
    import numba  # its import is no part of compiling
import odelab as ol
problem = getattr(ol.problems, name)().replace(t_span=(0.0, end))
control = ol.adaptive(1e-8, 1e-10, law="i")
wall, processor = time.perf_counter(), time.process_time()
if what == "ensemble":
    u = ol.ensemble(problem, ol.DOPRI5, control, u0=problem.u0[None], params=[problem.params], threads=1).u[-1]
else:
    u = ol.solve(problem, ol.DOPRI5, control, engine="compiled").u[-1]
call = time.perf_counter() - wall, time.process_time() - processor
reference = next(known.u for known in problem.references if known.t == end)
print(json.dumps({"call": call, "error": float(max(abs(u - reference) / abs(reference)))}))
"""
WORKS = (  # problem, its end, components, seconds allowed for compiling
    ("van_der_pol", 20.0, 2, 2.0),
    ("lorenz", 10.0, 3, 2.0),
    ("hires", 5.0, 8, 5.0),
)
ALLOWED = 1e-3


class Child(NamedTuple):
    call: tuple[float, float]  # (wall, processor) seconds of the first call
    process: tuple[float, float]  # of the whole process
    error: float
    failure: str = ""


def child(cache: str, *arguments) -> Child:
    environment = {**os.environ, "ODELAB_CACHE": cache, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    processor, wall = children_seconds(), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    whole = time.perf_counter() - wall, children_seconds() - processor
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return Child((0.0, 0.0), (0.0, 0.0), float("inf"), lines[-1][:200])
    told = json.loads(done.stdout.splitlines()[-1])
    return Child(tuple(told["call"]), whole, told["error"])


def children_seconds() -> float:
    used = os.times()
    return used.children_user + used.children_system


def rows(works=WORKS, repeats: int = 5) -> list[Row]:
    """First call with an empty cache; then, the cache warm, the first call and the whole process, medians."""
    found = []
    for name, end, size, seconds in works:
        for what in ("solve", "ensemble"):
            with tempfile.TemporaryDirectory() as cache:
                cold = child(cache, name, end, what, "cold")
                title = f"{what} {name}, n = {size}"
                found.append(row(f"{title}: compile", [cold], "call", below(seconds)))
                if cold.failure:
                    continue
                warm = [child(cache, name, end, what, "warm") for _ in range(repeats)]
                found.append(row(f"{title}: first call, warm cache", warm, "call", None))
                found.append(row(f"{title}: fresh process, warm cache", warm, "process", below(0.6)))
    return found


def row(work: str, children: list[Child], field: str, goal: Goal | None) -> Row:
    """Processor seconds; the wall clock, which other work on the machine delays, is in the note."""
    failure = next((c.failure for c in children if c.failure), "")
    missing = "has no attribute" in failure  # a public name that is not there yet
    wall, processor = (statistics.median(getattr(c, field)[i] for c in children) for i in (0, 1))
    error = max(c.error for c in children)
    return Row(
        work=work,
        name="odelab",
        peer="",
        ours=None if failure else processor,
        goal=goal,
        unit="s",
        error=None if failure else error,
        wrong="" if missing else failure or wrong_answer(error, ALLOWED),
        note=f"{wall:.2f} s on the wall clock" if not failure else failure if missing else "",
    )
