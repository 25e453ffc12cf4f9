"""`import odelab` is light: neither torch, matplotlib nor numba, and little time beyond NumPy's own."""

import re
import subprocess
import sys

import pytest

HEAVY = ("torch", "matplotlib", "numba", "scipy.integrate", "scipy.optimize", "torchdiffeq")


def fresh(code):
    """What a new process prints."""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def loaded(code):
    return fresh(f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])")


def test_import_loads_nothing_heavy():
    assert loaded("import odelab") == []


def test_the_detector_detects():
    assert loaded("import odelab, scipy.optimize") == ["scipy.optimize"]


def test_a_short_run_needs_no_compiler():
    code = """
import odelab as ol
run = ol.solve(ol.problems.van_der_pol(1.0).replace(t_span=(0.0, 1.0)), ol.DOPRI5, ol.adaptive(1e-6))
assert run.ok and str(run) and len(run([0.1, 0.2]))
"""
    assert not {"torch", "matplotlib", "numba"} & set(loaded(code))


def test_import_takes_less_than_a_third_of_a_second_beyond_numpy():
    """In processor time, best of five: the machine has other things to do."""
    code = "import time, numpy\nstart = time.process_time()\nimport odelab\nprint(time.process_time() - start)"
    assert min(float(fresh(code)[0]) for _ in range(5)) < 0.3


PUBLIC = {
    "describe": ("Problem", "Invariant", "Reference", "Method", "Law", "Controller", "Event", "maths", "problems"),
    "run": ("solve", "fixed", "adaptive", "Trajectory", "RunFailed", "scipy_method", "METHODS", "LAWS"),
    "methods": (
        "EULER",
        "HEUN",
        "MIDPOINT",
        "RK4",
        "BS32",
        "RKF45",
        "DOPRI5",
        "DOP853",
        "RKC2",
        "RADAU",
        "BDF",
        "LSODA",
    ),
    "look": ("observed_order", "work_precision", "plot"),
}


@pytest.mark.parametrize("name", [name for names in PUBLIC.values() for name in names])
def test_public_names(name):
    import odelab

    assert hasattr(odelab, name)


def test_names_are_the_public_ones():
    import odelab

    assert {"solve", "DOPRI5", "maths", "Trajectory"} <= set(odelab.__all__)
    assert not {"core", "runs", "engines", "np"} & set(odelab.__all__)


def test_both_packages_have_the_version_of_the_distribution():
    import tomllib
    from pathlib import Path

    import odelab

    project = tomllib.loads((Path(odelab.__file__).parents[1] / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "odelab.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", odelab.__version__)
    assert fresh("import netbridge; print(netbridge.__version__)") == [odelab.__version__]
