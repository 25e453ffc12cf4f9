"""The operations of a graph as lines of C."""

from odelab.graph.nodes import Graph, Node, used

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=="}
SIGNS |= {"ne": "!=", "and": "&&", "or": "||"}
TYPES = {"d": "double", "l": "long", "b": "int"}


def lines_of_c(graph: Graph, outputs: list[Node], inputs: dict[str, str]) -> tuple[list[str], list[str]]:
    """(declarations of all values that some nodes need, the expressions of these nodes).

    inputs    expressions in C for the inputs of the graph, by their names
    """
    lines, names = [], {}
    for i in used(graph, outputs):
        op, kind, *arguments = graph.ops[i]
        if op == "in":
            names[i] = inputs[arguments[0]]
        elif op == "const":
            names[i] = str(arguments[0]).lower()
        else:
            lines.append(f"const {TYPES[kind]} q{i} = {expression(op, [names[one] for one in arguments])};")
            names[i] = f"q{i}"
    return lines, [names[node.i] for node in outputs]


def expression(op: str, values: list[str]) -> str:
    if op in SIGNS:
        return f"{values[0]} {SIGNS[op]} {values[1]}"
    if op == "select":
        return f"{values[0]} ? {values[1]} : {values[2]}"
    if op in ("neg", "not"):
        return f"{'-' if op == 'neg' else '!'}{values[0]}"
    return f"{'fabs' if op == 'abs' else op}({', '.join(values)})"
