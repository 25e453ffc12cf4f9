"""Tables 1 to 4 and 7 and Figure 8 of the StepNet paper, from what the studies that repeat them know."""

from netbridge.detect.evaluation import NAMES
from netbridge.train.recipes import RECIPES
from studies import detect as detection
from studies import step_control, tricks
from studies.lab.jobs import PAPERS_ON_STL10
from studies.lab.networks import USUAL
from studies.plan.cells import STEP_NET, Cell
from studies.table import cells as table_cells
from studies.table.design import PARAMETERS, TABLES

STL10 = "STL-10's recipe is not printed: batch 16 as in ASR, Appendix C"
PAPERS_RECIPES = {1: "paper", 2: "imagenet-256", 7: None}
REMARKS = {  # what the paper leaves open, by table
    2: "precision, crops and test size are not said",
    7: "size, recipe and place of StepNet are not said",
}
SEED = 0


def wanted_on(dataset: str):
    """The paper's recipe for ResNet-164; on STL-10 that of the same group's next paper."""
    return RECIPES[PAPERS_ON_STL10 if dataset == "stl10" else "paper"]


def accuracies() -> list[Cell]:
    """Tables 1, 2 and 7: one network for each cell and seed; seed 0 stands for all of them."""
    found = []
    for number, table in TABLES.items():
        name = PAPERS_RECIPES[number]
        for cell in table_cells.cells(table, [], 1):
            column = table.columns.index((cell.dataset, cell.scale))
            mean, deviation = table.paper[cell.row][column]
            wanted = wanted_on(cell.dataset) if name == "paper" else RECIPES[name] if name else None
            remark = REMARKS.get(number, STL10 if cell.dataset == "stl10" else "")
            where = f"{USUAL[cell.dataset]}, {cell.scale.name}"
            printed = f"{mean:.2f} ± {deviation:.2f}"
            shown = "plain" if cell.row == "constant" else cell.row
            job = cell.job(SEED)
            how = {"remark": remark, "command": table_cells.command(cell, SEED)}
            found.append(Cell(STEP_NET, str(number), shown, where, printed, job, wanted, **how))
            if number == 1:
                millions = PARAMETERS[table.rows[cell.row]][cell.dataset == "cifar100"]
                counted = f"{where}, parameters (M)"
                found.append(Cell(STEP_NET, "1", shown, counted, f"{millions:.2f}", job, wanted, **how))
    return found


def detectors() -> list[Cell]:
    """Table 3: six precisions of each detector; one run fills a row."""
    recipe = detection.schedule("1x")
    remark = "schedule 1x, 800 pixels and weights of Table 2's recipe: the paper says no more than [71]"
    found = []
    for depth, rows in detection.PRINTED.items():
        train = f"python -m studies.detect --data-root DATA --depth {depth} --weights FOLDER --train"
        for row, values in rows.items():
            run = detection.Run(row, SEED, "coco", recipe, depth, size=detection.COCO_SIZE)
            cells = zip(NAMES, values, strict=True)
            found += [
                Cell(
                    STEP_NET,
                    "3",
                    f"ResNet-{depth}, {row}",
                    name,
                    f"{value:.1f}",
                    run,
                    recipe,
                    remark=remark,
                    command=train,
                )
                for name, value in cells
            ]
    return found


def ablation() -> list[Cell]:
    """Table 4; its plain and SE rows are Table 1's."""
    found = []
    for dataset in ("cifar10", "cifar100", "stl10"):
        train = f"python -m studies.step_control --full --train --dataset {dataset}"
        arguments = step_control.fill_in_options(step_control.Arguments(full=True, dataset=dataset, part="ablation"))
        plan, remark = step_control.Plan(arguments), STL10 if dataset == "stl10" else ""
        for row in step_control.CELLS:
            if row in (step_control.PLAIN, step_control.SE):
                continue
            printed = "{:.2f} ± {:.2f}".format(*step_control.PAPER[row][dataset])
            job = plan.cell(row, SEED).job
            wanted = wanted_on(dataset)
            found.append(Cell(STEP_NET, "4", row, USUAL[dataset], printed, job, wanted, remark=remark, command=train))
    return found


def recipes() -> list[Cell]:
    """Figure 8: bars whose heights no text prints, of tricks that it does not name."""
    remark = "the paper names no trick: this is one of the usual ones"
    return [
        Cell(STEP_NET, "Fig. 8", trick, USUAL[dataset], "a bar", tricks.job_of(trick, SEED, True, dataset),
             wanted_on(dataset), remark=remark,
             command=f"python -m studies.tricks --full --train --dataset {dataset}")
        for dataset in ("cifar100", "stl10") for trick in tricks.tricks(True, dataset)
    ]  # fmt: skip


def every_cell() -> list[Cell]:
    """All cells of the paper that the plan is about."""
    return [*accuracies(), *detectors(), *ablation(), *recipes()]
