"""What `step_control` leaves behind: tables, figures, conclusions, and report.md with all of it in order."""

import contextlib
import io
import shlex
import sys

from studies.lab.results import Record, plain
from studies.step_control import figures as figures
from studies.step_control import runs as runs
from studies.step_control import tables as tables
from studies.step_control.findings import findings

INDEX = (
    "NSI of a block is ||f(x)|| / ||x||, f its branch before the gate and x the state the step starts from, averaged "
    "over training images of the plain network of the same seed."
)
CHOICES = {runs.EVERY: "all blocks", runs.COUNTED: "the blocks the paper counts"}
WORDS = {
    runs.EVERY: f"{INDEX} A block that changes the shape starts from its shortcut's output, so this index exists there "
    "too and a controller can stand there; but that output is small (where it pads with zeros, half its channels are "
    "nothing), which alone makes the index large, and the paper neither counts the first block of a stage nor gives it "
    "a StepNet.",
    runs.COUNTED: f"{INDEX} The first block of every stage, which the paper does not count, keeps a step size of 1.",
}


def show(plan, notice: str = "") -> list[str]:
    """Report on the results that are there, and say which are not; returns the names of what diverged."""
    cells, stiffness = plan.cells(), plan.plain()
    tickets = {reading: plan.placements(reading) for reading in plan.readings}
    placed = {f"{reading} block, {name}": row for reading, rows in tickets.items() for name, row in rows.items()}
    everything = {**cells, **placed}
    planned = {run.stem: run for row in everything.values() for _, run in row.planned if run is not None}
    diverged = {stem: message for stem, run in planned.items() if (message := plan.divergence(run))}
    absent = tables.missing(everything, diverged)
    count = len({run.stem for row in everything.values() for run, _ in row.found})
    if not count:
        again = shlex.join(word for word in sys.argv[1:] if word != "--train")
        raise SystemExit(
            "\n".join(
                [
                    f"studies.step_control: no result is there for {described(plan)}. `--train` makes them, resumably: "
                    f"python -m studies.step_control --train {again}".rstrip(),
                    *(f"{stem}: {message}" for stem, message in diverged.items()),
                ]
            )
        )
    record = Record("step_control", plan.arguments, plan.arguments.out)
    page = Page(record)
    page.words("# Table 4 and lottery tickets: StepNet's inputs, adaptors and places", setting(plan, count), notice)
    if absent:
        said = f"Not there yet: {'; '.join(absent)}. The same command with `--train` makes them."
        page.words(f"**{said}**")
        print(f"{said}\n")
    for stem, message in diverged.items():
        said = f"{stem}: {message} It would again; `{plan.own / stem}.diverged.txt` gone, it is tried again."
        page.words(f"**{said}**")
        print(f"{said}\n")
    found = findings(cells, tickets)
    page.words("## What these data say", scope(plan))
    page.words(*[f"- *{one.claim}* ({one.where}): **{one.verdict}**. {one.words}" for one in found])
    dataset = plan.scale.dataset
    if any(row.found for row in cells.values()):
        tell_ablation(page, cells, dataset)
    for reading, rows in tickets.items():
        if any(row.found for row in rows.values()):
            tell_tickets(page, plan, reading, rows, stiffness)
    page.table("networks", tables.network_rows(everything), "Every network", printed=False)
    record.numbers["findings"] = plain(found)
    record.numbers["missing"] = absent
    record.numbers["diverged"] = diverged
    record.numbers["notice"] = notice
    record.numbers["specification"] = {"recipe": plan.scale.recipe.as_json(), "depth": plan.scale.depth}
    record.text("conclusions", [f"{one.claim} ({one.where}): {one.verdict}. {one.words}\n" for one in found])
    page.close()
    record.close()
    return list(diverged)


