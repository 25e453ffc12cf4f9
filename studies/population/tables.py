"""The rows of every table of `population`, from its analysis."""

from collections.abc import Iterator

import numpy as np

from studies.lab.comparisons import deviation_cell, interval_cell
from studies.lab.measurements import Measurement
from studies.lab.statistics import interval_text
from studies.lab.stiffness import QUANTITIES, wording
from studies.population import design
from studies.population.analysis import ACCURACY, CONSTANT, STEPNET, Explained, Networks
from studies.population.findings import of_coefficient, of_relation


def progress_rows(wanted: list, found: list[Measurement], diverged: list[str]) -> Iterator[dict]:
    """How much of the design there is, and what the rest will cost."""
    parts = {
        "core": [design.is_core(job.specification) for job in wanted],
        "spread": [not design.is_core(job.specification) for job in wanted],
    }
    for part, inside in parts.items():
        here = [one for one in found if design.is_core(one.specification) == (part == "core")]
        lost = sum(job.stem in diverged for job, there in zip(wanted, inside, strict=True) if there)
        seconds = float(np.mean([one.numbers["made"]["seconds"] for one in here])) if here else float("nan")
        left = sum(inside) - len(here) - lost
        yield {
            "part": part,
            "networks": sum(inside),
            "measured": len(here),
            "diverged": lost,
            "missing": left,
            "training of one (s)": f"{seconds:.0f}" if here else "",
            "core-hours left": f"{left * seconds / 3600:.1f}" if here else "",
        }


def relation_rows(relations: dict) -> Iterator[dict]:
    """Claim 1: every quantity in every way under every reading; over all networks, also without one controller."""
    for (what, way, reading), found in relations.items():
        turning = {name: e for name, e in found.without.items() if np.isfinite(e.value)}
        ends = sorted(turning, key=lambda name: turning[name].value)
        yield {
            "quantity": what,
            "pairs counted": way,
            "reading": wording(*reading),
            "networks": found.n,
            "pairs": found.pairs,
            "Kendall's tau-b": interval_text(found.tau, "+.2f"),
            "half the interval": f"{0.5 * (found.tau.high - found.tau.low):.2f}",
            "without one controller": "; ".join(f"{turning[name].value:+.2f} ({name})" for name in (ends[0], ends[-1]))
            if ends
            else "",
            "better is larger": of_relation(found),
        }


def controller_rows(comparisons: dict) -> Iterator[dict]:
    """Claims 2 and 3: the controllers of the core with their seeds."""
    for name, values in comparisons[ACCURACY, (), CONSTANT].groups.items():
        yield {
            "controller": name,
            "seeds": len(values),
            "accuracy (%)": f"{np.mean(values):.2f}",
            "standard deviation": deviation_cell(values),
            **{
                f"above {control}": interval_cell(comparisons[ACCURACY, (), control].beyond, name)
                for control in (CONSTANT, STEPNET)
            },
            **{
                f"{what} above {CONSTANT}, {wording(*reading)}": interval_cell(
                    comparisons[what, reading, CONSTANT].beyond, name, "+.3f"
                )
                for what, readings in QUANTITIES.items()
                for reading in readings
            },
        }


def explained_rows(explanations: dict[tuple[str, str], Explained]) -> Iterator[dict]:
    """Claim 4: the coefficient of TNS, and the shares of all."""
    for reading, found in explanations.items():
        yield {
            "reading": wording(*reading),
            "networks": found.n,
            "coefficient of TNS": interval_text(found.coefficient, "+.2f"),
            "beyond rivals": of_coefficient(found),
            **{f"share of {name} (%)": percent(share) for name, share in found.shares.items()},
            "explained (%)": f"{100 * sum(share.value for share in found.shares.values()):.0f}",
        }


def percent(share) -> str:
    if not np.isfinite(share.value):
        return "undefined"
    value, low, high = (round(100 * x) for x in (share.value, share.low, share.high))
    return f"{value} [{low}, {high}]"


def network_rows(networks: Networks) -> Iterator[dict]:
    """One row for every network."""
    for i in range(len(networks)):
        yield {
            "part": "core" if networks.core[i] else "spread",
            "controller": networks.controller[i],
            "depth": networks.depth[i],
            "width": networks.width[i],
            "recipe": networks.recipe[i],
            "seed": networks.seed[i],
            "accuracy (%)": f"{networks.accuracy[i]:.2f}",
            "training loss": f"{networks.train_loss[i]:.3f}",
            "norm of the logits": f"{networks.logits_norm[i]:.2f}",
            "sharpness": f"{networks.sharpness[i]:.3f}",
            **{
                f"{what}, {wording(*reading)}": f"{values[i]:.3f}" if np.isfinite(values[i]) else "undefined"
                for what, readings in networks.stiffness.items()
                for reading, values in readings.items()
            },
        }
