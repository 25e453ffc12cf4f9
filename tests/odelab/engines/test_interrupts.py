"""Ctrl-C in a long run: what was computed until then is kept, whatever was at work."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import odelab as ol
from odelab.engines.traced import TracedEngine
from tests.clock import HANGS
from tests.odelab.solver_cases import CIRCLE, NAMED

TOLERANCE = ol.adaptive(1e-6, 1e-9)


def interrupted_after(calls):
    count = [0]

    def rhs(t, u, params):
        count[0] += 1
        if count[0] == calls:
            signal.raise_signal(signal.SIGINT)
        return (u[1], -u[0])

    return ol.Problem(rhs, [1.0, 0.0], (0.0, 1e4)), count


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU], **NAMED)
@pytest.mark.parametrize("calls", [2, 3, 50, 3000])
def test_ctrl_c_keeps_what_was_computed(method, calls):
    problem, count = interrupted_after(calls)
    run = ol.solve(problem, method, TOLERANCE, engine="python")
    message = run.message
    assert count[0] < calls + 100  # nothing more is computed, not even for the message
    assert run.status == "interrupted"
    assert message == f"interrupted at t = {run.t[-1]:g}; what was computed until then is kept"
    assert len(run.t) == len(run.u) == run.steps + 1
    assert (run.steps > 100) == (calls == 3000)
    np.testing.assert_allclose(run.u, CIRCLE.exact(run.t, ()), rtol=0, atol=1e-2)


def test_ctrl_c_between_two_pieces_of_a_run():
    """What the pieces before have come to is kept, up to the event that was about to change the state."""

    def change(t, u, params):
        if t > 10.0:
            raise KeyboardInterrupt
        return -u

    turned = ol.Event(lambda t, u, params: u[0], change=change)
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 20.0)), ol.DOPRI5, TOLERANCE, events=turned)
    assert (run.status, run.t[-1]) == ("interrupted", run.events[0].t[-1])
    assert run.t[-1] > 10.0
    assert run.message.startswith("interrupted at t = 1")
    np.testing.assert_array_equal(run.u[-1], run.events[0].u[-1])


LONG_RUN = """
import threading, signal, os, time
import odelab as ol
problem = ol.problems.lorenz().replace(t_span=(0.0, 1e7))
ol.solve(problem.replace(t_span=(0.0, 1.0)), ol.METHOD, ol.adaptive(1e-6), engine=ENGINE)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
run = ol.solve(problem, ol.METHOD, ol.adaptive(1e-6), engine=ENGINE, max_steps=10**9)
assert run.status == "interrupted", run.status
assert len(run.t) == len(run.u) == len(run.h) + 1 > 100
print("kept", run.steps)
"""


@pytest.mark.parametrize(("method", "engine"), [("DOPRI5", "python"), ("DOPRI5", "compiled"), ("AUTO", "compiled")])
def test_ctrl_c_in_a_long_run(method, engine):
    code = LONG_RUN.replace("ENGINE", repr(engine)).replace("METHOD", method)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS)
    assert answer.stdout.startswith("kept "), answer.stderr


def test_ctrl_c_before_a_compiled_run_has_begun(monkeypatch):
    def stopped(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(TracedEngine, "begin", stopped)
    run = ol.solve(CIRCLE, ol.DOPRI5, TOLERANCE, engine="compiled")
    assert (run.status, run.steps, run.t.tolist()) == ("interrupted", 0, [CIRCLE.t_span[0]])
