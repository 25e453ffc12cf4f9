"""A C program for one problem and one linearly implicit method: straight-line code as a kernel has it, and no more.

`Number` stands for a double in C: running a right-hand side on such numbers writes it down as C, line by line, and its
Jacobian beside it. The lines of the step are those that kernels are made of, so that what is compared is a compiler, a
driver and a record of all steps, against a bare loop. Where SUNDIALS is at hand (see `load_sundials`), the program runs
CVODE as well: BDF, dense, with the exact Jacobian.
"""

import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from importlib import util
from pathlib import Path

import numpy as np

from benchmarks.ode.reference_c import FLAGS, MOST, Answer, NoCompiler, cache_folder, scalar_compiler, states
from odelab.engines.numba.request import request_for
from odelab.engines.rosenbrock import attempt

BODY = Path(__file__).with_name("limit_stiff.c")
SUNDIALS = ("core", "nvecserial", "sunmatrixdense", "sunlinsoldense", "cvode")  # in the order of loading


tape: list[str] = []  # the lines of the function that is being written


class Number:
    """The name of a double in C, and those of its derivatives by place."""

    def __init__(self, name, derivatives=None):
        self.name, self.derivatives = name, derivatives or {}

    @classmethod
    def of(cls, expression, derivatives):
        return cls(new_variable(expression), {place: new_variable(text) for place, text in derivatives.items()})

    def __add__(self, other):
        return self.of(f"{self.name} + {name(other)}", combine(self, other, "{0}", "{0}"))

    def __sub__(self, other):
        return self.of(f"{self.name} - {name(other)}", combine(self, other, "{0}", "-{0}"))

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return self.of(f"-{self.name}", combine(self, 0.0, "-{0}", ""))

    def __mul__(self, other):
        return self.of(
            f"{self.name} * {name(other)}", combine(self, other, f"{{0}} * {name(other)}", f"{{0}} * {self.name}")
        )

    def __truediv__(self, other):
        quotient = new_variable(f"{self.name} / {name(other)}")
        by_other = f"-({{0}} * {quotient} / {name(other)})"
        return self.of(quotient, combine(self, other, f"{{0}} / {name(other)}", by_other))

    __radd__, __rmul__ = __add__, __mul__


def name(value) -> str:
    return value.name if isinstance(value, Number) else repr(float(value))


def new_variable(expression: str) -> str:
    """The name of a new variable that holds an expression."""
    tape.append(f"const double q{len(tape)} = {expression};")
    return f"q{len(tape) - 1}"


def combine(x, y, by_x: str, by_y: str) -> dict[int, str]:
    """Derivatives of a function of x and y; the templates take a derivative of x, or of y."""
    parts: dict[int, list[str]] = {}
    for number, template in ((x, by_x), (y, by_y)):
        for place, derivative in getattr(number, "derivatives", {}).items():
            parts.setdefault(place, []).append(template.format(derivative))
    return {place: " + ".join(f"({text})" for text in texts) for place, texts in parts.items()}


def functions(problem, pattern) -> str:
    """`slope` and `jacobian` in C."""
    n, k = problem.size, len(problem.params)
    params = tuple(Number(f"p[{i}]") for i in range(k))
    found = []
    for title, seeds in (("slope", [{}] * n), ("jacobian", [{i: "1.0"} for i in range(n)])):
        tape.clear()
        state = tuple(Number(f"u[{i}]", seed) for i, seed in enumerate(seeds))
        answers = problem.rhs(Number("t"), state, params)
        if title == "slope":
            ends = [f"out[{i}] = {name(answer)};" for i, answer in enumerate(answers)]
        else:
            derivatives = [getattr(answer, "derivatives", {}) for answer in answers]
            ends = [f"out[{i + n * j}] = {derivatives[i].get(j, '0.0')};" for i, j in pattern.entries]
        head = f"static inline void {title}(double t, const double *u, const double *p, double *out) {{"
        found.append("\n    ".join([head, *tape, *ends]) + "\n}")
    return "\n\n".join(found)


def step(method, plan) -> str:
    """One attempt in C, from the lines that kernels are made of; the check of the factors is left out."""
    n = plan.n
    entries = [f"const double j{i}_{j} = jac[{i + n * j}];" for i, j in plan.pattern.entries]
    body, names = [], set()
    for line in attempt.stage_lines(method, plan):
        target, _, expression = line.partition(" = ")
        if line.startswith("#") or re.match(r"(left|size)\d|sound", target):
            continue
        call = re.fullmatch(r"rhs\((.*), \((.*)\), params\)", expression)
        if call:
            stage = target.removeprefix("k").partition("_")[0]
            inner = f"{{const double in[] = {{{call[2].strip().rstrip(',')}}}; slope({call[1]}, in, p, s{stage});}}"
            body += [inner, *(f"k{stage}_{i} = s{stage}[{i}];" for i in range(n))]
            names |= {f"k{stage}_{i}" for i in range(n)} | {f"s{stage}[{n}]"}
        else:
            body.append(f"{target} = {expression};")
            names.add(target)
    known = [f"const double u{i} = u[{i}], k1_{i} = f[{i}];" for i in range(n)]
    ends = [f"v[{i}] = v{i}; error[{i}] = error{i};" for i in range(n)]
    head = (
        "static inline void step(double t, double dt, const double *u, const double *f, const double *jac,\n"
        "                        const double *p, double *v, double *error) {"
    )
    declared = f"double {', '.join(sorted(names))};"
    return "\n    ".join([head, *known, *entries, declared, *body, *ends]) + "\n}"


@functools.cache
def library(problem_name, rhs, n, k, method, with_cvode):
    """The compiled program."""
    compiler = scalar_compiler()
    if compiler is None:
        raise NoCompiler("install gcc or clang")
    import odelab as ol

    problem = getattr(ol.problems, problem_name)()
    controller = ol.adaptive(law="i")
    plan = attempt.plan_for(request_for("single", problem, method, controller))
    defines = f"#define N {n}\n#define K {k}\n#define ORDER {method.error_order}\n"
    defines += "#define CVODE 1\n" if with_cvode else ""
    text = "\n".join(
        [defines, "#include <math.h>", functions(problem, plan.pattern), step(method, plan), BODY.read_text()]
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
