"""Made-up windows in families, for the rules of `findings`: nothing there, or the claim true in the size that it names.

Without an effect the ratios R of one family belong to the indices of another one, windows of a family staying together,
so that an index knows nothing of R and windows of a family are as alike as before. Where a claim is that something is
small, or a sentence with "only", worlds without an effect lie between the two thresholds of its rule instead; where it
is that one index is better than another, both are equally good.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from studies.switching import analysis
from studies.switching.design import EXPONENTS
from studies.switching.observations import Lab
from studies.switching.policies import Policy

ERRORS = (1e-3, 1e-6)
WINDOWS = 8  # of a family, which is one problem here
RESAMPLES = 100
FAMILY, WINDOW = 1.0, 0.8  # deviations of log10 R between families, and between the windows of one
NOISE = 0.1  # of log10 R from error to error
CHANGING = (0.10, 0.01)  # the share of windows, without an effect and with one
COSTS = (1.37, 1.12)  # geometric means over the oracle's
MORE = 1.02  # over the cost with the best threshold
MILD = (4.0, 0.5)  # R of windows with hardly any damping


@functools.cache
def families(n: int, windows: int = WINDOWS) -> np.ndarray:
    """The family of every window."""
    return np.repeat([f"family {number:03d}" for number in range(n)], windows)


@dataclasses.dataclass(frozen=True, eq=False)
class MadeUp(Lab):
    """Windows of which R and the indices are given, in place of problems that were measured.

    ratios   {error: R}
    columns  {index: its values}, the same at every error
    of       the family of every window
    """

    problems: list = dataclasses.field(default_factory=list)
    ratios: dict[float, np.ndarray] = dataclasses.field(default_factory=dict)
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    of: np.ndarray = dataclasses.field(default_factory=lambda: families(0))

    @functools.cached_property
    def name(self) -> np.ndarray:
        return self.of

    @functools.cached_property
    def family(self) -> np.ndarray:
        return self.of

    @functools.cached_property
    def weight(self) -> np.ndarray:
        return np.ones(len(self.of))

    def truth(self, eps: float, unit: str = "evaluations") -> np.ndarray:
        return self.ratios[eps]

    def values(self, eps: float) -> dict[str, np.ndarray]:
        return self.columns

    def index(self, key, when: str = "indices") -> np.ndarray:
        return self.columns[key]

    def column(self, key) -> Any:
        return np.ones(len(self.of))


def spread(chance, n: int, between: float = FAMILY, within: float = WINDOW, windows: int = WINDOWS) -> np.ndarray:
    """Numbers that differ between families and within them, (families, windows)."""
    return chance.normal(0.0, between, (n, 1)) + chance.normal(0.0, within, (n, windows))


def costs(chance, logs, effect: float) -> dict[float, np.ndarray]:
    """R at every error from log10 R, (families, windows); of other families where there is no effect."""
    logs = logs if effect else logs[chance.permutation(len(logs))]
    return {eps: 10.0 ** (logs + chance.normal(0.0, NOISE, logs.shape)).ravel() for eps in ERRORS}


def rank(lab: MadeUp) -> tuple:
    """The rankings of all windows, those of the windows beyond a factor of two, and the families."""
    names = tuple(lab.columns)
    everywhere, beyond = (
        {eps: analysis.rankings(lab, eps, RESAMPLES, band=band, names=names) for eps in ERRORS[:1]}
        for band in (False, True)
    )
    return everywhere, beyond, lab.of


def lab_of(chance, logs, effect: float, **logarithms: np.ndarray) -> MadeUp:
    """Windows with these log10 R, and with indices that are ten to the power of these numbers."""
    columns = {name: 10.0 ** column.ravel() for name, column in logarithms.items()}
    return MadeUp(ratios=costs(chance, logs, effect), columns=columns, of=families(*logs.shape))


def rankings_of_sai(chance, effect: float, n: int) -> tuple:
    """SAI that tells where R is large, and a simplified one that is nearly the same."""
    logs = spread(chance, n)
    sai = logs + spread(chance, n, 0.4, 0.4)
    simplified = sai + chance.normal(0.0, 0.02, logs.shape)
    return rank(lab_of(chance, logs, effect, **{"SAI": sai, "simplified SAI": simplified}))


def lab_of_powers(chance, effect: float, n: int, pace: float) -> MadeUp:
    """Windows that stability binds, with R as powers of the spectral radius, SAI and the error."""
    radius, sai = spread(chance, n), spread(chance, n)
    logs = radius + pace * sai + spread(chance, n, 0.3, 0.3)
    bound = lab_of(chance, logs, effect, **{"rho_ng": radius, "SAI": sai, "h_R/h_stab": np.full(logs.shape, 1.0)})
    slope = EXPONENTS["eps"]
    return dataclasses.replace(bound, ratios={eps: ratio * eps**slope for eps, ratio in bound.ratios.items()})


def powers_of_sai(chance, effect: float, n: int) -> tuple:
    """Powers of R, that of SAI being +1, and the families."""
    lab = lab_of_powers(chance, effect, n, 1.0)
    return analysis.powers(lab, ERRORS, RESAMPLES), lab.of


def rankings_and_powers_of_chi(chance, effect: float, n: int) -> tuple:
    """chi that tells and two indices of the problem that tell less, and powers as theory has them."""
    logs = spread(chance, n)
    columns = {"h_acc/h_stab": logs + spread(chance, n, 0.3, 0.3)}
    columns |= {name: logs + spread(chance, n, 1.2, 1.2) for name in ("SI", "rho_ng")}
    everywhere, beyond, _ = rank(lab_of(chance, logs, effect, **columns))
    lab = lab_of_powers(chance, effect, n, EXPONENTS["SAI"])
    return everywhere, beyond, analysis.powers(lab, ERRORS, RESAMPLES), lab.of


def rankings_of_the_ratio(chance, effect: float, n: int) -> tuple:
    """SI and SAI that tell a little, SAI the wrong way round, and their ratio that tells much."""
    logs = spread(chance, n)
    both = spread(chance, n, 0.7, 0.7)
    si, sai = 0.7 * logs + both, -0.3 * logs + 0.8 * both + spread(chance, n, 0.3, 0.3)
    return rank(lab_of(chance, logs, effect, **{"SI": si, "SAI": sai, "SI/SAI": si - sai}))


def rankings_of_pseudospectra(chance, effect: float, n: int) -> tuple:
    """Cells of one window each: both indices equally good, or that of powers better."""
    logs = spread(chance, n, windows=1)
    values = {"h_acc/h_stab": 1.3, "h_acc/h_power": 0.5 if effect else 1.3}
    columns = {name: logs + chance.normal(0.0, size, logs.shape) for name, size in values.items()}
    return rank(lab_of(chance, logs, 1.0, **columns))


def share_of_changes(chance, effect: float, n: int) -> tuple:
    """The share of windows that change class, which differs from family to family."""
    share = CHANGING[int(effect)]
    changing = chance.random((n, WINDOWS)) < chance.beta(0.5, 0.5 / share - 0.5, (n, 1))
    loose = chance.random((n, WINDOWS)) < 0.4
    ratios = {ERRORS[0]: np.where(loose, 3.0, 0.3).ravel(), ERRORS[1]: np.where(loose ^ changing, 3.0, 0.3).ravel()}
    lab = MadeUp(ratios=ratios, of=families(n))
    return analysis.share_that_changes(lab, *ERRORS, RESAMPLES), lab.of


def mild_windows(chance, effect: float, n: int) -> tuple:
    """Windows with hardly any damping and what they cost, beside others that are damped and cost any multiple."""
    mild = chance.random((n, WINDOWS)) < 0.2
    ratios = costs(
        chance, np.where(mild, np.log10(MILD[int(effect)]) + chance.normal(0.0, 0.05), spread(chance, n)), 1.0
    )
    lab = MadeUp(ratios=ratios, columns={"-s[J]": np.where(mild, 0.1, 1e3).ravel()}, of=families(n))
    return {eps: analysis.bound_without_damping(lab, eps) for eps in ERRORS}, lab.of


def costs_of_switching(chance, effect: float, n: int) -> tuple:
    """What a threshold that nothing was fitted to costs over the oracle, and the best one; two problems a family."""
    mean, of = np.log(COSTS[int(effect)]), families(n, 2)
    more = chance.exponential(np.log(MORE), len(of))
    logs = more + np.repeat(chance.exponential(0.5, n), 2) * chance.exponential(2.0 * (mean - np.log(MORE)), len(of))
    pairs = (("h_R/h_stab > 1", 1.0, logs), ("h_R/h_stab", 0.5, logs - more))
    table = {name: Policy(threshold, np.exp(values), of) for name, threshold, values in pairs}
    return {ERRORS[0]: table}, of
