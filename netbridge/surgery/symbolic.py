"""A copy of a network traced by torch.fx, which gives a program from which the branch can be cut out.

Tracing itself never does this (`netbridge.foreign` watches): fx runs a network's own code with placeholders in
place of tensors, which a network that caches something would keep.
"""

import inspect
from typing import Any

import torch
from torch import fx, nn

from netbridge.common.nested_tensors import first_tensor, tensors
from netbridge.common.preservation import independent_copy
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Operation
from netbridge.foreign.vocabulary import LIKE, describe, is_number
from netbridge.foreign.watching import is_whole

OPAQUE: tuple[type, ...] = (nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, nn.TransformerEncoderLayer)
OPAQUE += (nn.TransformerDecoderLayer,)


class NotTraceable(Exception):
    """torch.fx cannot read this network."""


def symbolic(net: nn.Module, sample: torch.Tensor) -> tuple[fx.GraphModule, Graph, list[fx.Node]]:
    """The network as an fx program, as a graph of operations, and the fx node of each operation."""
    try:
        traced = independent_copy(net)  # tracing may leave placeholders in the attributes of this copy
        program = fx.GraphModule(traced, fx.Tracer().trace(traced, concrete_args=defaults(traced)))
    except Exception as error:  # code that fx cannot follow may raise anything
        raise NotTraceable(str(error)) from error
    for module in program.modules():
        if isinstance(module, OPAQUE):
            raise NotTraceable(f"{type(module).__name__} keeps its additions to itself")
    shapes = Shapes(program)
    try:
        seen = shapes.run(sample.clone())  # which a block may overwrite
        expected = independent_copy(net)(sample.clone())
    except Exception as error:
        raise NotTraceable(str(error)) from error
    if shapes.overwritten:
        raise NotTraceable(f"{shapes.overwritten} is used again after it has been changed in place")
    if not same(seen, expected):
        raise NotTraceable("the program read from it gives other results")
    nodes = [node for node in program.graph.nodes if node.op not in ("placeholder", "output")]
    source = next(node for node in program.graph.nodes if node.op == "placeholder")
    nodes.insert(0, source)
    index = {node: i for i, node in enumerate(nodes)}
    operations = [read(node, index, shapes, program) for node in nodes]
    operations[0] = Operation("input", (), shape=tuple(sample.shape))
    end = next(node for node in program.graph.nodes if node.op == "output")
    return program, Graph(operations, [index[node] for node in end.all_input_nodes if node in index]), nodes


class Shapes(fx.Interpreter):
    """Runs a program and remembers the shapes of its tensors, and which of them hold whole numbers.

    `overwritten` names a result that another operation changes in place before it is used: what a program says of it
    (`y = conv(x); relu_(y); x + y` adds what the convolution returned) is then not what happens.
    """

    def __init__(self, program):
        super().__init__(program)
        self.found: dict[fx.Node, tuple[int, ...]] = {}
        self.whole: set[fx.Node] = set()
        self.versions: dict[fx.Node, list[int]] = {}  # of a node's tensors when it had run; views share theirs
        self.overwritten = ""

    def run_node(self, n):
        for source in n.all_input_nodes:
            if [tensor._version for tensor in tensors(self.env[source])] != self.versions[source]:
                self.overwritten = self.overwritten or source.name
        result = super().run_node(n)
        self.versions[n] = [tensor._version for tensor in tensors(result)]
        tensor = first_tensor(result)
        if tensor is not None:
            self.found[n] = tuple(tensor.shape)
            if is_whole(tensor):
                self.whole.add(n)
        return result


def read(node: fx.Node, index: dict, shapes: Shapes, program) -> Operation:
    if node.op == "call_module":
        name = type(program.get_submodule(node.target)).__name__
    else:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    canonical, arguments = describe(name, node.args, node.kwargs)

    def operand(value):
        if isinstance(value, fx.Node):
            return index.get(value)
        return tuple(map(operand, value)) if isinstance(value, tuple | list) else None

    given = node.all_input_nodes[: 1 if canonical in LIKE else None]
    return Operation(
        canonical,
        tuple(index[source] for source in given if source in index),
        tuple(map(operand, arguments)),
        shapes.found.get(node),
        module_of(node),
        name in ("iadd", "imul") or name.endswith("_"),
        tuple(float(value) if is_number(value) else None for value in arguments),
        node in shapes.whole,
    )


def module_of(node: fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    paths = [value[0] if isinstance(value, tuple) else key for key, value in stack.items()]
    if node.op == "call_module" and paths:
        paths = paths[:-1]
    return paths[-1] if paths else ""


def argument_of(node: fx.Node, path: tuple[int, ...]) -> Any:
    """What stands at an argument of a node, in the order of the operation's signature: a node or a plain value."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    value: Any = describe(name, node.args, node.kwargs)[1]
    for part in path:
        value = value[part]
    return value


def defaults(net: nn.Module) -> dict[str, Any] | None:
    """Arguments of `forward` beyond the images, as they are by default."""

    parameters = list(inspect.signature(net.forward).parameters.values())[1:]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default for p in parameters if p.kind in kinds and p.default is not p.empty} or None


def same(seen, expected) -> bool:
    ours, theirs = tensors(seen), tensors(expected)
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=1e-3, atol=1e-4, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
    )
