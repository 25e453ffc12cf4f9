"""Without numba and torch `odelab` imports, solves component problems by the graph, and says what needs numba."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clock import HANGS

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import tests.without
import numpy as np
import odelab as ol
assert not ({"numba", "torch"} & set(sys.modules))
problem = ol.problems.van_der_pol().replace(t_span=(0.0, 2.0))
print(*(ol.solve(problem, method).engine for method in (ol.DOPRI5, ol.RODAS4, ol.ESDIRK43, ol.AUTO, ol.RKC2)))
down = ol.Event(lambda t, u, params: u[0] - 1.95, terminal=True)
print(ol.ensemble(problem, u0=[[2.0, 0.0], [1.0, 1.0]]).engine, ol.solve(problem, events=down).status)
print(ol.solve(ol.problems.heat_1d(200).replace(t_span=(0.0, 0.01)), ol.RODAS4).engine)
def shown(t, u, params):
    return [-float(str(u[0]))]
print(ol.solve(ol.Problem(shown, [1.0], (0.0, 1000.0)), ol.DOPRI5).engine)
try:
    ol.solve(ol.Problem(shown, [1.0], (0.0, 1.0)), ol.RODAS4, engine="compiled")
except ol.NotCompilable as refusal:
    print(refusal)
for ask in (ol.show_kernel, lambda problem, method: ol.solve(problem, method, engine="compiled")):
    try:
        ask(problem, ol.RKC2)
    except (ValueError, ol.NotCompilable) as refusal:
        print(refusal)
"""


def left_out(*program):
    """A program in a process in which numba and torch are not installed."""
    names = os.environ | {"WITHOUT": "numba,torch"}
    command = [sys.executable, "-W", "error", *program]
    return subprocess.run(command, cwd=ROOT, env=names, capture_output=True, text=True, timeout=HANGS)


def test_problems_are_solved_and_what_needs_numba_says_so():
    answer = left_out("-c", PROGRAM)
    assert answer.returncode == 0, answer.stderr
    engines, lanes, large, plain, implicit, *refusals = answer.stdout.splitlines()
    assert engines == "compiled compiled compiled compiled python"
    assert (lanes, large, plain) == ("compiled event", "compiled", "python")
    assert "numba compiles explicit methods, not RODAS4" in implicit, "installing numba would not help"
    for refusal in refusals:
        assert "numba is not installed (pip install numba)" in refusal
        assert "this run has no graph" in refusal or "graphs are for" in refusal
        assert ".." not in refusal
        assert ".;" not in refusal


@pytest.mark.slow
def test_a_part_of_the_suite_does_without_them():
    """Graphs, laws of step size and loops are tested where neither is installed."""
    parts = ("control", "kernels/loops", "linear", "methods")
    folders = [f"tests/odelab/{part}" for part in parts]
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.without", "-m", "not slow")
    answer = left_out("-m", "pytest", *options, *folders)
    assert answer.returncode == 0, answer.stdout[-3000:]
