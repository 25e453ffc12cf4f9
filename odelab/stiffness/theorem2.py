"""Theorem 2 of Huang, Liang et al. (2023), corrected, with every premise checked: when does SAI stand for SI?

For a symmetric J with orthonormal eigenvectors V, c = V'u and a = V'(f(u) - J u), as the step size goes to zero
(for explicit Euler at any step size)

    SAI = SI sqrt(C + Q),   C = sum over |lambda_i| = SI of c_i^2 / ||u||^2,
    Q = [sum over the others of c_i^2 lambda_i^2 + sum over all of (2 a_i c_i lambda_i + a_i^2)] / (SI^2 ||u||^2).

Appendix C prints 2 a_i lambda_i for the cross term; expanding (lambda_i c_i + a_i)^2 gives it the factor c_i. The
paper's further claim, Q -> 0 as SI grows (Eq. 30), needs premises that it does not state; they are checked here.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import checked_square, epsilon, floating, library_of, norm, reject_nonfinite, reject_zero, to_numpy
from odelab.results import Result

__all__ = ["Premise", "Theorem2", "theorem2"]

PRESENT = 1e-8  # a mode whose |c_i| is below this share of ||u|| counts as absent
LOST = 1e-4  # coefficients larger than this share of 1 / eps have no reliable digit
IDENTITY = 1e-10  # the residual of a symmetric system is rounding up to here (in single precision 100 n eps)


RELATIONS = {
    "<=": lambda value, threshold: value <= threshold,
    ">=": lambda value, threshold: value >= threshold,
    "<": lambda value, threshold: value < threshold,
    ">": lambda value, threshold: value > threshold,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Premise:
    """One hypothesis of a theorem, measured; `value` and `holds` are arrays (...,) for a batch.

    name       what the hypothesis is called, such as "symmetric"
    measured   the quantity, as a formula
    value      what the quantity was found to be
    relation   "<=", ">=", "<" or ">", between value and threshold where the hypothesis holds
    threshold  what the value is held against
    otherwise  what follows where it does not hold, in words
    needed     False where the paper states it but the corrected theorem does without
    holds      whether it holds; computed unless given
    """

    name: str
    measured: str
    value: Any
    relation: str
    threshold: float
    otherwise: str
    needed: bool = True
    holds: Any = None

    def __post_init__(self):
        if self.holds is None:
            object.__setattr__(self, "holds", RELATIONS[self.relation](self.value, self.threshold))

    @property
    def sentence(self) -> str:
        """The verdict in words; of a batch, how many systems it holds for."""
        claim = f"{self.name}: {self.measured} {self.relation} {self.threshold:.2g}"
        if np.ndim(self.holds) > 0:
            holds = to_numpy(self.holds)
            return f"{claim} holds for {int(holds.sum())} of {holds.size} systems; elsewhere {self.otherwise}."
        if self.holds:
            return f"{claim} holds, the value is {self.value:.3g}."
        return f"{claim} fails, the value is {self.value:.3g}: {self.otherwise}."


@dataclasses.dataclass(frozen=True, eq=False)
class Theorem2(Result, kinds={"premises": "odelab.plot.of_results:draw_premises"}):
    """What Theorem 2 says of systems (J, u, f(u)), as `odelab.theorem2` returns it.

    Fields are Python numbers for one system and arrays (...,) for a batch. For a J that is not symmetric, `c` and `q`
    are formed as the paper's proof would, with eigenvectors of length one that are not orthogonal, and `residual` shows
    by how much that misses.

    si        the stiffness index max |Re lambda(J)|
    sai       the stiffness-aware index ||f|| / ||u||
    c         C, the share of the dominant modes in u
    q         Q, what the other modes and the offset f - J u add
    residual  |(SAI / SI)^2 - (C + Q)| over the sum of the absolute terms of C + Q, so that cancellation between them,
              as on a slow manifold, does not pass for a failure
    identity  whether J is symmetric and the residual is rounding
    limit     whether every premise that Q -> 0 needs is met, so that |Q| is at most about 3 small^2
    holds     whether `identity` and `limit` both hold
    premises  each hypothesis by name, a Premise with `value`, `holds` and `sentence`
    """

    si: Any
    sai: Any
    c: Any
    q: Any
    residual: Any
    identity: Any
    limit: Any
    holds: Any
    premises: Mapping[str, Premise]

    def table(self):
        """A row per system."""
        names = ("si", "sai", "c", "q", "residual", "identity", "limit", "holds")
        return {name: np.ravel(to_numpy(getattr(self, name))) for name in names}

    def __str__(self):
        return "\n".join([self._summary(), *(premise.sentence for premise in self.premises.values())])

    def _summary(self) -> str:
        if np.ndim(self.holds) > 0:
            return f"holds for {int(to_numpy(self.holds).sum())} of {np.size(self.holds)} systems"
        verdict = "holds" if self.holds else "does not hold"
        right = self.si * max(self.c + self.q, 0.0) ** 0.5
        parts = f"C = {self.c:.4g}, Q = {self.q:.4g}, SI sqrt(C + Q) = {right:.6g}"
        return f"SI = {self.si:.6g}, SAI = {self.sai:.6g}, {parts}: Theorem 2 {verdict}."


class Modes(NamedTuple):
    """The coefficients of systems in their eigenvectors, (N,) each; lengths are relative to ||u||."""

    si: Any
    c: Any
    q: Any
    terms: Any  # the absolute values of the terms of C + Q, summed
    max_re: Any
    next: Any  # the largest |lambda| among the other modes that are present in u
    gap: Any  # the least distance between two eigenvalues


def theorem2(J, u, f, small: float = 0.1, floor: float = 1e-8) -> Theorem2:
    """Check Theorem 2 of Huang, Liang et al. (2023), corrected: does SAI stand for SI in a system, and why not?

    The premise lambda_i = o(lambda_1) is about a family of systems whose lambda_1 grows. For a single system the ratio
    lambda_i / lambda_1 is compared with `small` instead.

    J      Jacobians, (..., n, n), as an array or a tensor
    u      states, (..., n)
    f      slopes f(u), (..., n)
    small  what counts as small: another mode's eigenvalue below `small` times SI, the offset f - J u below `small`^2
           times SI ||u||, because it enters Q to first order; the share C of the dominant modes is not small from
           `small` on. 0.1
    floor  the least ||u||, in the units of u; 1e-8

    Returns a Theorem2; `print` gives the verdict on each premise in a sentence.

    >>> import odelab as ol
    >>> J, u = [[-1000.0, 0.0], [0.0, -1.0]], [1.0, 0.5]
    >>> found = ol.theorem2(J, u, f=[-1000.0, -0.5])
    >>> found.holds, round(found.sai / found.si, 3)
    (True, 0.894)
    >>> print(found.premises["symmetric"].sentence)
    symmetric: ||J - J'|| / ||J|| <= ... holds, the value is 0.
    """
    J, u, f = _together(J, u, f)
    for name, value in (("small", small), ("floor", floor)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, got {value!r}.")
    library, batch, n = library_of(J), tuple(J.shape[:-2]), J.shape[-1]
    J, u, f = J.reshape(-1, n, n), u.reshape(-1, n), f.reshape(-1, n)
    rounding = 100.0 * n * epsilon(J)
    asymmetry, non_normality = _departures(J)
    symmetric = asymmetry <= rounding
    state = norm(u)
    offset = f - library.matmul(J, u[..., None])[..., 0]
    modes = _modes(J, u / state[:, None], offset / state[:, None], symmetric, rounding)
    stiff = modes.si > 0
    si = library.where(stiff, modes.si, library.ones_like(modes.si))  # a divisor; J = 0 has no verdict below
    sai = norm(f) / state
    residual = library.abs((sai / si) ** 2 - (modes.c + modes.q)) / _divisor(modes.terms)
    bent = norm(offset)
    premises = (
        Premise("symmetric", "||J - J'|| / ||J||", asymmetry, "<=", rounding, NOT_SYMMETRIC),
        Premise("normal", "||JJ' - J'J|| / ||J||^2", non_normality, "<=", rounding, NOT_NORMAL),
        Premise("distinct", "least gap / SI", modes.gap / si, ">", rounding, NOT_DISTINCT, needed=False),
        Premise("decaying", "max Re / SI", modes.max_re / si, "<", -n * epsilon(J), NOT_DECAYING),
        Premise("aligned", "C", modes.c, ">=", small, NOT_ALIGNED),
        Premise("homogeneous", "||f - Ju|| / ||f||", _ratio(bent, norm(f)), "<=", small**2, NOT_HOMOGENEOUS),
        Premise("separated", "next |lambda| / SI", modes.next / si, "<=", small, NOT_SEPARATED),
        Premise("offset", "||f - Ju|| / (SI ||u||)", _ratio(bent, modes.si * state), "<=", small**2, NOT_OFFSET),
        Premise("bounded", "||u||", state, ">=", floor, NOT_BOUNDED),
    )
    identity = symmetric & stiff & (residual <= max(IDENTITY, rounding))
    limit = stiff
    for premise in premises:
        limit = limit & premise.holds if premise.needed else limit

    def as_given(values):
        return values.reshape(batch) if batch else values[0].item()

    named = {p.name: dataclasses.replace(p, value=as_given(p.value), holds=as_given(p.holds)) for p in premises}
    return Theorem2(
        si=as_given(modes.si),
        sai=as_given(sai),
        c=as_given(modes.c),
        q=as_given(modes.q),
        residual=as_given(residual),
        identity=as_given(identity),
        limit=as_given(limit),
        holds=as_given(identity & limit),
        premises=MappingProxyType(named),
    )


NOT_SYMMETRIC = "eigenvectors are not orthogonal, and C + Q is not (SAI / SI)^2"
NOT_NORMAL = "modes may cancel in u and add in f, and SAI may exceed SI without bound"
NOT_DISTINCT = "the paper asks for it, but C sums the modes that share |lambda| = SI"
NOT_DECAYING = "a mode rests or grows"
NOT_ALIGNED = "u has little of the dominant modes, and SAI shows little of SI"
NOT_HOMOGENEOUS = "f is not J u: the motion does not rest at the origin, or f bends, as on a slow manifold"
NOT_SEPARATED = "another mode in u is of the order of the dominant one, and Q stays"
NOT_OFFSET = "f - Ju is of the order of SI, and Q stays"
NOT_BOUNDED = "u vanishes, and SAI divides by it"


def _departures(J):
    """How far J is from symmetric, ||J - J'|| / ||J||, and from normal, ||JJ' - J'J|| / ||J||^2."""
    library = library_of(J)
    J = J / _divisor(norm(J, (1, 2)))[:, None, None]
    other = library.swapaxes(J, 1, 2)
    return norm(J - other, (1, 2)), norm(library.matmul(J, other) - library.matmul(other, J), (1, 2))


