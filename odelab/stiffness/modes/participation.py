"""How much of each component takes part in the modes of a matrix, for groups of modes whose rates lie close together.

With J = A diag(lambda) B and B = A^-1, component k takes part in mode i by A_ki B_ik (Perez-Arriaga, Verghese and
Schweppe, IEEE Trans. PAS 101 (1982); the radical pointers of Lam and Goussis, Int. J. Chem. Kinet. 26 (1994)). The sum
over all components is 1, and so is that over all modes; other units of the components change nothing. Where two
eigenvalues nearly meet their eigenvectors are not determined, but the projector on the space of both is. So modes are
taken in groups, and the participation is the diagonal of the projector of a group, which comes from an ordered Schur
form and one Sylvester equation (Bavely and Stewart, SIAM J. Numer. Anal. 16 (1979)).
"""

import dataclasses

import numpy as np

from odelab.results import Result
from odelab.stiffness.modes.projectors import BalancedSchur
from odelab.stiffness.operator import as_operator
from odelab.stiffness.spectrum import reject_gradients

__all__ = ["ModeGroup", "participation"]

LARGEST = 2048  # components, for which a Schur form takes ten seconds; of more, ARPACK would have to find a part of it
NAMED = 3  # components that are named in words, at most
ENOUGH = 0.9  # no more components are named once those named hold this share
CONCENTRATED = 0.5  # the share that the three largest must hold to be named at all
CERTAIN = 0.05  # a share that rounding may change by more is not told


@dataclasses.dataclass(frozen=True, eq=False)
class ModeGroup(Result, kinds={"shares": "odelab.plot.of_results:draw_shares"}):
    """Modes of a matrix whose rates lie close together, and who takes part in them; see `odelab.participation`.

    rates           their eigenvalues, (m,), the largest modulus first; 0 where rounding leaves nothing else
    participation   of each component in the group, (n,), which sums to m; an entry may be negative or larger than 1
    projector_norm  the 2-norm of the group's projector in balanced components: 1 for a normal matrix
    uncertainty     by how much rounding may have changed a participation, to first order
    right, left     bases (n, m) and (m, n) of the group: left @ right is the identity, right @ left the projector
    names           of the components for printing, (n,); None stands for u[0], u[1] and so on

    `share` is the part of each component in words: |participation| over its sum. `print` says it in a sentence.

    >>> import odelab as ol
    >>> fast, slow = ol.participation([[-1000.0, 1.0], [0.0, -1.0]])
    >>> print(fast)
    mode: decays at 1e+03, 100 % u[0]
    >>> slow.share.round(3)
    array([0., 1.])
    """

    rates: np.ndarray
    participation: np.ndarray
    projector_norm: float
    uncertainty: float
    right: np.ndarray = dataclasses.field(repr=False)
    left: np.ndarray = dataclasses.field(repr=False)
    names: tuple[str, ...] | None = None

    @property
    def share(self) -> np.ndarray:
        """|participation| of each component over the sum of all."""
        size = np.abs(self.participation)
        return size / size.sum()

    def table(self):
        """A row per component."""
        names = [f"u[{i}]" for i in range(len(self.share))] if self.names is None else list(self.names)
        return {"component": names, "participation": self.participation, "share": self.share}

    def __str__(self):
        many = len(self.rates)
        return f"mode{'' if many == 1 else f's ({many})'}: {motion(self.rates)}, {self.components_in_words()}"

    def components_in_words(self) -> str:
        """The components that hold most of the group, or that it is spread over many, or that rounding hides them."""
        if not self.uncertainty <= CERTAIN:
            return f"in components that cannot be told, as rounding may change their shares by {self.uncertainty:.1g}"
        order = np.argsort(-self.share.round(2), kind="stable")  # as it is printed, so that rounding decides nothing
        held = np.cumsum(self.share[order])
        enough = int(np.argmax(held >= ENOUGH * held[-1])) + 1
        if held[:NAMED][-1] <= CONCENTRATED:
            return f"spread over {enough} components"
        first = order[: min(enough, NAMED)]
        names = {i: f"u[{i}]" if self.names is None else self.names[i] for i in first}
        return ", ".join(f"{100 * self.share[i]:.0f} % {names[i]}" for i in first)


