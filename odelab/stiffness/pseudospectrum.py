"""Pseudospectra: where a small change of a Jacobian can put its eigenvalues.

The epsilon-pseudospectrum is the set of all z with sigma_min(zI - J) <= epsilon, which is where the eigenvalues of
J + E with ||E|| <= epsilon can lie, and where the resolvent norm ||(zI - J)^-1|| is at least 1 / epsilon. For a normal
matrix it is the union of discs of radius epsilon round the eigenvalues; for others it may be far larger, and then the
eigenvalues alone say little about growth, stiffness or stability (Trefethen and Embree, Spectra and Pseudospectra,
2005). Smallest singular values come from the Schur form and inverse Lanczos iteration (Lui 1997; Trefethen 1999).
"""

import dataclasses

import numpy as np

from odelab.results import Result
from odelab.stiffness.operator import as_operator
from odelab.stiffness.spectrum import reject_gradients

__all__ = ["Pseudospectrum", "pseudospectrum"]

BY_SVD = 48  # up to so many components LAPACK computes the singular values at all grid points at once
LARGEST = 3000  # components at most; for more, the Schur form alone would take many minutes
LANCZOS_STEPS = 100
SETTLED = 1e-4  # relative change of the largest singular value of the resolvent, squared, that ends an iteration
ANGLES = 90  # supporting lines of half the field of values
ON_THE_AXIS = 1e-7  # relative: an eigenvalue of the Hamiltonian matrix that counts as imaginary