def _modes(J, u, offset, symmetric, rounding) -> Modes:
    """Decompose symmetric systems by orthonormal eigenvectors, the others by eigenvectors of length one."""
    if bool(symmetric.all()):
        return _symmetric_modes(J, u, offset, rounding)
    if not bool(symmetric.any()):
        return _general_modes(J, u, offset, rounding)
    exact = _symmetric_modes(J[symmetric], u[symmetric], offset[symmetric], rounding)
    rest = _general_modes(J[~symmetric], u[~symmetric], offset[~symmetric], rounding)
    merged = []
    for one, other in zip(exact, rest, strict=True):
        both = library_of(J).empty_like(u[:, 0])
        both[symmetric], both[~symmetric] = one, other
        merged.append(both)
    return Modes(*merged)


def _symmetric_modes(J, u, offset, rounding) -> Modes:
    library = library_of(J)
    values, vectors = library.linalg.eigh((J + library.swapaxes(J, 1, 2)) / 2)
    rows = library.swapaxes(vectors, 1, 2)
    c, a = (library.matmul(rows, x[..., None])[..., 0] for x in (u, offset))
    gaps = values[:, 1:] - values[:, :-1]
    gap = library.amin(gaps, 1) if gaps.shape[1] else library.full_like(values[:, 0], np.inf)
    return _factors(values, c, a, gap, rounding)


