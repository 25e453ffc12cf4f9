"""A C program for one problem and one linearly implicit method: straight-line code as a kernel has it, and no more.

The right-hand side, its Jacobian and the step are the graphs that kernels are made of, printed as C, so that what is
compared is a compiler, a driver and a record of all steps, against a bare loop. Where SUNDIALS is at hand (see
`load_sundials`), the program runs CVODE as well: BDF, dense, with the exact Jacobian.
"""

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from importlib import util
from pathlib import Path

import numpy as np

from benchmarks.ode.graph_c import lines_of_c
from benchmarks.ode.reference_c import FLAGS, MOST, Answer, NoCompiler, cache_folder, scalar_compiler, states
from odelab import core
from odelab.graph.derivatives import derivatives
from odelab.graph.graphs import lift
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.implicit import Factors, Nothing

BODY = Path(__file__).with_name("limit_stiff.c")
SUNDIALS = ("core", "nvecserial", "sunmatrixdense", "sunlinsoldense", "cvode")  # in the order of loading


def functions(problem, traced, rows) -> str:
    """`slope` and `jacobian` in C."""
    n, graph = problem.size, traced.recorded.graph
    entries = [(i, j, lift(graph, x)) for i, row in enumerate(rows) for j, x in row.items()]
    wanted = {
        "slope": ([f"out[{i}]" for i in range(n)], traced.recorded.outputs),
        "jacobian": ([f"out[{i + n * j}]" for i, j, _ in entries], [x for _, _, x in entries]),
    }
    found = []
    for title, (places, nodes) in wanted.items():
        lines, values = lines_of_c(graph, nodes, names_in_c(problem))
        ends = [f"{place} = {value};" for place, value in zip(places, values, strict=True)]
        head = f"static inline void {title}(double t, const double *u, const double *p, double *out) {{"
        found.append("\n    ".join([head, *lines, *ends]) + "\n}")
    return "\n\n".join(found)


def names_in_c(problem) -> dict[str, str]:
    """The time, the state and the parameters."""
    state = {f"u{i}": f"u[{i}]" for i in range(problem.size)}
    return {"t": "t", **state, **{f"p{k}": f"p[{k}]" for k in range(len(problem.params))}}


def step(problem, method, traced, rows) -> str:
    """One attempt in C, by the step of `odelab.core` on the nodes of a graph; the check of the factors is left out."""
    n, graph = problem.size, Graph(trusted=True)
    J = [{j: graph.input(f"j{i}_{j}") for j in row} for i, row in enumerate(rows)]
    one_step = core.rosenbrock_step_of(core.combine, Factors, Factors.solve, method.tableau)
    known = graph.inputs("f", n), J, Nothing()
    t, dt, u = graph.input("t"), graph.input("dt"), graph.inputs("u", n)
    u_new, _, (error,), _, _ = one_step(store.slopes_in(graph, traced), (), t, u, known, dt, dt)
    inputs = names_in_c(problem) | {"dt": "dt"} | {f"f{i}": f"f[{i}]" for i in range(n)}
    inputs |= {f"j{i}_{j}": f"jac[{i + n * j}]" for i, row in enumerate(rows) for j in row}
    lines, values = lines_of_c(graph, [*u_new, *error], inputs)
    places = [f"{name}[{i}]" for name in ("v", "error") for i in range(n)]
    ends = [f"{place} = {value};" for place, value in zip(places, values, strict=True)]
    head = (
        "static inline void step(double t, double dt, const double *u, const double *f, const double *jac,\n"
        "                        const double *p, double *v, double *error) {"
    )
    return "\n    ".join([head, *lines, *ends]) + "\n}"


@functools.cache
def library(problem_name, rhs, n, k, method, with_cvode):
    """The compiled program."""
    compiler = scalar_compiler()
    if compiler is None:
        raise NoCompiler("install gcc or clang")
    import odelab as ol

    problem = getattr(ol.problems, problem_name)()
    traced = store.slopes_of(problem)
    state = [traced.recorded.graph.input(f"u{i}") for i in range(n)]
    rows = derivatives(traced.recorded.graph, traced.recorded.outputs, state)
    defines = f"#define N {n}\n#define K {k}\n#define ORDER {method.error_order}\n"
    defines += "#define CVODE 1\n" if with_cvode else ""
    text = "\n".join(
        [
            *(defines, "#include <math.h>", functions(problem, traced, rows)),
            *(step(problem, method, traced, rows), BODY.read_text()),
        ]
    )
    command = [compiler, *FLAGS]
    digest = hashlib.sha256("\0".join((text, *command)).encode()).hexdigest()[:16]
    target = cache_folder() / f"stiff-{problem_name}-{method.name}-{digest}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            source, built = Path(folder) / "stiff.c", Path(folder) / target.name
            source.write_text(text)
            subprocess.run([*command, "-o", str(built), str(source), "-lm"], check=True, capture_output=True, text=True)
            built.replace(target)
    return ctypes.CDLL(str(target))


def runs(key, problem, method, u0, params, rtol, atol, first_step, cvode=False):
    """A callable that runs every row of `u0` (N, n) with its row of `params` (N, k), one after the other."""
    if cvode:
        load_sundials()
    found = library(key, problem.rhs, problem.size, len(problem.params), method, cvode)
    start, p = states(u0), states(params)
    u, counts = start.copy(), np.zeros((len(start), 2), dtype=np.int64)
    t0, t1 = map(float, problem.t_span)
    double, pointer = ctypes.c_double, ctypes.c_void_p
    addresses = [pointer(array.ctypes.data) for array in (u, p, counts)]
    span = [double(x) for x in (t0, t1, rtol, atol, first_step)]

    def call(_alive=p):  # as long as its address is used
        u[:] = start
        run = found.cvode_runs if cvode else found.rosenbrock_runs
        run.restype = ctypes.c_int
        failed = run(ctypes.c_long(len(start)), *addresses, *span, ctypes.c_long(MOST))
        if failed:
            raise RuntimeError(f"{'CVODE' if cvode else 'C'} gave up with the code {failed}")
        return Answer(u, counts[:, 0], counts[:, 1])

    return call


@functools.cache
def load_sundials():
    """SUNDIALS' libraries, for programs that are loaded later: those that scikit-sundae brings along or, where the
    environment's SUNDIALS names a folder, those of this folder."""
    given, wheel = os.environ.get("SUNDIALS"), util.find_spec("sksundae")
    if given is not None:
        folder = Path(given)
    elif wheel is not None and wheel.origin is not None:
        folder = Path(wheel.origin).parent.parent / "scikit_sundae.libs"
    else:
        raise NoCompiler("scikit-sundae, which brings SUNDIALS along, is not installed")
    for part in SUNDIALS:
        file = next(iter(sorted(folder.glob(f"libsundials_{part}[-.]*so*"))), None)
        if file is not None:
            ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
        elif part != "core":  # which SUNDIALS 6 has within the others
            raise NoCompiler(f"no library libsundials_{part} in {folder.name}")
