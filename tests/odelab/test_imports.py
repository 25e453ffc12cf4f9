"""`import odelab` is light: no engine that compiles, no library beside NumPy, and little time beyond NumPy's own."""

import ast
import compileall
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

import odelab
from tests.clock import HANGS, cost

HEAVY = ("torch", "matplotlib", "numba", "scipy.integrate", "scipy.optimize", "torchdiffeq")
# What takes a hundredth of a second or so each, and is wanted by some programs only.
FOR_SOME = (
    "concurrent.futures",
    "importlib.metadata",
    "llvmlite",
    "numpy.ma",
    "numpy.polynomial",
    "odelab.engines.lanes.threads",
    "odelab.engines.large",
    "odelab.engines.numba.compiled",
    "odelab.engines.switching",
    "odelab.engines.traced",
)


def fresh(*program, env=None):
    """What a new process prints."""
    answer = subprocess.run([sys.executable, *program], capture_output=True, text=True, timeout=HANGS, env=env)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def loaded(code):
    return fresh("-c", f"{code}\nimport sys\nprint(*[name for name in {HEAVY + FOR_SOME} if name in sys.modules])")


def test_import_loads_nothing_heavy():
    assert loaded("import odelab") == []


def test_the_detector_detects():
    assert {"scipy.optimize", "llvmlite"} <= set(loaded("import odelab, scipy.optimize, llvmlite"))


def test_a_short_run_needs_no_compiler():
    code = """
import odelab as ol
run = ol.solve(ol.problems.van_der_pol(1.0).replace(t_span=(0.0, 1.0)), ol.DOPRI5, ol.adaptive(1e-6))
assert run.ok and str(run) and len(run([0.1, 0.2]))
"""
    assert not {"torch", "matplotlib", "numba"} & set(loaded(code))


def test_a_run_loads_no_engine_but_its_own():
    code = """
import odelab as ol
ol.solve(ol.problems.van_der_pol(1.0).replace(t_span=(0.0, 1.0)), ol.DOPRI5, engine="ENGINE")
"""
    assert loaded(code.replace("ENGINE", "python")) == []
    assert loaded(code.replace("ENGINE", "compiled")) == ["llvmlite", "odelab.engines.traced"]


# What a process costs that loads a kernel of one line by numba alone: numba, SciPy's linear algebra, NumPy. It is the
# yardstick, because the same work takes half as long again on a machine that is busy.
BY_NUMBA_ALONE = """
import numba
@numba.njit("float64(float64)", cache=True)
def advanced(x):
    return x + 1.0
advanced(1.0)
"""
FIRST_SOLVE = """
import odelab as ol
def rhs(t, u, params):
    return (-u[0],)
ol.solve(ol.Problem(rhs, [1.0], (0.0, 1.0)), ol.DOPRI5, ol.adaptive(1e-8), engine="compiled")
"""


@pytest.fixture(scope="module")
def seconds(tmp_path_factory):
    """Processor seconds of a script in a fresh process, beside a package as it is installed, with its bytecode."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(Path(odelab.__file__).parent, folder / "odelab", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "odelab", quiet=1)
    names = {**os.environ, "PYTHONPATH": str(folder), "ODELAB_CACHE": str(folder / "cache")}

    def measured(code):
        script = folder / f"run_{zlib.crc32(code.encode())}.py"  # a file, as numba keeps nothing of a bare text
        script.write_text(f"{code}\nimport time\nprint(time.process_time())")
        return float(fresh(script, env=names)[0])

    for code in (BY_NUMBA_ALONE, FIRST_SOLVE):
        measured(code)  # compiles
    return measured


@pytest.mark.slow
def test_a_first_solve_in_a_fresh_process_costs_little_more_than_numba_itself(seconds):
    """The kernel is on disk. 0.5 s of processor time in all on an idle machine, of which numba and SciPy take 0.4."""
    assert cost(FIRST_SOLVE, BY_NUMBA_ALONE, 1.35, seconds) <= 1.35


@pytest.mark.slow
def test_the_import_costs_less_than_half_of_what_numba_does(seconds):
    assert cost("import odelab", BY_NUMBA_ALONE, 0.5, seconds) <= 0.5


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
    assert hasattr(odelab, name)


def test_names_are_the_public_ones():
    assert {"solve", "DOPRI5", "maths", "Trajectory"} <= set(odelab.__all__)
    assert not {"core", "runs", "engines", "np"} & set(odelab.__all__)


@pytest.mark.slow
def test_both_packages_have_the_version_of_the_distribution():
    project = tomllib.loads((Path(odelab.__file__).parents[1] / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "odelab.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", odelab.__version__)
    assert fresh("-c", "import netbridge; print(netbridge.__version__)") == [odelab.__version__]


@pytest.mark.parametrize(
    ("missing", "code", "remedy"),
    [
        ("torch", "import netbridge", "netbridge needs torch: pip install 'odelab[net]'"),
        ("rich", "import studies", "studies need rich: pip install 'odelab[studies]'"),
        ("safetensors", "import netbridge", "netbridge needs safetensors: pip install 'odelab[net]'"),
        (
            "matplotlib",
            "import odelab as ol; ol.plot.stability_region(ol.EULER)",
            "figures need matplotlib: pip install matplotlib",
        ),
    ],
)
def test_a_package_that_is_not_there_is_named_with_its_remedy(missing, code, remedy):
    code = f"import sys; sys.modules[{missing!r}] = None; {code}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS)
    assert answer.stderr.strip().splitlines()[-1] == f"ModuleNotFoundError: {remedy}"


def inner_imports() -> set[tuple[str, str, str]]:
    """(file, module, name in it) of every import inside a function of odelab."""
    folder = Path(odelab.__file__).parent
    return {
        (path.relative_to(folder).as_posix(), getattr(node, "module", None) or alias.name, alias.name)
        for path in folder.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


# Two modules that need each other: the functions that an array of nodes hands over to, the arrays that a graph makes,
# figures of results; and what asks the whole package which methods there are.
BOTH_WAYS = {
    "graph/arrays.py:odelab.graph.numpy_functions",
    "graph/arrays.py:odelab.graph.ufuncs",
    "graph/graphs.py:odelab.graph.arrays",
    "results.py:odelab.plot",
    "files/saved.py:odelab",
}


def test_an_import_inside_a_function_saves_the_import_of_odelab_something():
    code = f"""
import odelab, sys
for file, module, name in {inner_imports()}:
    if module in sys.modules and (module == name or hasattr(sys.modules[module], name)):
        print(f"{{file}}:{{module}}")
"""
    assert set(fresh("-c", code)) == BOTH_WAYS
