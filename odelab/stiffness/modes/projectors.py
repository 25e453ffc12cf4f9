"""Projectors on groups of modes, from the Schur form of a balanced matrix and one Sylvester equation (Bavely and
Stewart, SIAM J. Numer. Anal. 16 (1979)); single eigenvectors need not be determined.
"""

from typing import NamedTuple

import numpy as np

from odelab.arrays import norm


class Projector(NamedTuple):
    """The projector right @ left on a group of modes, (n, m) times (m, n), where left @ right is the identity.

    norm         its 2-norm in balanced components
    uncertainty  by how much rounding may change an entry of its diagonal, to first order
    """

    right: np.ndarray
    left: np.ndarray
    norm: float
    uncertainty: float


class BalancedSchur:
    """The Schur form of D^-1 J D, where the powers of two in D balance J (n, n): units of components play no part.

    values  the eigenvalues, (n,), with zeros where they are at most `noise`, as rounding leaves nothing of those
    noise   n eps ||D^-1 J D||
    """

    def __init__(self, J: np.ndarray):
        from scipy.linalg import matrix_balance, schur

        _, (self.scale, _) = matrix_balance(J, permute=False, separate=True)
        balanced = J * self.scale / self.scale[:, None]
        self.triangle, self.vectors = schur(balanced, output="complex")
        self.rounding = float(np.finfo(float).eps * norm(balanced, (0, 1)))
        self.noise = len(J) * self.rounding
        values = np.diag(self.triangle).copy()
        self.values = np.where(np.abs(values) > self.noise, values, 0.0)

    def projector(self, chosen) -> Projector:
        """The projector on the space of the modes with the numbers `chosen`.

        An ordered Schur form has T11 of the group in its corner. Then with T11 X - X T22 = -T12 the right basis is Z1,
        and the left one Z1' - X Z2'.
        """
        from scipy.linalg.lapack import ztrsen, ztrsyl

        n, m = len(self.values), len(chosen)
        select = np.zeros(n, dtype=np.int32)
        select[chosen] = 1
        T, Z, _, _, _, separation, _ = ztrsen(select, self.triangle, self.vectors, lwork=max(1, 2 * m * (n - m)))
        right, left = Z[:, :m], Z[:, :m].conj().T
        if m < n:
            X, size, _ = ztrsyl(T[:m, :m], T[m:, m:], -T[:m, m:], isgn=-1)
            left = left - X / size @ Z[:, m:].conj().T
        length = float(np.linalg.norm(left, 2))
        with np.errstate(
            divide="ignore"
        ):  # a change E of J changes the projector Q by up to 2 ||Q||^2 ||E|| / separation
            uncertainty = 0.0 if m == n else float(2.0 * length**2 * self.rounding / np.float64(separation))
        return Projector(self.scale[:, None] * right, left / self.scale, length, uncertainty)
