"""Tables 1 to 11 of the block-level paper: trained networks that are looked at, and counts that need none."""

from studies.block_stiffness import paper
from studies.plan.cells import BLOCK, Cell, Look

SOURCE = "which weights is not said: your own or published ones"
COUNTED = (
    "counted from the shapes of the blocks: every run of `studies.block_stiffness` prints it, no network is needed"
)
CORRELATED = ("accuracy, S", "accuracy, %", "loss, S", "loss, %")
FEWER = "40 images a label where the paper has 294 to 390 (ResNet-18) and 106 to 119 (ResNet-34)"
NUMBERS = {18: ("1", "2", "3", "10"), 34: ("4", "5", "6", "11"), 50: ("7", "8", "9", None)}  # of the paper's tables


def command_of(depth: int) -> str:
    """What looks at a network of the paper."""
    return f"python -m studies.block_stiffness --checkpoint resnet{depth}.pt --stem cifar-pooled --preset paper"


def every_cell() -> list[Cell]:
    """All cells of the paper's tables."""
    found = []
    for depth, (correlations, blocks, labels, counts) in NUMBERS.items():
        look, names = Look(depth), rows_of(depth)
        correlated = dict(zip(names, paper.CORRELATIONS[depth], strict=True))
        correlated |= {"all": paper.CORRELATIONS_OVERALL[depth]} if depth in paper.CORRELATIONS_OVERALL else {}
        for name, values in correlated.items():
            for column, pair in zip(CORRELATED, zip(values[::2], values[1::2], strict=True), strict=True):
                printed = f"{pair[0]:.2f} (p {pair[1]:.2f})"
                found.append(
                    Cell(
                        BLOCK,
                        correlations,
                        name,
                        column,
                        printed,
                        look,
                        remark=f"{SOURCE}; {FEWER}",
                        command=command_of(depth),
                    )
                )
        for number, name in enumerate(names, 1):
            cell = paper.printed_block(depth, number if depth in paper.INDEX else sum(paper.BOTTLENECKS[depth]))
            found += pair_of_cells(blocks, name, cell, look)
        if depth in paper.INDEX:
            found += pair_of_cells(blocks, "all", paper.OVERALL[depth], look)
        for label in range(10):
            cell = paper.INDEX_BY_LABEL[depth][label], paper.PERCENT_BY_LABEL[depth][label]
            found += pair_of_cells(labels, f"label {label}", cell, look)
        if counts is not None:
            shown = {"elements": paper.ELEMENTS[depth], '"eigenvalues"': paper.EIGENVALUES[depth]}
            for column, numbers in shown.items():
                counted = dict(zip([*names, "total"], [*numbers, sum(numbers)], strict=True))
                found += [
                    Cell(BLOCK, counts, name, column, f"{value:,}", reason=COUNTED) for name, value in counted.items()
                ]
    return found


def rows_of(depth: int) -> list[str]:
    """The blocks that the paper's tables of a network have."""
    if depth in paper.INDEX:
        return [f"block {number}" for number in range(1, len(paper.INDEX[depth]) + 1)]
    return [f"block {sum(paper.BOTTLENECKS[depth])}"]


def pair_of_cells(table: str, row: str, values: tuple[float, float] | None, look: Look) -> list[Cell]:
    """Index and percentage of a row."""
    assert values is not None
    columns = zip(("S", "% negative"), values, strict=True)
    return [
        Cell(BLOCK, table, row, column, f"{value:.2f}", look, remark=SOURCE, command=command_of(look.depth))
        for column, value in columns
    ]
