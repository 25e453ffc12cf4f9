"""Whether a residual network and an ODE-net that are fitted to the same points are one."""

from collections.abc import Sequence

import numpy as np

from studies.block_stiffness.ode_nets import LENGTHS, Fit
from studies.lab.statistics import Estimate, interval_text, mean_with_interval
from studies.lab.verdicts import NOT_RUN, UNDECIDED, Verdict, Worlds, corrected, enough, joint, of_interval, rule

FEWEST_SEEDS, FEWEST_LENGTHS = 3, 2
APART = 0.1  # of the outputs' size: predictions nearer than that are the same


def worlds_of_fits(chance, effect: float, n: int) -> tuple:
    """Fits of n seeds at every length: a tenth of the outputs apart, or a thirtieth."""
    apart = APART * np.exp(-1.1 * effect + 0.4 * chance.standard_normal((len(LENGTHS), n)))
    fits = [
        Fit(rounds, seed, 0.7, 0.7, float(apart[place, seed]), 0.0, 0.0, 50.0, ())
        for place, rounds in enumerate(LENGTHS)
        for seed in range(n)
    ]
    return fits, ()


@rule(
    "ResNets correspond to ODE-nets",
    "Figure 2",
    fixed="after the data: with 2 seeds of 300 rounds and 5 of 1,500 known, because the verdict follows the length of "
    "the fit, of which the paper says nothing; by the old rule it was supported after 5 rounds, undecided after 300 "
    "and contradicted after 1,500",
    fewest=FEWEST_SEEDS,
    negligible=APART,
    worlds=Worlds(
        worlds_of_fits,
        n=8,
        units="seeds",
        now=5,
        effect="predictions that are 0.03 apart at every length (without an effect: 0.1 apart)",
    ),
)
def judge_fits(fits: Sequence[Fit], solved: Sequence[dict]) -> tuple[Verdict, str]:
    """How far the predictions of both are apart at outputs of size 1, after fits of several lengths, which are readings
    of a paper that names none. At each length: supported where the geometric mean over seeds is certainly below 0.1,
    contradicted where it is certainly above; intervals hold together. Lengths that differ in their verdict make it one
    about the optimisation, and one length alone decides nothing."""
    by_length: dict[int, list[Fit]] = {}
    for fit in sorted(fits, key=lambda fit: fit.rounds):
        by_length.setdefault(fit.rounds, []).append(fit)
    if not by_length:
        return NOT_RUN, "n = 0: nothing was fitted; `--ode-net` fits both."
    few = enough({f"{rounds} rounds": some for rounds, some in by_length.items()}, FEWEST_SEEDS)
    few = few or enough({"the fits": list(by_length)}, FEWEST_LENGTHS, "lengths")
    level = corrected(len(by_length))
    logs = {rounds: mean_with_interval([np.log(fit.between_fits) for fit in some], level)
            for rounds, some in by_length.items()}  # fmt: skip
    verdict = joint([of_interval(e.less(float(np.log(APART))), sign=-1) for e in logs.values()])
    told = "; ".join(f"after {rounds:,} rounds {apart_text(e)} (n = {e.n} seeds)" for rounds, e in logs.items())
    words = f"Predictions apart, at outputs of size about 1: {told}. "
    scaled = [pair for fit in fits for pair in fit.scales]
    if scaled:
        h_rho, far = max(scaled)
        words += (
            f"The same field under both schemes agrees as long as h rho is small: at {h_rho:.1f} it is {far:.2f} apart."
        )
    return (UNDECIDED if few else verdict), few + words.rstrip() + on_the_digits(solved)


def apart_text(e: Estimate) -> str:
    return interval_text(Estimate(*np.exp([e.value, e.low, e.high])), ".2f")


def on_the_digits(solved: Sequence[dict]) -> str:
    """A sentence about networks on the digits that are run by another scheme than the one they were trained with."""
    told = []
    for trained in dict.fromkeys(row["trained by"] for row in solved):
        some = [row for row in solved if row["trained by"] == trained]
        own, other = (
            np.mean([row["accuracy, %"] for row in some if (row["run by"] == trained) is wanted])
            for wanted in (True, False)
        )
        told.append(f"trained by {trained} {own:.0f} % as they were trained and {other:.0f} % under the other scheme")
    return f" Networks on the digits have an accuracy of: {'; '.join(told)}." if told else ""