def motion(rates) -> str:
    """The verb and the rates of some modes: "decays at 3.4e+03", "oscillate at rates from 2 to 5"."""
    size = np.abs(rates)
    verbs = [
        "stand still" if rate == 0.0 else "oscillate" if abs(rate.imag) > abs(rate.real) else "decay" if rate.real < 0.0
        else "grow"
        for rate in rates
    ]  # fmt: skip
    said = " and ".join(dict.fromkeys(verbs))
    if len(rates) == 1:
        said = "stands still" if said == "stand still" else f"{said}s"
    slow, fast = f"{size.min():.2g}", f"{size.max():.2g}"
    if fast == "0":
        return said
    return f"{said} at {fast}" if slow == fast else f"{said} at rates from {slow} to {fast}"


def participation(J, gap: float = 3.0, names=None) -> tuple[ModeGroup, ...]:
    """Which components take part in the fast modes of a matrix, and which in the slow ones.

    Modes are ordered by |lambda| and divided into groups where neighbours differ by more than `gap`; without such a gap
    there is one group, in which every component takes part equally. Other units of the components, J -> D J D^-1 with
    a diagonal D, do not change the answer.

    J      a square matrix: an array, a tensor, scipy.sparse or an operator, which are filled in; up to 2,048
           components
    gap    by what factor |lambda| must fall from one group to the next; 3
    names  of the components for printing, (n,); by default u[0], u[1] and so on

    Returns a tuple of `ModeGroup`s, the fastest first, with `rates`, `participation`, `share` and `projector_norm`;
    `print` says each in a sentence. Eigenvalues up to n eps ||J|| cannot be told from zero, and count as zeros.

    >>> import odelab as ol
    >>> fast, slow = ol.participation([[-1e4, 1e4, 3.0], [0.0, -1e4, 1.0], [1.0, 2.0, -1.0]])
    >>> print(fast)
    modes (2): decay at 1e+04, 50 % u[0], 50 % u[1]
    >>> slow.rates.real.round(2), slow.share.round(3)
    (array([-1.]), array([0., 0., 1.]))
    """
    if not 1.0 < gap < np.inf:
        raise ValueError(f"`gap` must be a number above 1, got {gap!r}.")
    schur = BalancedSchur(square_matrix(J))
    names = checked_names(names, len(schur.values))
    order, size = fastest_first(schur)
    cuts = np.flatnonzero(size[:-1] > gap * size[1:]) + 1
    return tuple(group_of(schur, chosen, names) for chosen in np.split(order, cuts))


def leading_group(J, within: float = 2.0) -> ModeGroup:
    """The fastest modes of a matrix whose rates have no large gap: they end at the widest gap between the radius and
    the radius over `within`; all modes where there is none below.
    """
    schur = BalancedSchur(square_matrix(J))
    order, size = fastest_first(schur)
    last = int((size >= size[0] / within).sum())
    below = np.append(size, 0.0)[1 : last + 1]
    falls = np.divide(size[:last], below, out=np.full(last, np.inf), where=below > 0.0)
    return group_of(schur, order[: last - int(np.argmax(falls[::-1]))])


def fastest_first(schur: BalancedSchur):
    """The numbers of all modes, the fastest first, and |lambda| in this order, where noise counts as the same zero."""
    size = np.maximum(np.abs(schur.values), schur.noise)
    order = np.argsort(-size, kind="stable")
    return order, size[order]


def group_of(schur: BalancedSchur, chosen, names=None) -> ModeGroup:
    """The modes with the numbers `chosen` as a group."""
    found = schur.projector(chosen)
    diagonal = np.einsum("km,mk->k", found.right, found.left).real
    return ModeGroup(schur.values[chosen], diagonal, found.norm, found.uncertainty, found.right, found.left, names)


def checked_names(names, size: int) -> tuple[str, ...] | None:
    if names is not None and len(names) != size:
        raise ValueError(f"`names` must name {size} components, got {len(names)}.")
    return None if names is None else tuple(names)


def square_matrix(J) -> np.ndarray:
    """One square matrix, filled in."""
    reject_gradients(J)
    operator = as_operator(J)
    rows, columns = operator.shape
    if rows != columns:
        raise ValueError(f"`J` must be square, got shape {operator.shape}.")
    if rows > LARGEST:
        raise ValueError(f"`J` has {rows} components, and modes are found of at most {LARGEST}; give a part of it.")
    return operator.dense()
