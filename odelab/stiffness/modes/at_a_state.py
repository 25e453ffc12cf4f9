"""The modes of a problem at one state: the components that are fast, and how many modes have died out."""

import dataclasses
import itertools

import numpy as np

from odelab.complex_states import names_of_parts
from odelab.linear.linearisation import Linearisation
from odelab.problem import Problem, array_form
from odelab.results import Result
from odelab.stiffness.modes.participation import ModeGroup, participation
from odelab.stiffness.operator import as_operator

__all__ = ["Modes", "modes"]


@dataclasses.dataclass(frozen=True, eq=False)
class Modes(Result, kinds={"participation": "odelab.plot.of_results:draw_participation"}):
    """The modes of a problem at one state, as `odelab.modes` returns them; `print` says them in a sentence.

    groups           a `ModeGroup` for each group of rates, the fastest first, as `odelab.participation` has them
    exhausted        how many modes have died out: the fastest ones that decay, as long as what they still add to the
                     slope would move no component by more than its tolerance within the time of the next slower mode.
                     The errors of a run with loose tolerances keep modes from it
    tangential_rate  how fast the slope grows along itself, g'Jg / g'g, with every component measured by its tolerance:
                     the rate of the motion where all faster modes are exhausted; NaN where the slope is zero

    >>> import odelab as ol
    >>> problem = ol.problems.davis_skodje(gamma=1000.0)
    >>> print(ol.modes(problem, 1.0, problem.exact(1.0, problem.params), names=["y", "z"]))
    fast mode: decays at 1e+03, 100 % z; 1 of 2 modes exhausted
    """

    groups: tuple[ModeGroup, ...]
    exhausted: int
    tangential_rate: float

    def table(self):
        """A row per component, a column per group of modes: the share of each."""
        return {f"group{i}": group.share for i, group in enumerate(self.groups)}

    @property
    def few_are_fast(self) -> bool:
        """Does a gap set off at most half of the modes? Otherwise it makes little sense to call them fast."""
        return 2 * len(self.groups[0].rates) <= len(self.groups[0].participation)

    def __str__(self):
        total, together = len(self.groups[0].participation), len(self.groups[0].rates)
        if total > 1 and not self.few_are_fast:
            return f"no mode is fast by itself: there is no gap between the rates of {together} of {total} modes"
        return f"fast {self.groups[0]}; {self.exhausted} of {total} modes exhausted"


def modes(
    problem: Problem, t=None, u=None, *, gap: float = 3.0, rtol: float = 1e-3, atol: float = 1e-9, names=None
) -> Modes:
    """Which components of a problem are stiff at one state, and how many of its modes have died out.

    problem     a Problem; its Jacobian is found as linearly implicit methods find it
    t, u        time and state; by default the start of the problem
    gap         by what factor |lambda| must fall from one group of modes to the next; 3
    rtol, atol  what of each component is small: atol + rtol |u|; they decide on what is exhausted, and are the units of
                `tangential_rate`, not of the groups. 1e-3 and 1e-9
    names       of the components for printing, (n,); by default u[0], u[1] and so on, or Re u[0] ... Im u[0]

    Returns a `Modes`: `groups`, `exhausted`, `tangential_rate`. Raises ValueError where the slope or a derivative is
    not finite. The fast modes of a matrix are those of `odelab.participation`.

    >>> import odelab as ol
    >>> problem = ol.problems.robertson()
    >>> sol = ol.solve(problem.replace(t_span=(0.0, 40.0)), ol.RODAS4, ol.adaptive(1e-8, 1e-14))
    >>> found = ol.modes(problem, 40.0, sol.end_u, names=["A", "B", "C"])
    >>> print(found)
    fast mode: decays at 3.4e+03, 100 % B; 1 of 3 modes exhausted
    >>> found.groups[0].share.round(3)
    array([0., 1., 0.])
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"`problem` must be a Problem, got {problem!r}; of a matrix J, use odelab.participation(J).")
    if not (0.0 < rtol < np.inf and 0.0 <= atol < np.inf):
        raise ValueError(f"`rtol` must be positive and `atol` at least 0, got {rtol!r} and {atol!r}.")
    if problem.mass is not None:
        raise ValueError(
            "`problem` has a mass matrix, and its modes are those of the pencil (J, M): "
            "take odelab.participation(odelab.reduced_jacobian(problem, t, u))."
        )
    t = problem.t_span[0] if t is None else float(t)
    u = problem.u0 if u is None else problem.state_of(u)
    if u.shape != problem.u0.shape:
        raise ValueError(f"`u` must be a state of {problem.size} components, got shape {u.shape}.")
    names = names_of_parts(problem.size) if names is None and problem.is_complex else names
    rhs = array_form(problem)
    slope = np.asarray(rhs(t, u, problem.params))
    J = as_operator(Linearisation(problem, rhs).derivatives(t, u, slope)[0]).dense()
    return modes_of(J, slope, u, gap, rtol, atol, names)


def modes_of(J, slope, u, gap=3.0, rtol=1e-3, atol=1e-9, names=None) -> Modes:
    """The modes of a Jacobian, and what of a slope belongs to them."""
    groups = participation(J, gap, names)
    small = atol + rtol * np.abs(u)
    return Modes(groups, exhausted_modes(groups, slope, small), tangential_rate(J, slope, small))


def exhausted_modes(groups: tuple[ModeGroup, ...], slope, small) -> int:
    """The largest M for which |the part of the slope in the first M modes| / |lambda_(M+1)| is small (Lam and Goussis,
    Int. J. Chem. Kinet. 26 (1994)); groups are taken whole, and count as long as all of their modes decay.
    """
    count, part = 0, np.zeros(len(slope))
    for group, slower in itertools.pairwise(groups):
        part = part + (group.right @ (group.left @ slope)).real
        if not ((group.rates.real < 0.0).all() and (np.abs(part) < small * np.abs(slower.rates).max()).all()):
            break
        count += len(group.rates)
    return count


def tangential_rate(J, slope, small) -> float:
    """w'(D^-1 J D)w / w'w with w = D^-1 slope (Valorani et al., Combustion and Flame 162 (2015)), D = diag(small)."""
    scaled = slope / small
    length = np.linalg.norm(scaled)
    if length == 0.0:
        return np.nan
    direction = scaled / length
    return float(direction @ ((J @ (small * direction)) / small))
