"""This tree beside another one, such as the commit before: `python -m benchmarks.ode.before FOLDER [--rounds 3]`.

Each figure is measured in fresh processes that take turns, one with this tree and one with the other, with empty
caches for what a first answer takes. First answers are processor time beyond the import of odelab; steps are the best
wall time of a run over its attempts, rejected ones included. Printed are both figures and their ratio.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import odelab as ol

HERE = Path(__file__).resolve().parents[2]


def van_der_pol(t, u, params):
    x, v = u
    return v, params[0] * (1.0 - x * x) * v - x


def burning(t, u, params):
    """Six components with an exponential and a branch."""
    a, b, c, d, e, f = u
    rate = math.exp(-0.1 * a) if a > 0.0 else 1.0
    return -100.0 * rate * a + b, rate * a - b * c, b * c - d, d - 2.0 * e, e - f * a, f * a - 0.1 * f


def swinging(t, u, params):
    return u[1], -math.sin(u[0])


def arrhenius(t, u, params):
    rate = math.exp(-params[0] / u[1])
    return -rate * u[0], rate * u[0] - 0.1 * u[1]


def full(n=15):
    """A right-hand side in which every component depends on every other."""
    matrix = np.random.default_rng(0).standard_normal((n, n)) - 8.0 * np.eye(n)
    names = [f"x{i}" for i in range(n)]
    rows = [" + ".join(f"({float(matrix[i, j])!r}) * {names[j]}" for j in range(n)) for i in range(n)]
    rows = [f"{row} - {names[i]} * {names[i]} * {names[(i + 1) % n]}" for i, row in enumerate(rows)]
    found: dict = {}
    exec(f"def full(t, u, params):\n    {', '.join(names)} = u\n    return {', '.join(rows)}", found)
    return ol.Problem(found["full"], np.ones(n), (0.0, 1.0))


def first(name: str) -> float:
    """Seconds of processor time of a first answer."""
    problem, method = {
        "DOPRI5, n = 2": (ol.Problem(van_der_pol, [2.0, 0.0], (0.0, 20.0), (1.5,)), ol.DOPRI5),
        "ensemble, DOPRI5, n = 2": (ol.Problem(van_der_pol, [2.0, 0.0], (0.0, 20.0), (1.5,)), ol.DOPRI5),
        "RODAS4, n = 6": (ol.Problem(burning, [1.0, 0.5, 0.2, 0.3, 0.4, 0.1], (0.0, 1.0)), ol.RODAS4),
        "RODAS4, full, n = 15": (full(), ol.RODAS4),
    }[name]
    began = time.process_time()
    if name.startswith("ensemble"):
        ol.ensemble(problem, method, u0=np.tile(problem.u0, (64, 1)), engine="compiled")
    else:
        ol.solve(problem, method, engine="compiled")
    return time.process_time() - began


FIRST = ("DOPRI5, n = 2", "ensemble, DOPRI5, n = 2", "RODAS4, n = 6", "RODAS4, full, n = 15")
OSCILLATOR = ol.problems.van_der_pol(mu=1.5)
STEPS = {
    "van der Pol, DOPRI5": (OSCILLATOR.replace(t_span=(0.0, 4000.0)), ol.DOPRI5, 1e-6),
    "Lorenz, DOPRI5": (ol.problems.lorenz().replace(t_span=(0.0, 400.0)), ol.DOPRI5, 1e-6),
    "van der Pol, DOP853": (OSCILLATOR.replace(t_span=(0.0, 4000.0)), ol.DOP853, 1e-9),
    "van der Pol, RODAS4": (OSCILLATOR.replace(t_span=(0.0, 2000.0)), ol.RODAS4, 1e-6),
    "Robertson, RODAS4": (ol.problems.robertson(), ol.RODAS4, 1e-12),
    "HIRES, RODAS4": (ol.problems.hires(), ol.RODAS4, 1e-11),
    "POLLU, RODAS4": (ol.problems.pollu(), ol.RODAS4, 1e-11),
}
LANES = {
    "van der Pol, DOPRI5, lanes": (OSCILLATOR, ol.DOPRI5, 10_000),
    "Lorenz, DOPRI5, lanes": (ol.problems.lorenz(), ol.DOPRI5, 10_000),
    "Robertson, RODAS4, lanes": (ol.problems.robertson(), ol.RODAS4, 10_000),
    "HIRES, RODAS4, lanes": (ol.problems.hires(), ol.RODAS4, 2_000),
    "POLLU, RODAS4, lanes": (ol.problems.pollu(), ol.RODAS4, 2_000),
    "pendulum, DOPRI5, lanes": (ol.Problem(swinging, [1.0, 0.0], (0.0, 50.0)), ol.DOPRI5, 5_000),
    "Arrhenius, DOPRI5, lanes": (ol.Problem(arrhenius, [1.0, 1.0], (0.0, 20.0), (2.0,)), ol.DOPRI5, 5_000),
}


def steps(name: str, **options) -> float:
    """Nanoseconds an attempt of one run, or of many in lanes, takes."""
    if name in STEPS:
        problem, method, rtol = STEPS[name]
        controller = ol.adaptive(rtol, 1e-3 * rtol)

        def run():
            found = ol.solve(problem, method, controller, engine="compiled", **options)
            return found.steps + found.rejected
    else:
        problem, method, runs = LANES[name]
        starts = problem.u0 * (1.0 + 0.05 * np.random.default_rng(0).standard_normal((runs, problem.size)))

        def run():
            found = ol.ensemble(problem, method, ol.adaptive(1e-6, 1e-9), u0=starts, threads=1, **options)
            return int(found.steps.sum() + found.rejected.sum())

    attempts, best = run(), math.inf
    for _ in range(7):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return 1e9 * best / attempts


def warm() -> float:
    """Microseconds of a call that takes one step."""
    problem, controller = OSCILLATOR.replace(t_span=(0.0, 0.01)), ol.adaptive(1e-3, 1e-3, first_step=0.01)
    best = math.inf
    for _ in range(3000):
        began = time.perf_counter()
        ol.solve(problem, ol.DOPRI5, controller, engine="compiled")
        best = min(best, time.perf_counter() - began)
    return 1e6 * best


def measure(figure: str, name: str) -> float:
    if figure == "warm":
        return warm()
    return first(name) if figure == "first" else steps(name, **({"exact": True} if figure == "exact" else {}))


def in_a_process(tree: Path, figure: str, name: str) -> float:
    """A figure with odelab from another folder, and an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        names = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), str(HERE)]), "ODELAB_CACHE": cache}
        command = [sys.executable, str(Path(__file__).resolve()), "--figure", figure, "--name", name]
        out = subprocess.run(command, env=names, cwd=cache, capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def compare(other: Path, rounds: int):
    rows = [("first", name, "s") for name in FIRST] + [("warm", "a warm call", "us")]
    rows += [("steps", name, "ns") for name in (*STEPS, *LANES)]
    for figure, name, unit in rows:
        found: dict[Path, list[float]] = {other: [], HERE: []}
        for _ in range(rounds):
            for tree, values in found.items():
                values.append(in_a_process(tree, figure, name))
        before, now = (min(values) for values in found.values())
        print(f"{name:28} {before:10.3g} {now:10.3g} {unit:3} {now / before:6.2f}", flush=True)
        if figure == "steps":
            exact = min(in_a_process(HERE, "exact", name) for _ in range(rounds))
            print(f"{'  exact':28} {'':10} {exact:10.3g} {unit:3} {exact / before:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="the folder of the other tree")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; the best one counts (3)")
    parser.add_argument("--figure", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.figure:
        print(json.dumps(measure(given.figure, given.name)))
    else:
        compare(given.other.resolve(), given.rounds)


if __name__ == "__main__":
    main()
