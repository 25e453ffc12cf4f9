"""The eigenvalues at the ends of a spectrum, from products with vectors alone: ARPACK, and plain Lanczos.

ARPACK can miss the outermost eigenvalue and call another one converged, when its start has almost no part in the
eigenvector or few eigenvalues are asked for. So at least six are sought at each end, and a second run from another
start has to agree.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from odelab.stiffness.operator import JacobianOperator

ENDS = ("LR", "SR", "LM")  # largest real part, smallest real part, largest magnitude
SYMMETRIC_ENDS = ("LA", "SA")  # both ends, and with them the largest magnitude
RESTARTS = 100
TOLERANCE = 1e-10
FEWEST = 6  # eigenvalues sought at each end, however few are asked for
CONFIRMED = 1e-6  # relative to the radius: the tolerance of a second run, and by how much its result may differ
LANCZOS_PRODUCTS = 3000  # products with vectors at most; then the best value so far is returned
SIZES = (60, 90, 135, 200, 300, 450)  # of a growing Krylov space, at which its Ritz values are looked at
LOOSE = 1e-4  # the tolerance of a last attempt, whose result does not count as converged
RESOLVED = 1e-2  # of the largest |Ritz value|: the residual up to which a Ritz value counts as an eigenvalue
AGREE = 0.02  # by how much, relative to it, eigenvalues that are not found may change a number that is settled
BEYOND = 1.1  # how much further out than the other Ritz values eigenvalues may lie: in spectra of blocks up to 1.06
RAYS = (1j, (-1.0 + 1j) / np.sqrt(2.0))  # of modes that only turn, and of those that decay as fast as they turn


class Ends(NamedTuple):
    """Eigenvalues found at the ends, whether every end converged and was confirmed, and the residual J v - lambda v."""

    values: np.ndarray
    converged: bool
    residual: float  # largest, relative to the largest |lambda| found
    products: int
    moved: bool  # another start found an end further out than the first one did


class Edge(NamedTuple):
    """Numbers about the edge of a spectrum, which of them are settled, and the eigenvalues that they are taken from."""

    numbers: np.ndarray
    settled: np.ndarray
    values: np.ndarray


def ends(operator: JacobianOperator, k: int, symmetric: bool, tolerance: float = TOLERANCE) -> Ends:
    """At least `k` eigenvalues at each end. Where an end fails, a larger basis is tried, then a looser tolerance."""
    product, count = _counting(operator)
    n = operator.shape[0]
    k = max(k, FEWEST) if n > 4 * FEWEST + 2 else k
    rng = np.random.default_rng(0)
    start, another = (rng.standard_normal(n).astype(operator.dtype) for _ in range(2))  # the same answer every time
    if not product(start).any():
        return Ends(np.zeros(1), True, 0.0, count[0], False)  # a random vector is mapped to zero by the zero map alone
    solve = _Solver(product, operator.dtype, k, symmetric, tolerance)
    found, residuals, converged = [], [], True
    names = SYMMETRIC_ENDS if symmetric else ENDS
    for end in names:
        values, vectors, sharp = solve.one_end(end, start)
        converged &= sharp
        found.append(values)
        residuals += [_residual(product, value, vectors[:, i]) for i, value in enumerate(values)]
    values = np.concatenate(found)
    radius = float(np.abs(values).max(initial=0.0))
    moved = converged and any(solve.moves(end, another, found[i], radius) for i, end in enumerate(names[:2]))
    values = np.concatenate([values, *solve.further])
    residual = max(residuals, default=np.inf) / radius if radius else np.inf
    return Ends(values, converged and not moved, float(residual), count[0], moved)


def lanczos_bracket(operator: JacobianOperator, tolerance: float):
    """(smallest, largest, residual, products) of a symmetric or Hermitian operator: Ritz values, inside its spectrum.

    Plain Lanczos, three vectors of memory. Lost orthogonality only repeats eigenvalues that are found already, which
    does not harm the ends (Paige 1980). It ends when both residuals are below `tolerance` times the larger |value|:
    each is then that near to an eigenvalue.
    """
    from scipy.linalg import eigh_tridiagonal

    product, count = _counting(operator)
    tolerance = max(tolerance, 100.0 * float(np.finfo(operator.dtype).eps))
    v = np.random.default_rng(0).standard_normal(operator.shape[0]).astype(operator.dtype)
    v, last = v / np.linalg.norm(v), np.zeros_like(v)
    diagonal, beside = [], [0.0]
    check = 8
    while True:
        w = product(v) - beside[-1] * last
        diagonal.append(float(np.vdot(v, w).real))
        w -= diagonal[-1] * v
        beside.append(float(np.linalg.norm(w)))
        size = max(map(abs, (*diagonal[-2:], *beside[-2:])))
        complete = beside[-1] <= 1e-14 * size or len(diagonal) == LANCZOS_PRODUCTS
        if complete or len(diagonal) == check:
            check = 1 + int(1.2 * check)
            m = len(diagonal) - 1
            parts = [eigh_tridiagonal(diagonal, beside[1:-1], select="i", select_range=(i, i)) for i in (0, m)]
            low, high = (float(values[0]) for values, _ in parts)
            residual = beside[-1] * max(abs(float(vectors[-1, 0])) for _, vectors in parts)
            if complete or residual <= tolerance * max(abs(low), abs(high)):
                return low, high, residual, count[0]
        v, last = w / beside[-1], v


def ritz_values(operator: JacobianOperator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ritz values of one Krylov space, again and again while it grows, each time with their residuals.

    All ends of the spectrum come nearer at once, those above and below included, which `ends` does not look for. For a
    first answer to two digits this takes a tenth of its products; nothing is confirmed by another start.

    Yields (values, residuals), |J v - value v| of unit vectors v. It ends with a space of 450 vectors, or before
    where the space maps into itself.
    """
    product, _ = _counting(operator)
    n = operator.shape[0]
    sizes = sorted({min(size, n) for size in SIZES})
    basis = np.empty((sizes[-1] + 1, n), operator.dtype)
    start = np.random.default_rng(0).standard_normal(n)
    basis[0] = start / np.linalg.norm(start)
    projected = np.zeros((sizes[-1] + 1, sizes[-1]))
    for m in range(1, sizes[-1] + 1):
        image = product(basis[m - 1])
        size = np.linalg.norm(image)
        for _ in range(2):  # the second time takes away what rounding has left
            parts = basis[:m] @ image
            image = image - parts @ basis[:m]
            projected[:m, m - 1] += parts
        beside = projected[m, m - 1] = np.linalg.norm(image)
        closed = beside <= 10.0 * np.finfo(operator.dtype).eps * size
        if closed or m in sizes:
            values, vectors = np.linalg.eig(projected[:m, :m])
            yield values, beside * np.abs(vectors[-1])
        if closed:
            return
        basis[m] = image / beside


