"""The rows of every table of `step_control`, beside what the paper prints."""

from studies.lab.comparisons import deviation_cell, interval_cell, tukey
from studies.lab.statistics import LEVEL, Estimate
from studies.step_control import design
from studies.step_control.design import Row, Run

PAPER = {  # Table 4, SE from Table 1: accuracy and its standard deviation over 5 seeds, ResNet-164
    design.PLAIN: {"cifar10": (93.35, 0.18), "cifar100": (74.30, 0.30), "stl10": (82.66, 1.05)},
    design.SE: {"cifar10": (94.26, 0.14), "cifar100": (75.25, 0.31), "stl10": (83.96, 0.92)},
    "F(x_t)": {"cifar10": (94.59, 0.14), "cifar100": (76.34, 0.14), "stl10": (84.74, 0.64)},
    "F(x_{t+1})": {"cifar10": (94.32, 0.23), "cifar100": (76.53, 0.04), "stl10": (85.12, 0.54)},
    "F(x_{t+1} - x_t)": {"cifar10": (94.69, 0.33), "cifar100": (76.42, 0.10), "stl10": (85.26, 0.72)},
    design.OURS: {"cifar10": (95.14, 0.24), "cifar100": (77.04, 0.22), "stl10": (86.08, 0.11)},
    "Adaptor a": {"cifar10": (94.39, 0.12), "cifar100": (76.19, 0.14), "stl10": (84.21, 0.12)},
    "Adaptor b": {"cifar10": (94.05, 0.11), "cifar100": (75.45, 0.12), "stl10": (84.10, 0.24)},
    "Adaptor c": {"cifar10": (94.19, 0.24), "cifar100": (75.12, 0.08), "stl10": (84.12, 0.44)},
    "Adaptor d": {"cifar10": (94.92, 0.24), "cifar100": (76.83, 0.14), "stl10": (85.62, 0.44)},
}


def paper(row: str, dataset: str) -> tuple[float, float]:
    """The paper's number for this data set, or for its first data set where it has none for this one."""
    return PAPER[row].get(dataset, PAPER[row]["cifar10"])


def paper_dataset(dataset: str) -> str:
    return {"cifar100": "CIFAR-100", "stl10": "STL-10"}.get(dataset, "CIFAR-10")


def accuracies(rows: dict[str, Row]) -> dict[str, list[float]]:
    """By row, one number per seed."""
    return {name: row.accuracies for name, row in rows.items()}


def gains(groups: dict[str, list[float]], over: str, level: float = LEVEL) -> dict[str, Estimate]:
    """The gain of every row with results over the row `over`; the groups are those of `accuracies`."""
    return tukey(over, groups, level)


def ablation_rows(rows: dict[str, Row], dataset: str) -> list[dict]:
    """Table 4, with the gain over the plain network and over SE."""
    over_plain, over_se = (gains(accuracies(rows), name) for name in (design.PLAIN, design.SE))
    plain = paper(design.PLAIN, dataset)[0]
    table = []
    for name, row in rows.items():
        if not row.found:
            continue
        said = paper(name, dataset)
        table.append(
            {
                "step size": name,
                "on blocks": places(row),
                "parameters": row.found[0][1].parameters,
                "seeds": len(row.accuracies),
                "accuracy (%)": f"{row.mean:.2f}",
                "standard deviation": deviation_cell(row.accuracies, "one network"),
                "gain over plain [95 %]": interval_cell(over_plain, name),
                "gain over SE [95 %]": interval_cell(over_se, name),
                f"paper, {paper_dataset(dataset)} (%)": f"{said[0]:.2f} ± {said[1]:.2f}",
                "paper's gain": "" if name == design.PLAIN else f"{said[0] - plain:+.2f}",
            }
        )
    return table


def ticket_rows(rows: dict[str, Row]) -> list[dict]:
    """By placement, with the gain over no controller and the distance to the stiffest blocks."""
    over_none, over_stiffest = (gains(accuracies(rows), name) for name in (design.NONE, design.STIFFEST))
    return [
        {
            "controllers on": name,
            "blocks, by seed": places(row),
            "parameters": row.found[0][1].parameters,
            "seeds": len(row.accuracies),
            "networks": len(row.found),
            "accuracy (%)": f"{row.mean:.2f}",
            "standard deviation": deviation_cell(row.accuracies, "one network"),
            "gain over none [95 %]": interval_cell(over_none, name),
            "beyond the stiffest [95 %]": interval_cell(over_stiffest, name),
        }
        for name, row in rows.items()
        if row.found
    ]


def stiffness_rows(plain: Row, tickets: dict[str, Row], firsts: list[int]) -> list[dict]:
    """Per block the NSI of the plain network of every seed, and which placements hold it."""
    table = []
    for run, result in plain.found:
        held = {
            name: {number for one, _ in row.found if one.seed == run.seed for number in one.acting}
            for name, row in tickets.items()
            if name in (design.STIFFEST, design.RANDOM, design.LEAST)
        }
        for number, value in enumerate(result.nsi):
            opens = "yes" if number in firsts else ""
            held_by = ", ".join(name for name, numbers in held.items() if number in numbers)
            line = {"seed": run.seed, "block": number, "opens a stage": opens, "mean NSI": f"{value:.3f}"}
            table.append({**line, "in the tickets": held_by})
    return table


def network_rows(rows: dict[str, Row]) -> list[dict]:
    """Every network once, with all rows it serves."""
    found: dict[str, dict] = {}
    for name, row in rows.items():
        for run, result in row.found:
            if run.stem in found:
                found[run.stem]["rows"] += f"; {name}"
                continue
            found[run.stem] = {
                "rows": name,
                "seed": run.seed,
                "on blocks": list_numbers(run),
                "test errors": result.test_errors,
                "accuracy (%)": f"{result.accuracy:.2f}",
                "test loss": f"{result.test_loss:.4f}",
                "training (s)": result.made.get("seconds", ""),
                "file": run.stem,
            }
    return list(found.values())


def missing(rows, diverged) -> list[str]:
    """What is planned, not there and not `diverged`, in words."""
    lines = []
    for name, row in rows.items():
        known = {run.stem for run, _ in row.found} | set(diverged)
        seeds = sorted({seed for seed, run in row.planned if run is None or run.stem not in known})
        if seeds:
            lines.append(f"{name} (seed {', '.join(map(str, seeds))})")
    return list(dict.fromkeys(lines))


def places(row: Row) -> str:
    """Block numbers; of every network where they differ."""
    return "; ".join(dict.fromkeys(list_numbers(run) for run, _ in row.found))


def list_numbers(run: Run) -> str:
    count = len(run.acting)
    if count == run.scale.blocks:
        return "all"
    if count > 8:
        return f"{count} of {run.scale.blocks}"
    return " ".join(map(str, run.acting)) or "none"
