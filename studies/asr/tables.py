"""The rows of every table, beside what the paper prints."""

from typing import Any

import numpy as np

from studies.asr import design, paper, style
from studies.asr.design import FAITHFUL, HALF, PLAIN
from studies.asr.findings.evidence import Evidence, over_seeds
from studies.lab.comparisons import deviation_cell, interval_cell
from studies.lab.statistics import Estimate, interval_text

PAPERS_DATA = {  # what Tables 3, 4, 6, 7, 9 and 13 are about; the last is of ResNet-83
    "controls": "CIFAR-10",
    "small": "CIFAR-10",
    "beside": "CIFAR-100",
    "uses": "CIFAR-100",
    "fixed": "CIFAR-100",
    "starts": "CIFAR-100",
    "bare": "CIFAR-10",
}


def result_rows(e: Evidence, part: str, column: str = "") -> list[dict]:
    """Every arm of a part with its seeds, its score and what lives in its heads."""
    found, groups = e.rows.get((part, column), {}), e.accuracies(part, column)
    if PLAIN not in groups:
        near = "small" if column == design.SMALL_SCALE else "controls"
        groups = groups | {PLAIN: e.accuracies(near).get(PLAIN, [])}
    beyond = over_seeds(PLAIN, groups, [name for name in found if name != PLAIN])
    rows = []
    for name, results in found.items():
        if not results:
            continue
        line = arm_cells(name, groups[name])
        line["test loss"] = f"{np.mean([one.test_loss for one in results]):.4f}"
        line[f"above {PLAIN} [95 %]"] = interval_cell(beyond, name)
        line |= living_cells(results)
        if part in PAPERS_DATA:
            line[f"paper, ResNet-164, {PAPERS_DATA[part]} (%)"] = paper.printed_accuracy(part, name)
        rows.append(line)
    return rows


def arm_cells(name: str, accuracies: list[float]) -> dict:
    """An arm with its score over the seeds."""
    mean, deviation = f"{np.mean(accuracies):.2f}", deviation_cell(accuracies, "one seed")
    return {"arm": name, "n": len(accuracies), "accuracy (%)": mean, "deviation": deviation}


def living_cells(results) -> dict:
    """Hidden units of all blocks and seeds, and where the gates' means stand before and after."""
    blocks = [block for one in results for block in one.blocks]
    if not blocks:
        return {}
    total = sum(block["hidden"] for block in blocks)
    ends = [f"{np.mean([block['mean'][k] for block in blocks]):.3f}" for k in (0, 1)]
    alive = [sum(block["alive"][k] for block in blocks) for k in (0, 1)]
    return {
        "hidden units alive, start -> end": f"{alive[0]} -> {alive[1]} of {total}" if total else "no head",
        "mean gate, start -> end": " -> ".join(ends),
    }


def backbone_rows(e: Evidence) -> list[dict]:
    """Tables 3 and 5: every backbone, its arms above the same network without a gate."""
    rows = []
    for column in design.BACKBONES:
        found, groups = e.rows.get(("backbones", column), {}), e.accuracies("backbones", column)
        beyond = over_seeds(PLAIN, groups, [name for name in found if name != PLAIN])
        for name, results in found.items():
            if not results:
                continue
            line = {"backbone": column} | arm_cells(name, groups[name])
            line["above plain [95 %]"] = interval_cell(beyond, name)
            rows.append(line | {"paper, other data and sizes (%)": paper.BACKBONES[column] if name == FAITHFUL else ""})
    return rows


def finetuned_rows(e: Evidence) -> list[dict]:
    """Constants in place of gates, with the other weights trained on."""
    return [
        {
            "module": name,
            "seed": one.seed,
            "accuracy (%)": f"{one.accuracy:.2f}",
            "above the network with its gates, points [95 %]": interval_text(Estimate(*one.beyond), "+.2f"),
            "paper": "-15",
        }
        for name, results in e.rows.get(("finetuned", ""), {}).items()
        for one in results
    ]


def merging_rows(merging) -> list[dict]:
    """Per backbone the largest error over all gates, relative to the largest logit."""
    rows = []
    for name in dict.fromkeys(row["backbone"] for row in merging):
        own = [row for row in merging if row["backbone"] == name]
        worst = {key: [row[key] for row in own] for key in own[0] if key not in ("backbone", "gate")}
        line = {"backbone": name, "gates": len(own)}
        rows.append(line | {key: "refused" if "refused" in v else f"{max(v):.1e}" for key, v in worst.items()})
    return rows


def psi_rows(e: Evidence) -> list[dict]:
    """What became of ASR's vectors: at the start, at the end, and by decay alone."""
    rows = []
    for (part, column), arms in e.rows.items():
        for name, results in arms.items():
            values = [block["psi"] for one in results for block in one.blocks if block["psi"]]
            if not values:
                continue
            end, deviation, start = (float(np.mean(part)) for part in zip(*values, strict=True))
            alone = decay_alone(results[0].recipe, results[0].specification) * start
            line = {"part": f"{part} {column}".strip(), "arm": name, "n": len(results), "start": f"{start:.4f}"}
            line |= {"by decay alone": f"{alone:.4f}", "end": f"{end:.4f}"}
            rows.append(line | {"deviation over channels": f"{deviation:.4f}", **living_cells(results)})
    return rows


def decay_alone(recipe: dict, specification: dict, images: int = 50_000) -> float:
    """What is left of a parameter without a gradient at the end of a recipe, without averaging of weights."""
    from netbridge.train.recipes import Recipe

    known: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in recipe.items()}
    whole = Recipe(**known)
    if not whole.decay_gates:
        return 1.0
    steps = (specification.get("images") or images) // whole.batch
    value, velocity = 1.0, 0.0
    for step in range(whole.epochs * steps):
        slope = whole.weight_decay * value
        velocity = whole.momentum * velocity + slope
        value -= whole.rate(step, steps) * (slope + whole.momentum * velocity if whole.nesterov else velocity)
    return value


