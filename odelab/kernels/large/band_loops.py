"""Gaussian elimination of narrow band matrices in loops, without pivoting, for I - hg J where J is a band.

Row i of J holds its entries from `below` columns before the diagonal to `above` columns behind it, in the order of the
unknowns that makes the band narrow; behind the last row there are `below` rows of zeros, so that no loop has to ask
where the matrix ends. Without pivoting a solution may be wrong: the first one with each matrix is checked.
"""

from typing import NamedTuple

from odelab.graph.graphs import Graph
from odelab.graph.llvm import Function, Module
from odelab.kernels.elimination import LARGEST_RESIDUAL, UNDERFLOW


class Band(NamedTuple):
    """The functions of a band of `below` + 1 + `above` diagonals.

    eliminate     (J, hg, factors, n): multipliers, reciprocal pivots, and rows divided by their pivots
    substitute    (factors, order, right, ordered, x, n): the solution x, and the same in the order of the band in
                  `ordered`, between `below` and `above` zeros
    check         (J, hg, order, right, ordered, sound, n): whether that solution satisfies every row as nearly as
                  rounding allows
    """

    eliminate: Function
    substitute: Function
    check: Function


def add_band(module: Module, below: int, above: int) -> Band:
    return Band(
        add_eliminate(module, below, above), add_substitute(module, below, above), add_check(module, below, above)
    )


def add_eliminate(module: Module, below: int, above: int) -> Function:
    """Rows that a pivot changes are held in variables: `rows[r][c]` is column k + c of row k + r."""
    function = module.function("eliminate", {"J": "p", "hg": "d", "factors": "p", "n": "l"}, internal=True)
    width = below + 1 + above
    graph = Graph(trusted=True)
    hg = graph.input("hg")

    def of_matrix(r: int, c: int):
        """An entry of I - hg J, c columns behind the first one of row r."""
        entry = hg * graph.input(f"j{c}")
        return 1.0 - entry if c == r else -entry

    def load(row: str, r: int) -> list[str]:
        """The entries of a row of which the first `below - r` are left out, as they lie before the matrix."""
        at = function.whole("mul", row, width)
        inputs = {
            f"j{c}": function.load("d", "%J", function.whole("add", at, below - r + c)) for c in range(r + above + 1)
        }
        return function.graph(graph, [of_matrix(r, c) for c in range(r + above + 1)], inputs | {"hg": "%hg"})

    held = [[function.variable("d", value) for value in load(str(r), r)] for r in range(below)]
    rows = [[graph.input(f"r{r}_{c}") for c in range(r + above + 1)] for r in range(below + 1)]
    inverse = 1.0 / rows[0][0]
    divided = [entry * inverse for entry in rows[0][1:]]
    weights = [row[0] * inverse for row in rows[1:]]
    below_it = [
        [row[c] - weight * rows[0][c] if c <= above else row[c] for c in range(1, len(row))]
        for weight, row in zip(weights, rows[1:], strict=True)
    ]
    with function.over("%n") as k:
        values = [[variable.get() for variable in row] for row in held]
        values.append(load(function.whole("add", k, below), below))
        inputs = {f"r{r}_{c}": value for r, row in enumerate(values) for c, value in enumerate(row)}
        flat = [entry for row in below_it for entry in row]
        found = function.graph(graph, [inverse, *divided, *weights, *flat], inputs)
        at = function.whole("add", function.whole("mul", k, width), below)
        for c, value in enumerate(found[: 1 + above]):
            function.store("d", value, "%factors", function.whole("add", at, c))
        for r, value in enumerate(found[1 + above : 1 + above + below], 1):
            function.store("d", value, "%factors", function.whole("add", at, r * width - r))
        for variable, value in zip((one for row in held for one in row), found[width:], strict=True):
            variable.set(value)
    return function


def add_substitute(module: Module, below: int, above: int) -> Function:
    """The unknowns found last are held in variables, and subtracted last, as they are waited for."""
    parameters = {**dict.fromkeys(("factors", "order", "right", "ordered", "x"), "p"), "n": "l"}
    function = module.function("substitute", parameters, internal=True)
    width = below + 1 + above

    def subtracted(found, sign: int, count: int, at: str, latest) -> str:
        """`found` without what the unknowns found last contribute to its row."""
        graph = Graph(trusted=True)
        left = graph.input("found")
        for r in range(count, 0, -1):
            left = left - graph.input(f"m{r}") * graph.input(f"x{r}")
        inputs = {"found": found} | {f"x{r}": variable.get() for r, variable in enumerate(latest, 1)}
        for r in range(1, count + 1):
            inputs[f"m{r}"] = function.load("d", "%factors", function.whole("add", at, below + sign * r))
        return function.graph(graph, [left], inputs)[0]

    def remember(latest, value: str):
        for older, newer in zip(latest[:0:-1], latest[-2::-1], strict=True):
            older.set(newer.get())
        if latest:
            latest[0].set(value)

    zero = function.constant("d", 0.0)
    latest = [function.variable("d", zero) for _ in range(below)]
    with function.over("%n") as i:
        at = function.whole("mul", i, width)
        found = subtracted(function.load("d", "%right", function.load("l", "%order", i)), -1, below, at, latest)
        scaled = Graph(trusted=True)
        inverse = function.load("d", "%factors", function.whole("add", at, below))
        (value,) = function.graph(scaled, [scaled.input("y") * scaled.input("p")], {"y": found, "p": inverse})
        function.store("d", value, "%ordered", function.whole("add", i, below))
        remember(latest, found)
    latest = [function.variable("d", zero) for _ in range(above)]
    with function.over("%n") as k:
        i = function.whole("sub", function.whole("sub", "%n", 1), k)
        place = function.whole("add", i, below)
        at = function.whole("mul", i, width)
        found = subtracted(function.load("d", "%ordered", place), 1, above, at, latest)
        function.store("d", found, "%ordered", place)
        function.store("d", found, "%x", function.load("l", "%order", i))
        remember(latest, found)
    return function


def add_check(module: Module, below: int, above: int) -> Function:
    """|M x - b| against the sum of the terms that cancel in it, row by row (Oettli and Prager's backward error).

    A residual that is NaN makes it false.
    """
    parameters = {"J": "p", "hg": "d", **dict.fromkeys(("order", "right", "ordered", "sound"), "p"), "n": "l"}
    function = module.function("check", parameters, internal=True)
    width = below + 1 + above
    graph = Graph(trusted=True)
    hg, b = graph.input("hg"), graph.input("b")
    terms = [hg * graph.input(f"j{c}") * graph.input(f"x{c}") for c in range(width)]
    left, size = graph.input(f"x{below}") - b, abs(graph.input(f"x{below}")) + abs(b)
    for term in terms:
        left, size = left - term, size + abs(term)
    good = abs(left) <= LARGEST_RESIDUAL * size + UNDERFLOW
    wrong = function.variable("b", function.constant("b", False))
    with function.over("%n") as i:
        at = function.whole("mul", i, width)
        inputs = {f"j{c}": function.load("d", "%J", function.whole("add", at, c)) for c in range(width)}
        inputs |= {f"x{c}": function.load("d", "%ordered", function.whole("add", i, c)) for c in range(width)}
        inputs |= {"hg": "%hg", "b": function.load("d", "%right", function.load("l", "%order", i))}
        (fails,) = function.graph(graph, [~good], inputs)
        wrong.set(function.logical("or", wrong.get(), fails))
    function.store("l", function.choose(wrong.get(), "l", 0, 1), "%sound", 0)
    return function
