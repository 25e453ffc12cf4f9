"""A graph as arithmetic that a person reads: one line for each value that is used more than once."""

from collections import Counter
from collections.abc import Sequence

from odelab.graph.nodes import Graph, Node, arguments_of, used

SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}
WORDS = {"and": "and", "or": "or"}
STRENGTH = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), 4)}
STRENGTH |= {"add": 5, "sub": 5, "mul": 6, "div": 6, "neg": 7}
SAME = {"ladd": "add", "lsub": "sub", "lmul": "mul", "ldiv": "div", "llt": "lt", "lle": "le", "lgt": "gt", "lge": "ge"}
SAME |= {"leq": "eq", "lne": "ne"}
CALL, LONGEST = 9, 88  # how tightly a call binds; characters of a line


def lines_of(graph: Graph, outputs: dict[str, Node]) -> list[str]:
    """The values of some nodes, by their names, as lines of arithmetic in the order in which they are computed.

    graph      the graph
    outputs    names for the nodes
    """
    return Writer(graph, outputs).lines


class Writer:
    """Writes the lines; `texts` holds what is known of each node: how tightly it binds, and its text."""

    def __init__(self, graph: Graph, outputs: dict[str, Node]):
        self.graph, self.lines, self.texts = graph, [], {}
        wanted = used(graph, list(outputs.values()))
        uses = Counter(i for place in wanted for i in arguments_of(graph.ops[place]))
        ends = {node.i: name for name, node in outputs.items()}
        for i in wanted:
            strength, text = self.expression(graph.ops[i])
            is_name = graph.ops[i][0] in ("in", "const")
            if (uses[i] > 1 or len(text) > LONGEST) and not is_name and i not in ends:
                self.lines.append(f"x{i} = {text}")
                strength, text = CALL, f"x{i}"
            self.texts[i] = strength, text
        self.lines += [f"{name} = {self.texts[node.i][1]}" for name, node in outputs.items()]

    def expression(self, operation: Sequence) -> tuple[int, str]:
        """How tightly an operation binds, and its text."""
        op, _, *arguments = operation
        op = SAME.get(op, op)
        if op in ("in", "const"):
            return CALL, str(arguments[0])
        if op in ("gather", "search"):
            return CALL, f"{'entry' if op == 'gather' else 'count'}(table{arguments[0]}, {self.plain(arguments[1])})"
        if op in SIGNS or op in WORDS:
            own = STRENGTH[op]
            return own, f"{self.within(arguments[0], own)} {(SIGNS | WORDS)[op]} {self.within(arguments[1], own + 1)}"
        if op == "neg":
            return STRENGTH[op], f"-{self.within(arguments[0], STRENGTH[op])}"
        if op == "not":
            return STRENGTH[op], f"not {self.within(arguments[0], STRENGTH[op])}"
        if op == "select":
            condition, yes, no = map(self.plain, arguments)
            return 0, f"{yes} if {condition} else {no}" if "if" not in yes else f"({yes}) if {condition} else {no}"
        return CALL, f"{op}({', '.join(map(self.plain, arguments))})"

    def plain(self, i: int) -> str:
        return self.texts[i][1]

    def within(self, i: int, strength: int) -> str:
        own, text = self.texts[i]
        return text if own >= strength else f"({text})"