def share_rows(shares) -> list[dict]:
    """Every block of every network: how constant its gates are."""
    return [
        {
            "module": one.name,
            "seed": one.seed,
            "block": number + 1,
            "share, trained [95 %]": interval_text(one.share[number], ".2f"),
            "share, untrained": number_text(one.untrained[number]),
            "share of the input (GAP)": number_text(one.pooled[number]),
            "of the variance over images, the classes'": number_text(one.classes[number]),
            "correlation of start and end": number_text(one.origin[number]),
            "hidden units alive": f"{one.alive[number]} of {one.hidden[number]}" if one.hidden[number] else "no head",
        }
        for one in shares
        for number in range(len(one.share))
    ]


def number_text(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "undefined"


def replaced_rows(replaced) -> list[dict]:
    """Live gates against their means, in the order of the loss."""
    return [
        {
            "module": one.name,
            "seed": one.seed,
            "accuracy (%)": f"{one.accuracy:.2f}",
            "mean share over blocks": f"{one.share:.2f}",
            "gates at their means, points [95 %]": interval_text(one.change, "+.2f"),
            "block after block, points [95 %]": interval_text(one.sequential, "+.2f"),
            "statistics anew, points [95 %]": interval_text(one.anew, "+.2f"),
        }
        for one in sorted(replaced, key=lambda one: (-one.change.value, one.name))
    ]


def bound_rows(bounds) -> list[dict]:
    """Theorem 6.1, network by network."""
    return [
        {
            "network": one["name"],
            "seed": one["seed"],
            "log10 of the bound": f"{one['bound'][-1]:.2f}",
            "growth measured": f"{one['growth'][-1]:.1f}",
            "alpha, from block to block": f"{one['alpha'].min():.2f} to {one['alpha'].max():.2f}",
            "norms of the branches": f"{one['norm'].min():.1f} to {one['norm'].max():.1f}",
        }
        for one in bounds
    ]


def map_rows(maps) -> list[dict]:
    """Where the class maps have their mass."""
    return [
        {
            "network": one["name"],
            "seed": one["seed"],
            "mass in the central quarter [95 %]": interval_text(one["mass"]),
            "uniform": "0.250",
            "cells rolled": f"{one['cells']:.2f}",
            "cells the centre of mass went": f"{one['shift']:.2f}",
            "the same, padded instead of rolled": f"{one['padded']:.2f}",
        }
        for one in maps
    ]


def style_rows(painted) -> list[dict]:
    """Every style and arm: losses and gradients, with running statistics and with those of the batch."""
    rows = []
    for picture, arm in dict.fromkeys((one.painting.style, one.painting.arm) for one in painted):
        found = [one for one in painted if (one.painting.style, one.painting.arm) == (picture, arm)]
        line = {"style": picture, "arm": arm, "n": len(found)}
        for place, score in enumerate(style.SCORES):
            modes = [np.mean([getattr(one, mode)[place] for one in found]) for mode in ("evaluation", "batch")]
            line[f"{score}: running, batch"] = f"{modes[0]:.3f}, {modes[1]:.3f}"
        rows.append(line)
    return rows


def spatial_rows(spatial, attention) -> list[dict]:
    """Block by block: CBAM's spatial gates, and transformers' attention."""
    return [
        {"of": name, "seed": one["seed"], "block": number, "share that is the position's": number_text(share)}
        for name, networks in (("CBAM's spatial gate", spatial), ("ViT's attention", attention))
        for one in networks
        for number, share in enumerate(one["share"], 1)
    ]


def speed_rows(speeds) -> list[dict]:
    """Table 1: a row per network, with the slowdown that the paper prints where it prints one."""
    rows = []
    for name in next(iter(speeds.values())):
        line = {"network": name}
        for size, found in speeds.items():
            ratio, quarters = found[name]
            line[f"{size}: speed over the plain network's"] = f"{ratio:.3f}"
            line[f"{size}: quartiles of the rounds"] = f"{quarters[0]:.3f} to {quarters[1]:.3f}" if quarters else ""
        line["paper, ResNet-164: CIFAR-100, STL-10"] = ", ".join(
            filter(None, (paper.slowdown(name, k) for k in (0, 1)))
        )
        rows.append(line)
    return rows


def noise_rows(e: Evidence) -> list[dict]:
    """Table 8: every noise and arm."""
    rows = []
    for column in design.NOISES:
        found = e.accuracies("noise", column)
        noisy = e.accuracies("noise", column, noisy=True)
        if not any(found.values()):
            continue
        line = {"noise": column}
        for arm in design.NOISY:
            values = found.get(arm, [])
            line[f"{arm} (%)"] = f"{np.mean(values):.2f} (n = {len(values)})" if values else "n = 0"
            if column.startswith("random") and values:
                line[f"{arm} (%)"] += f", noise on {np.mean(noisy[arm]):.2f}"
        beyond = over_seeds(FAITHFUL, found, (PLAIN, HALF))
        for name in (PLAIN, HALF):
            line[f"{name} above {FAITHFUL} [95 %]"] = interval_cell(beyond, name)
        said = paper.NOISE.get(column)
        line["paper, ResNet-164, CIFAR-100: plain, ASR(SE) (%)"] = f"{said[0]:.2f}, {said[1]:.2f}" if said else ""
        rows.append(line)
    return rows
