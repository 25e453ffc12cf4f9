"""The rows that say why a ratio to C is another one on another processor.

They are what its arithmetic costs, and how much of the speed of lanes is the width of its vectors."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.harness.rows import Row
from benchmarks.harness.timing import Contestant
from benchmarks.ode import reference_c
from benchmarks.ode.works import equations
from odelab.experiments.clock import quartiles

OPERATIONS = ("multiply_add", "divide", "root", "exponential")
MANY = 64  # numbers that are under way side by side in arithmetic.c
TURNS = 10_000
PROCESSORS = {  # what kernels are made for, and what that means; C is made for the processor that is there
    "this one": "",
    "x86-64-v3": "at most 256 bits",
    "x86-64-v2": "128 bits, without multiply-add",
}
CHILD = """
import json, statistics, sys
from benchmarks.ode import cases, contestants
from odelab.experiments.clock import interleave, ratios
case = cases.ensembles(int(sys.argv[1]))[int(sys.argv[2])]
ours, theirs = contestants.our_ensemble(case), contestants.c_ensemble(case)
ours.warm()
samples = interleave([ours.run, theirs.run], seconds=float(sys.argv[3]))
times = [sample.processor for sample in samples]
errors = [case.error(one.run()) for one in (ours, theirs)]
print(json.dumps([case.label, *map(statistics.median, times), ratios(*times), *errors]))
"""


def arithmetic(size: equations.Size) -> Iterable[Row]:
    """In C: an operation that waits for the one before, as in a scalar run, against 64 that do not, as in lanes."""
    for name in OPERATIONS if reference_c.scalar_compiler() else ():
        alone, together = (costs(name, way) for way in ("one_after_the_other", "side_by_side"))
        together = together._replace(per=float(MANY * TURNS))
        unit = {"unit": "us", "seconds": 0.1 * size.seconds}
        for row in size.compare(name.replace("_", " and "), together, {alone: None}, **unit):
            yield nanoseconds(row)


def operation(name: str, way: str):
    """One of the functions of arithmetic.c."""
    compiler = reference_c.scalar_compiler()
    return reference_c.function("arithmetic.c", f"{name}_{way}", compiler, "lp", "-fno-math-errno")


def costs(name: str, way: str) -> Contestant:
    run = operation(name, way)
    numbers = np.linspace(1.0, 2.0, MANY)
    return Contestant(way.replace("_", " "), lambda: run(TURNS, numbers.ctypes.data), per=float(TURNS))


def nanoseconds(row: Row) -> Row:
    ours, theirs = (1e3 * (microseconds or 0.0) for microseconds in (row.ours, row.theirs))  # neither can be missing
    return dataclasses.replace(row, ours=ours, theirs=theirs, unit="ns")


def width(size: equations.Size) -> Iterable[Row]:
    """The same runs in lanes with kernels for processors with shorter vectors (ODELAB_PROCESSOR), against scalar C."""
    for place in (0, 1):
        for name, words in PROCESSORS.items():
            names = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ODELAB_PROCESSOR": words and name}
            command = [sys.executable, "-c", CHILD, *map(str, (size.runs, place, 0.5 * size.seconds))]
            done = subprocess.run(command, env=names, capture_output=True, text=True, check=True)
            label, ours, theirs, each, error, peer_error = json.loads(done.stdout.splitlines()[-1])
            yield Row(
                label, f"odelab for {name}", "scalar C", 1e3 * ours, 1e3 * theirs, float(np.median(each)),
                quartiles(each), error=error, peer_error=peer_error, note=words,
            )  # fmt: skip


SECTIONS: dict[str, Callable[[equations.Size], Iterable[Row]]] = {
    section.__name__: section for section in (arithmetic, width)
}