def tell_ablation(page, cells, dataset):
    page.words("## Inputs and adaptors (Table 4)")
    page.words(
        "StepNet stands where its parameter count in the paper has it: on every block but the first of each stage, "
        "which has no state of its own shape before it. SE stands on all blocks."
    )
    page.figure(
        figures.ablation_figure(cells, dataset),
        "table4",
        "Test accuracy of every network by what decides the step size; dashed: the plain network. Right: the paper, "
        "whose networks are deeper and trained in full, so that the order may be compared and the heights may not.",
    )
    page.table("table4", tables.ablation_rows(cells, dataset), "Table 4")


def tell_tickets(page, plan, reading, tickets, stiffness):
    among, few = CHOICES[reading], plan.few(reading)
    page.words(f"## Lottery tickets among {among} (Section 3.1)")
    count = len(runs.candidates(plan.scale, reading))
    page.words(
        f"Controller: `{plan.arguments.ticket_controller}`, on {few} of {count} blocks. {WORDS[reading]} The random "
        "blocks are drawn anew for every seed, whatever the others are: they may coincide."
    )
    if stiffness.found:
        rows = tables.stiffness_rows(stiffness, tickets, plan.scale.firsts)
        page.figure(
            figures.nsi_figure(stiffness, tickets, plan.scale.firsts),
            f"nsi_{reading}",
            "Mean NSI of the plain network by block; below the axis, the blocks that hold a controller in each ticket.",
        )
        page.table(f"nsi_{reading}", rows, f"Stiffness by block, and tickets among {among}", printed=False)
    page.figure(
        figures.placement_figure(tickets),
        f"tickets_{reading}",
        "Test accuracy by where the controllers are; dashed: no controller.",
    )
    page.table(f"tickets_{reading}", tables.ticket_rows(tickets), f"Lottery tickets among {among}")


def described(plan) -> str:
    recipe = plan.scale.recipe
    images = f", {plan.scale.images} training images" if plan.scale.images else ""
    return f"ResNet-{plan.scale.depth} on {plan.scale.dataset}, recipe {recipe.name}, {recipe.epochs} epochs{images}"


def setting(plan, count: int) -> str:
    seeds = ", ".join(map(str, plan.arguments.seeds))
    return (
        f"{described(plan)}; {count} networks, seeds {seeds}. After Huang, Liang et al., Understanding Self-attention "
        "Mechanism via Dynamical System Perspective (2023), Section 3.1. Networks of one seed begin with the same "
        "weights and see the same batches."
    )


def scope(plan) -> str:
    """What no number below can overcome."""
    epochs, seeds = plan.scale.recipe.epochs, len(plan.arguments.seeds)
    words = (
        "Intervals: 95 %, over seeds, for these test images, for all comparisons of a table together (Tukey and "
        "Kramer); seeds count as draws independent of each other in every row, although networks of one seed share "
        "weights and batches, which makes the intervals wider rather than narrower. A claim is called supported or "
        "contradicted only where every interval says so."
    )
    if (plan.scale.depth, epochs) != (164, 164):
        words += (
            f" {epochs} epoch{'s' if epochs > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''} and "
            f"{plan.scale.depth} layers are little beside the paper's 164 epochs, 5 seeds and 164 layers (`--full`): a "
            "difference seen here need not last, and one not seen here may exist."
        )
    return words


class Page:
    """report.md, grown together with the files it shows."""

    def __init__(self, record: Record):
        self.record, self.parts = record, []

    def words(self, *paragraphs: str):
        self.parts += [paragraph for paragraph in paragraphs if paragraph]

    def figure(self, drawing, name: str, caption: str):
        self.record.figure(drawing, name)
        self.parts += [f"![{caption}]({name}.png)", f"*{caption}*"]

    def table(self, name: str, rows: list[dict], title: str, printed: bool = True):
        with contextlib.nullcontext() if printed else contextlib.redirect_stdout(io.StringIO()):
            self.record.table(name, rows, title)
        self.parts.append((self.record.out / f"{name}.md").read_text().replace("# ", "### ", 1).rstrip())

    def close(self):
        self.parts.append("Again: `" + shlex.join(["python", "-m", "studies.step_control", *sys.argv[1:]]) + "`")
        path = self.record.out / "report.md"
        path.write_text("\n\n".join(self.parts) + "\n")
        self.record.files.append(path)
