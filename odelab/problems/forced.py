"""Linear systems that are driven: the solution is chosen, and so is the Jacobian, independently of each other."""

import functools
import linecache

import numpy as np

from odelab import maths
from odelab.problem import Problem
from odelab.problems.common.support import number
from odelab.problems.linear_systems import COMPONENTS, checked_matrix


@functools.cache
def component_rhs(n: int):
    """u' = A (u - g) + g' with g = c + a cos(w t) in component form, written out.

    The parameters are the entries of A row by row, c, a and w.
    """
    entries = [[f"m{i}_{j}" for j in range(n)] for i in range(n)]
    names = [*(entry for row in entries for entry in row), *(f"c{i}" for i in range(n)), *(f"a{i}" for i in range(n))]
    rows = [" + ".join(f"{m} * d{j}" for j, m in enumerate(row)) for row in entries]
    source = "\n".join(
        [
            f"def forced_linear_{n}_rhs(t, u, params):",
            f"    {''.join(f'u{j}, ' for j in range(n))}= u",
            f"    {', '.join(names)}, w = params",
            "    cosine, rate = cos(w * t), -w * sin(w * t)",
            *(f"    d{j} = u{j} - (c{j} + a{j} * cosine)" for j in range(n)),
            f"    return ({''.join(f'{row} + a{i} * rate, ' for i, row in enumerate(rows))})",
        ]
    )
    file = f"<odelab forced linear system of {n}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for `inspect.getsource`
    known: dict = {"cos": maths.cos, "sin": maths.sin}
    exec(compile(source, file, "exec"), known)
    function = known[f"forced_linear_{n}_rhs"]
    function.pickled_as = (component_rhs, (n,))
    return function


def parts(params):
    """A, c, a and w from the parameters."""
    n = round((len(params)) ** 0.5) - 1  # there are n^2 + 2 n + 1 of them
    numbers = np.asarray(params, dtype=float)
    return numbers[: n * n].reshape(n, n), numbers[n * n : n * n + n], numbers[n * n + n : -1], numbers[-1]


def forced_linear_jacobian(t, u, params):
    return parts(params)[0]


def propagate(matrix, t, vector):
    """exp(t A) applied to a vector, at each of the times (..., 1)."""
    from scipy.linalg import expm, schur

    if not vector.any():  # a huge exponential times nothing is nothing
        return np.zeros((*t.shape[:-1], len(vector)))
    # Of a triangular matrix SciPy forms the exponential without the overflow that squaring a sheared one brings.
    triangle, basis = schur(matrix, output="complex")
    return (expm(t[..., None] * triangle) @ (basis.conj().T @ vector) @ basis.T).real


def forced_linear_exact(start, t, params):
    matrix, offset, amplitude, frequency = parts(params)
    t = np.asarray(t, dtype=float)[..., None]
    away = start - offset - amplitude
    return offset + amplitude * np.cos(frequency * t) + propagate(matrix, t, away)


def forced_linear(matrix=((-1.0, -100.0), (100.0, -1.0)), offset=2.0, amplitude=1.0, frequency=1.0, u0=None) -> Problem:
    """u' = A (u - g(t)) + g'(t) with g(t) = offset + amplitude cos(frequency t): from g(0) the solution is g.

    What the solution does (g) and what the Jacobian is (A) are chosen apart. So the system tells measures of the one
    from measures of the other: moving `offset` changes SAI and nothing else.

    matrix       A, (n, n) with n up to 16; by default eigenvalues -1 +- 100i, which hardly decay
    offset       the mean of g, a number or n of them; 2.0 by default
    amplitude    of g, a number or n of them; 1.0 by default
    frequency    of g, 1.0 by default
    u0           the n values at the start; g(0), where no fast mode is alive, by default

    Returns a `Problem` on (0, 10) with its exact solution.

    >>> import odelab as ol
    >>> problem = ol.problems.forced_linear()
    >>> bool(abs(problem.exact(3.0, problem.params) - (2.0 + ol.maths.cos(3.0))).max() < 1e-12)
    True
    """
    matrix = checked_matrix(matrix)
    n = len(matrix)
    if n > COMPONENTS:
        raise ValueError(f"`matrix` may have at most {COMPONENTS} rows, whose entries are parameters, got {n}.")
    rows = {"offset": offset, "amplitude": amplitude}
    for name, value in rows.items():
        row = np.array(value, dtype=float)
        if row.shape not in ((), (n,)) or not np.isfinite(row).all():
            raise ValueError(f"`{name}` must be one finite number or {n} of them, got {value!r}.")
        rows[name] = np.broadcast_to(row, (n,))
    start = rows["offset"] + rows["amplitude"] if u0 is None else np.atleast_1d(np.array(u0, dtype=float))
    if start.shape != (n,):
        raise ValueError(f"`u0` must have {n} components, as many as `matrix` has rows, got shape {start.shape}.")
    numbers = np.concatenate((matrix.ravel(), rows["offset"], rows["amplitude"], [number("frequency", frequency)]))
    return Problem(
        component_rhs(n),
        start,
        (0.0, 10.0),
        tuple(numbers.tolist()),
        jacobian=forced_linear_jacobian,
        exact=functools.partial(forced_linear_exact, start),
        name="forced_linear",
        about="Prothero and Robinson's equation (Math. Comp. 28 (1974) 145-162) as a system: the matrix is free, and "
        "the solution is g whatever the matrix.",
    )


def forced_linear_derivative(problem: Problem, t, order: int) -> np.ndarray:
    """A derivative of the solution of a `forced_linear` problem: that of g, and that of the modes that are alive.

    problem  a Problem that `forced_linear` made; with other `params` or another `u0` it is still one
    t        times, a row of them or one
    order    which derivative, at least 0; 0 is the solution

    Returns the derivative at each time, (..., n), in units of 1 / time^order.

    >>> import odelab as ol
    >>> problem = ol.problems.forced_linear(frequency=3.0)
    >>> ol.problems.forced_linear_derivative(problem, 0.0, 2).round(12)
    array([-9., -9.])
    """
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 0:
        raise ValueError(f"`order` must be a whole number of at least 0, got {order!r}.")
    if problem.name != "forced_linear":
        raise ValueError(f"`problem` must be one that `forced_linear` made, got {problem.name!r}.")
    matrix, offset, amplitude, frequency = parts(problem.params)
    t = np.asarray(t, dtype=float)[..., None]
    away = np.linalg.matrix_power(matrix, order) @ (problem.u0 - offset - amplitude)
    driven = amplitude * frequency**order * np.cos(frequency * t + 0.5 * np.pi * order)
    return driven + (offset if order == 0 else 0.0) + propagate(matrix, t, away)
