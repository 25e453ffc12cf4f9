"""Windows whose costs and indices are made up, for the tests of the study's analysis."""

import numpy as np

from studies.switching.evidence import Windows
from studies.switching.runs import TOLERANCES

LADDER = np.array(TOLERANCES)
MEASURED = (
    *("SI", "-min Re", "rho", "rho_ng", "|J|_2", "mu_1", "mu_2", "mu_inf", "m_2", "-s[J]", "max/min |Re|", "Henrici"),
    *("SAI", "simplified SAI", "weighted SAI", "rate", "h_stab", "h_power", "u3", "u4", "u5"),
)


def ladder(cost) -> dict:
    """A run whose cost does not depend on the tolerance, and whose error is a tenth of it."""
    nothing = np.zeros(len(LADDER)).tolist()
    run = dict.fromkeys(("rejected", "flagged", "near", "censored"), nothing)
    return run | {"attempts": np.full(len(LADDER), cost).tolist(), "error": (0.1 * LADDER).tolist()}


def window(explicit, implicit, **indices) -> dict:
    values = dict.fromkeys(MEASURED, 1.0) | indices
    runs = {"explicit": ladder(explicit), "implicit": ladder(implicit)}
    return {"start": 0.0, "end": 1.0, "indices": values, "early": values, **runs}


def problem(name, rows, family=None, **more) -> dict:
    about = {"n": 2, "span": 1.0, "by_lines": False, "non_normal": False, "tolerances": list(LADDER), "order": 5}
    about["work"] = {"explicit": (6, 0), "implicit": (5, 1)}
    return {"name": name, "family": family or name, "windows": rows} | about | more


def windows(families=8) -> Windows:
    """SI ranks as R does; SAI ranks the other way; rho_ng tells problems apart and not windows."""
    made = []
    for k in range(families):
        rows = []
        for j in range(8):
            ratio = 10.0 ** (-1.5 + 3.0 * ((3 * j + k) % 8) / 7.0)
            rows.append(window(8.0 * ratio, 6.0, SI=ratio, SAI=1.0 / ratio, rho_ng=1.0 + k))
        made.append(problem(f"p{k}", rows))
    return Windows(made)