def measure_edge(operator: JacobianOperator, measure: Callable[[np.ndarray], Iterable[float]]) -> Edge:
    """Numbers that the outermost eigenvalues decide, on all sides, to two digits.

    operator  a real operator
    measure   the numbers of an array of eigenvalues. They may count all modes, those that do not grow, or those that
              decay at least as fast as they turn, and no mode inside the convex hull of others of them may change them

    A Krylov space grows until the numbers are settled. What it has not found lies in the convex hull of its Ritz values
    that are no eigenvalues yet, or a tenth beyond. So a number is settled where these do not change it, nor do the
    points at which their hull enters the modes that count; nor does a shift of the eigenvalues found by their residuals
    to the left or the right, which may make a mode count or not; nor has the last enlargement. A number that is not
    settled after 450 products may be far off.

    >>> import numpy as np, odelab as ol
    >>> J = ol.JacobianOperator((3, 3), lambda v: np.array([-2.0, -1.0, 0.5]) * v)
    >>> found = measure_edge(J, lambda values: [ol.nongrowing_radius(values)])
    >>> found.numbers.round(6), found.settled
    (array([2.]), array([ True]))
    """
    last = np.array(np.nan)
    for values, residuals in ritz_values(operator):
        known = residuals <= RESOLVED * np.abs(values).max(initial=0.0)
        found, off, rest = values[known], residuals[known], BEYOND * values[~known]
        further = np.concatenate([found - off, found, rest, [_farthest(rest, ray) for ray in RAYS]])
        numbers, fewer, more = (np.array(tuple(measure(some))) for some in (found, found + off, further))
        others = (fewer, more, last if len(rest) else numbers)
        settled = np.all([np.isclose(some, numbers, rtol=AGREE, atol=0.0) for some in others], axis=0)
        last = numbers
        if settled.all():
            break
    return Edge(numbers, settled, found)


