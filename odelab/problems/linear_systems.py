"""Linear systems u' = A u with a spectrum, or a departure from normality, of one's choice."""

import functools
import linecache

import numpy as np

from odelab.problem import Problem
from odelab.problems.common.support import number

COMPONENTS = 16  # beyond it array form: numba refuses 1000 parameters (n = 32) and needs seconds for 500
PRESS = ((998.0, 1998.0), (-999.0, -1999.0))


@functools.cache
def component_rhs(n: int):
    """u' = A u in component form, A's entries row by row as parameters: written out, since compiled lanes want that."""
    entries = [[f"a{i}_{j}" for j in range(n)] for i in range(n)]
    rows = [" + ".join(f"{a} * u{j}" for j, a in enumerate(row)) for row in entries]
    source = "\n".join(
        [
            f"def linear_{n}_rhs(t, u, params):",
            f"    {''.join(f'u{j}, ' for j in range(n))}= u",
            f"    {''.join(f'{a}, ' for row in entries for a in row)}= params",
            f"    return ({''.join(f'{row}, ' for row in rows)})",
        ]
    )
    file = f"<odelab linear system of {n}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for `inspect.getsource`
    names: dict = {}
    exec(compile(source, file, "exec"), names)
    function = names[f"linear_{n}_rhs"]
    function.pickled_as = (component_rhs, (n,))
    return function


def array_rhs(t, u, params):
    return params[0] @ u


def matrix_of(params) -> np.ndarray:
    """A from the parameters of either form."""
    if np.ndim(params[0]) == 2:
        return np.asarray(params[0])
    n = round(len(params) ** 0.5)
    return np.reshape(np.asarray(params, dtype=float), (n, n))


def linear_jacobian(t, u, params):
    return matrix_of(params)


def checked_matrix(matrix) -> np.ndarray:
    result = np.array(matrix, dtype=float)
    if result.ndim != 2 or result.shape[0] != result.shape[1] or result.size == 0:
        raise ValueError(f"`matrix` must be square, got shape {result.shape}.")
    if not np.isfinite(result).all():
        raise ValueError("`matrix` must be finite, got NaN or infinity in it.")
    return result


def linear_exact(start, t, params):
    from scipy.linalg import expm

    return expm(np.asarray(t, dtype=float)[..., None, None] * matrix_of(params)) @ start


def linear(matrix=PRESS, u0=None) -> Problem:
    """u' = A u; without arguments a textbook's stiff example with eigenvalues -1 and -1000.

    matrix    A, (n, n), which becomes the parameters: entry by entry up to n = 16, beyond that as one matrix
    u0        the n values at the start; ones by default, (1, 0) for the textbook's example

    Returns a `Problem` on (0, 1) with its exact solution.

    >>> import odelab as ol
    >>> ol.solve(ol.problems.linear([[0.0, 1.0], [-1.0, 0.0]], u0=[1.0, 0.0]), ol.DOP853).end_u.round(4)
    array([ 0.5403, -0.8415])
    """
    default = matrix is PRESS
    matrix = checked_matrix(matrix)
    n = matrix.shape[0]
    if u0 is None:
        u0 = np.eye(n)[0] if default else np.ones(n)
    start = np.atleast_1d(np.array(u0, dtype=float))
    if start.shape != (n,):
        raise ValueError(f"`u0` must have {n} components, as many as `matrix` has rows, got shape {start.shape}.")

    small = n <= COMPONENTS
    return Problem(
        component_rhs(n) if small else array_rhs,
        start,
        (0.0, 1.0),
        tuple(matrix.ravel().tolist()) if small else (matrix,),
        jacobian=linear_jacobian,
        exact=functools.partial(linear_exact, start),
        name="linear",
        about="Without arguments the example of W. H. Press, S. A. Teukolsky, W. T. Vetterling and B. P. Flannery, "
        "Numerical Recipes, section on stiff sets of equations: u = (2 e^-t - e^-1000t, e^-1000t - e^-t).",
    )


def rotation(n: int, seed: int) -> np.ndarray:
    """A random orthogonal matrix, uniform in Haar's measure (F. Mezzadri, Notices AMS 54 (2007) 592-604)."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    return q * np.sign(np.diag(r))


def linear_symmetric(eigenvalues, seed: int = 0, u0=None) -> Problem:
    """u' = A u, A symmetric with these real eigenvalues and random eigenvectors.

    eigenvalues    the n eigenvalues
    seed           of the random eigenvectors, 0 by default
    u0             the n values at the start; ones by default

    Returns a `Problem` on (0, 1) with its exact solution.

    >>> import odelab as ol
    >>> round(float(ol.si(ol.jacobian(ol.problems.linear_symmetric([-1.0, -50.0]), 0.0, [1.0, 1.0]))), 6)
    50.0
    """
    values = np.array(eigenvalues)
    if values.dtype.kind not in "iuf" or values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"`eigenvalues` must be a row of finite real numbers, got {eigenvalues!r}.")
    q = rotation(values.size, seed)
    matrix = (q * values) @ q.T
    return linear(0.5 * (matrix + matrix.T), u0).replace(name="linear_symmetric")


def linear_non_normal(eigenvalues, departure: float, seed: int = 0, u0=None) -> Problem:
    """u' = A u, A with these eigenvalues and Henrici's departure from normality.

    A = Q (D + N) Q', Q random orthogonal, D normal with the eigenvalues, N random and strictly above D's blocks with
    Frobenius norm `departure` (P. Henrici, Numer. Math. 4 (1962) 24-40).

    eigenvalues    the n eigenvalues, complex ones in conjugate pairs
    departure      at least 0; 0 gives a normal matrix
    seed           of the random matrices, 0 by default
    u0             the n values at the start; ones by default

    Returns a `Problem` on (0, 1) with its exact solution.

    >>> import odelab as ol
    >>> ol.problems.linear_non_normal([-1.0, -2.0], departure=10.0).size
    2
    """
    blocks = normal_blocks(eigenvalues)
    departure = number("departure", departure)
    n = sum(len(block) for block in blocks)
    triangle = np.triu(np.random.default_rng([seed, n]).standard_normal((n, n)), 1)
    schur = np.zeros((n, n))
    row = 0
    for block in blocks:
        end = row + len(block)
        schur[row:end, row:end] = block
        triangle[row:end, row:end] = 0.0
        row = end
    size = np.linalg.norm(triangle)
    if departure < 0.0 or (departure > 0.0 and size == 0.0):
        raise ValueError(f"`departure` must be at least 0, and 0 where there is only one block, got {departure}.")
    if size > 0.0:
        schur += departure / size * triangle
    q = rotation(n, seed)
    return linear(q @ schur @ q.T, u0).replace(name="linear_non_normal")


def normal_blocks(eigenvalues) -> list[np.ndarray]:
    """[[a]] for a real eigenvalue, [[a, b], [-b, a]] for a conjugate pair a +- ib."""
    values = np.array(eigenvalues)
    if values.dtype.kind not in "iufc" or values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"`eigenvalues` must be a row of finite numbers, got {eigenvalues!r}.")
    upper, lower = values[values.imag > 0.0], values[values.imag < 0.0]
    if not np.array_equal(np.sort_complex(upper), np.sort_complex(lower.conj())):
        raise ValueError(f"`eigenvalues` must hold complex numbers in conjugate pairs, got {eigenvalues!r}.")
    real = [np.array([[value.real]]) for value in values[values.imag == 0.0]]
    return real + [np.array([[a, b], [-b, a]]) for a, b in zip(upper.real, upper.imag, strict=True)]
