"""Windows whose costs and indices are made up, for the tests of the study's analysis."""

import numpy as np

from studies.switching.design import TOLERANCES
from studies.switching.observations import Lab

LADDER = np.array(TOLERANCES)
MEASURED = (
    *("SI", "-min Re", "rho", "rho_ng", "|J|_2", "mu_1", "mu_2", "mu_inf", "m_2", "-s[J]", "max/min |Re|", "Henrici"),
    *("SAI", "simplified SAI", "weighted SAI", "rate", "h_stab", "h_power", "u3", "u4", "u5"),
)


def ladder(cost) -> dict:
    """A run whose cost does not depend on the tolerance, and whose error is a tenth of it."""
    nothing = np.zeros(len(LADDER)).tolist()
    told = dict.fromkeys(("rejected", "flagged", "near", "censored"), nothing)
    return told | {"attempts": np.full(len(LADDER), cost).tolist(), "error": (0.1 * LADDER).tolist()}


def window(explicit, implicit, **indices) -> dict:
    known = dict.fromkeys(MEASURED, 1.0) | indices
    runs = {"explicit": ladder(explicit), "implicit": ladder(implicit)}
    return {"start": 0.0, "end": 1.0, "indices": known, "early": known, **runs}


def problem(name, windows, family=None, **more) -> dict:
    known = {"n": 2, "span": 1.0, "by_lines": False, "non_normal": False, "tolerances": list(LADDER), "order": 5}
    known["work"] = {"explicit": (6, 0), "implicit": (5, 1)}
    return {"name": name, "family": family or name, "windows": windows} | known | more


def lab(families=8, reversed_sai=True) -> Lab:
    """SI ranks as R does; SAI ranks the other way; rho_ng tells problems apart and not windows."""
    made = []
    for k in range(families):
        rows = []
        for j in range(8):
            ratio = 10.0 ** (-1.5 + 3.0 * ((3 * j + k) % 8) / 7.0)
            sai = 1.0 / ratio if reversed_sai else ratio
            rows.append(window(8.0 * ratio, 6.0, SI=ratio, SAI=sai, rho_ng=1.0 + k))
        made.append(problem(f"p{k}", rows))
    return Lab(made)