def _farthest(values: np.ndarray, ray: complex) -> complex:
    """The farthest point of the convex hull of these values on a ray from zero; zero where it does not meet the ray."""
    turned = values * np.conj(ray)
    above, below = turned[turned.imag >= 0.0][:, None], turned[turned.imag < 0.0]
    places = (above.real * below.imag - below.real * above.imag) / (below.imag - above.imag)
    return float(places.max(initial=0.0)) * ray


def _counting(operator):
    """The product with vectors, which raises where a result is not finite, and a list that counts the products."""
    count = [0]

    def product(v):
        count[0] += 1
        answer = np.reshape(operator.matvec(v), len(v))
        if not np.isfinite(answer).all():
            raise ValueError("`J` times a vector is not finite; is the operator defined at this state?")
        return answer

    return product, count


class _Solver:
    """ARPACK for one operator: `one_end` finds an end, `moves` asks whether another start finds one further out."""

    def __init__(self, product, dtype, k, symmetric, tolerance):
        self.product, self.dtype, self.k, self.symmetric = product, dtype, k, symmetric
        self.sharp = max(tolerance, 100.0 * float(np.finfo(dtype).eps))
        self.further: list[np.ndarray] = []

    def attempt(self, end, start, basis, tolerance):
        from scipy.sparse.linalg import LinearOperator, eigs, eigsh

        n = len(start)
        linear = LinearOperator((n, n), matvec=self.product, dtype=self.dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            solve = eigsh if self.symmetric else eigs
            basis = min(n, max(basis, 4 * self.k))
            return solve(linear, self.k, which=end, v0=start, ncv=basis, maxiter=RESTARTS, tol=tolerance)

    def one_end(self, end, start):
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence

        partial = np.empty(0), np.empty((len(start), 0))
        for basis, tolerance, sharp in ((40, self.sharp, True), (160, self.sharp, True), (160, LOOSE, False)):
            try:
                return *self.attempt(end, start, basis, tolerance), sharp
            except ArpackNoConvergence as failure:
                if len(failure.eigenvalues):
                    partial = failure.eigenvalues, failure.eigenvectors
            except ArpackError:
                pass  # ARPACK found no shifts or no factorisation, which a larger basis may allow
        return *partial, False

    def moves(self, end, start, found, radius) -> bool:
        from scipy.sparse.linalg import ArpackError

        direction = 1.0 if end in ("LR", "LA") else -1.0
        try:
            values, _ = self.attempt(end, start, 40, max(CONFIRMED, self.sharp))
        except ArpackError:
            return False  # this start did not converge, which is no evidence against the first one, which did
        beyond = (direction * values.real).max() - (direction * found.real).max()
        if beyond > 10.0 * max(CONFIRMED, self.sharp) * radius:
            self.further.append(values)
            return True
        return False


def _residual(product, value, vector) -> float:
    image = product(np.ascontiguousarray(vector.real))
    if np.iscomplexobj(vector):
        image = image + 1j * product(np.ascontiguousarray(vector.imag))
    return float(np.linalg.norm(image - value * vector) / np.linalg.norm(vector))