def _general_modes(J, u, offset, rounding) -> Modes:
    library = library_of(J)
    n = J.shape[1]
    values, vectors = library.linalg.eig(J)
    sides = library.stack([u, offset], 2) * library.ones_like(vectors[:, :, :1])  # complex where the vectors are
    try:
        coefficients = library.linalg.solve(vectors, sides)
        lost = ~(library.amax(library.abs(coefficients), (1, 2)) * epsilon(J) < LOST)
    except library.linalg.LinAlgError:
        coefficients, lost = library.zeros_like(sides), library.isfinite(norm(J, (1, 2)))
    if bool(lost.any()):  # defective to within rounding: too few eigenvectors, so the nearest combination of them
        coefficients[lost] = library.matmul(library.linalg.pinv(vectors[lost]), sides[lost])
    distances = library.abs(values[:, :, None] - values[:, None, :])
    distances[:, range(n), range(n)] = np.inf
    gap = library.amin(distances, (1, 2))
    return _factors(values, coefficients[..., 0], coefficients[..., 1], gap, rounding)


def _factors(values, c, a, gap, rounding) -> Modes:
    """C and Q from eigenvalues and coefficients, scaled by SI so that nothing overflows on the way."""
    library = library_of(values)
    sizes = library.abs(values.real)
    si = library.amax(sizes, 1)
    unit = _divisor(si)[:, None]
    dominant = sizes >= (1.0 - rounding) * si[:, None]  # several where |Re lambda| = SI is multiple
    a = a / unit
    values = values / unit
    share = library.where(dominant, library.abs(c) ** 2, library.zeros_like(sizes))
    squares = library.abs(c * values) ** 2
    cross = 2.0 * (library.conj(a) * c * values).real  # with c_i, unlike the display before Eq. 30
    offsets = library.abs(a) ** 2
    others = library.abs(values) * unit
    others = library.where(dominant | (library.abs(c) < PRESENT), library.zeros_like(others), others)
    return Modes(
        si=si,
        c=share.sum(1),
        q=(squares - share + cross + offsets).sum(1),
        terms=(squares + library.abs(cross) + offsets).sum(1),
        max_re=library.amax(values.real, 1) * unit[:, 0],
        next=library.amax(others, 1),
        gap=gap,
    )


def _together(J, u, f):
    """J, u and f as arrays of one library and one precision, with shapes that agree."""
    like = next((x for x in (J, u, f) if library_of(x) is not np), None)
    J, u, f = floating("J", J, like), floating("u", u, like), floating("f", f, like)
    library = library_of(J)
    if not J.dtype == u.dtype == f.dtype:
        J, u, f = (x.astype(np.float64) if library is np else x.to(library.float64) for x in (J, u, f))
    J = checked_square("J", J)
    for name, x in (("u", u), ("f", f)):
        if tuple(x.shape) != tuple(J.shape[:-1]):
            raise ValueError(
                f"`{name}` must have shape {tuple(J.shape[:-1])}, one vector per `J`, got {tuple(x.shape)}."
            )
        reject_nonfinite(name, x)
    reject_zero("u", norm(u))
    return J, u, f


def _divisor(values):
    """`values`, with ones where they are zero."""
    library = library_of(values)
    return library.where(values > 0, values, library.ones_like(values))


def _ratio(part, whole):
    """part / whole, 0 / 0 being 0 and x / 0 infinite."""
    library = library_of(part)
    infinite = library.full_like(part, np.inf)
    return library.where(whole > 0, part / _divisor(whole), library.where(part > 0, infinite, part))