@dataclasses.dataclass(frozen=True, eq=False)
class Pseudospectrum(Result, kinds={"levels": "odelab.plot.region:pseudospectrum"}):
    """How the resolvent of a Jacobian behaves in the complex plane, as `odelab.pseudospectrum` returns it.

    real             the grid's real parts, (columns,)
    imaginary        the grid's imaginary parts, (rows,)
    smallest         sigma_min(zI - J) at each z of the grid, (rows, columns): z lies in the epsilon-pseudospectrum
                     for every epsilon from here on
    eigenvalues      as LAPACK finds them, (n,)
    field_of_values  the boundary of {x'Jx : ||x|| = 1}, a closed convex curve of complex points. Its largest real part
                     is the logarithmic norm mu_2
    triangle         the Schur form of J, from which `abscissa` works

    >>> import odelab as ol
    >>> found = ol.pseudospectrum([[-1.0, 10.0], [0.0, -2.0]], points=20)
    >>> found.smallest.shape, found.abscissa(0.5) > 0.0
    ((20, 20), True)
    """

    real: np.ndarray
    imaginary: np.ndarray
    smallest: np.ndarray = dataclasses.field(repr=False)
    eigenvalues: np.ndarray = dataclasses.field(repr=False)
    field_of_values: np.ndarray = dataclasses.field(repr=False)
    triangle: np.ndarray = dataclasses.field(repr=False)

    @property
    def resolvent_norm(self) -> np.ndarray:
        """||(zI - J)^-1|| at each z of the grid, infinite at an eigenvalue."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.smallest

    def abscissa(self, epsilon: float) -> float:
        """The largest real part that an eigenvalue of J + E can have, over all E with ||E|| <= epsilon.

        By the criss-cross method of Burke, Lewis and Overton (IMA J. Numer. Anal. 23 (2003) 359-375), to about six
        digits and whatever the grid is.

        epsilon  the 2-norm of the change, positive
        """
        if not 0.0 < epsilon < np.inf:
            raise ValueError(f"`epsilon` must be positive and finite, got {epsilon!r}.")
        leading = self.eigenvalues[self.eigenvalues.real.argmax()]
        best, heights = float(leading.real), [float(leading.imag)]
        while True:
            reached = max(_rightmost(self.triangle, y, epsilon) for y in heights)
            if not reached > best + 1e-9 * (abs(best) + epsilon):
                return max(best, reached)
            best = reached
            crossings = _crossings(self.triangle, best, epsilon)
            if len(crossings) < 2:
                return best
            heights = list(0.5 * (crossings[1:] + crossings[:-1]))

    def kreiss(self, epsilons=None) -> float:
        """A lower bound of sup ||exp(tJ)|| over t >= 0: the largest abscissa(epsilon) / epsilon.

        The Kreiss matrix theorem: with the supremum K over all epsilon, K <= sup ||exp(tJ)|| <= e n K. A value far
        above 1 says that solutions of u' = J u grow before they decay.

        epsilons  values to try; by default 13 from 1e-6 to 1 times ||J||
        """
        if epsilons is None:
            epsilons = np.geomspace(1e-6, 1.0, 13) * np.linalg.norm(self.triangle, 2)
        return max(self.abscissa(float(epsilon)) / float(epsilon) for epsilon in epsilons)

    def table(self):
        """A row per point of the grid."""
        real, imaginary = np.meshgrid(self.real, self.imaginary)
        return {"real": real.ravel(), "imaginary": imaginary.ravel(), "smallest": self.smallest.ravel()}


def pseudospectrum(J, points: int = 50, box=None) -> Pseudospectrum:
    """The pseudospectra of a matrix: how far small changes, or rounding, move its eigenvalues.

    J       a square matrix, real or complex: an array, a tensor, scipy.sparse or an operator, which are filled in; up
            to 3,000 components
    points  grid points along each axis; 50. A matrix of 300 components takes about five seconds, and the time grows
            like points^2 n^2
    box     (left, right, bottom, top) of the grid; by default the field of values and a quarter more on each side

    Returns a Pseudospectrum: `smallest` (sigma_min of zI - J on the grid), `field_of_values`, `abscissa(epsilon)`,
    `kreiss()`, `plot()`. Beyond 48 components `smallest` is accurate to about three digits.

    >>> import numpy as np
    >>> import odelab as ol
    >>> n = 30
    >>> J = np.diag([-2.0] * n) + np.diag([1.9] * (n - 1), -1) + np.diag([0.1] * (n - 1), 1)
    >>> found = ol.pseudospectrum(J, points=20)
    >>> ol.spectrum(J).max_re < -1.1, found.abscissa(1e-4) > -0.6
    (True, True)
    """
    from scipy.linalg import schur

    reject_gradients(J)
    operator = as_operator(J)
    n = operator.shape[0]
    if n != operator.shape[1]:
        raise ValueError(f"`J` must be square, got shape {operator.shape}.")
    if n > LARGEST:
        raise ValueError(
            f"`J` has {n} components, and pseudospectra are found for at most {LARGEST}; give a part of it."
        )
    if not points >= 2:
        raise ValueError(f"`points` must be at least 2, got {points!r}.")
    matrix = operator.dense()
    matrix = matrix.astype(complex if np.iscomplexobj(matrix) else float)
    triangle, _ = schur(matrix, output="complex")
    boundary = _field_of_values(matrix)
    left, right, bottom, top = _frame(boundary) if box is None else map(float, box)
    if not (left < right and bottom < top):
        raise ValueError(f"`box` must be (left, right, bottom, top), left < right and bottom < top, got {box!r}.")
    real, imaginary = np.linspace(left, right, points), np.linspace(bottom, top, points)
    if bottom == -top:
        imaginary = 0.5 * (imaginary - imaginary[::-1])  # symmetric to the last bit, so that half the rows will do
    heights = imaginary if np.iscomplexobj(matrix) else np.abs(imaginary)  # conjugate points are alike for a real J
    rows = {y: _smallest(triangle, real + 1j * y) for y in dict.fromkeys(heights)}
    smallest = np.stack([rows[y] for y in heights])
    return Pseudospectrum(real, imaginary, smallest, np.diag(triangle).copy(), boundary, triangle)


def _frame(boundary):
    """The box round a field of values, a quarter wider on each side."""
    left, right, bottom, top = boundary.real.min(), boundary.real.max(), boundary.imag.min(), boundary.imag.max()
    margin = 0.25 * max(right - left, top - bottom) or 1.0
    return left - margin, right + margin, bottom - margin, top + margin


def _field_of_values(J) -> np.ndarray:
    """The points where a line turned through all angles touches the field of values; half of them for a real matrix,
    whose lower half mirrors the upper one.
    """
    from scipy.linalg import eigh

    def touched(angle):
        turned = np.exp(-1j * angle) * J
        _, vector = eigh(0.5 * (turned + turned.conj().T), subset_by_index=(len(J) - 1, len(J) - 1))
        return complex(np.vdot(vector, J @ vector))

    angles = np.linspace(0.0, np.pi, ANGLES + 1)
    points = np.array([touched(angle) for angle in angles])
    lower = [touched(-angle) for angle in angles[::-1]] if np.iscomplexobj(J) else points[::-1].conj()
    return np.concatenate([points, lower[1:], points[:1]])


def _smallest(triangle, z) -> np.ndarray:
    """sigma_min(z_i I - T) of a triangular matrix at each point."""
    n = len(triangle)
    if n <= BY_SVD:
        return np.linalg.svd(z[:, None, None] * np.eye(n) - triangle, compute_uv=False)[:, -1]
    return np.array([_by_inverse_lanczos(triangle, point) for point in z])


def _by_inverse_lanczos(triangle, z) -> float:
    """Lanczos for the largest eigenvalue of (zI - T)^-H (zI - T)^-1, which is 1 / sigma_min^2."""
    from scipy.linalg import eigvalsh_tridiagonal
    from scipy.linalg.lapack import ztrtrs

    n = len(triangle)
    moved = np.asfortranarray(z * np.eye(n) - triangle)
    if not np.diag(moved).all():
        return 0.0
    rng = np.random.default_rng(0)
    q = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    q /= np.linalg.norm(q)
    last, beta, largest = np.zeros_like(q), 0.0, 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(min(n, LANCZOS_STEPS)):
        inner, _ = ztrtrs(moved, q, trans=2)
        v, _ = ztrtrs(moved, inner)
        v -= beta * last
        diagonal.append(float(np.vdot(q, v).real))
        v -= diagonal[-1] * q
        beta = float(np.linalg.norm(v))
        if not np.isfinite(beta):
            return 0.0  # the resolvent is beyond double precision
        before, last_one = largest, (len(beside), len(beside))
        largest = float(eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=last_one)[0])
        if abs(largest - before) <= SETTLED * abs(largest) or beta == 0.0:
            break
        beside.append(beta)
        last, q = q, v / beta
    return largest**-0.5


def _rightmost(triangle, y, epsilon) -> float:
    """The largest x with sigma_min((x + iy)I - J) = epsilon: a real eigenvalue of a Hamiltonian matrix."""
    n = len(triangle)
    eye = np.eye(n)
    hamiltonian = np.block([
        [triangle.conj().T + 1j * y * eye, -epsilon * eye],
        [-epsilon * eye, triangle - 1j * y * eye],
    ])  # fmt: skip
    return max((float(value.real) for value in _near_the_axis(1j * hamiltonian)), default=-np.inf)


def _crossings(triangle, x, epsilon) -> np.ndarray:
    """The y, in order, with a singular value of (x + iy)I - J equal to epsilon."""
    n = len(triangle)
    eye = np.eye(n)
    hamiltonian = np.block([
        [x * eye - triangle.conj().T, epsilon * eye],
        [-epsilon * eye, triangle - x * eye],
    ])  # fmt: skip
    return np.sort([value.real for value in _near_the_axis(hamiltonian)])


def _near_the_axis(hamiltonian):
    """-i lambda of the eigenvalues that are imaginary to within rounding."""
    values = np.linalg.eigvals(hamiltonian) / 1j
    return values[np.abs(values.imag) <= ON_THE_AXIS * np.abs(values).max()]
