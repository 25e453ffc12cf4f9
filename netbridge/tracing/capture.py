"""Two ways to see what a network does: torch.fx reads its code; a function mode watches one pass where that fails.

fx gives a program that can be changed and run again. Watching sees whatever really happened, branches of Python
included, as long as it happened through torch functions.
"""

import contextlib
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import TorchFunctionMode

from netbridge.tracing.graph import Graph, Operation, canonical

OPAQUE = (nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder, nn.TransformerEncoderLayer)
OPAQUE += (nn.TransformerDecoderLayer,)


class NotTraceable(Exception):
    """torch.fx cannot read this network."""


def symbolic(net: nn.Module, sample: torch.Tensor) -> tuple[fx.GraphModule, Graph, list[fx.Node]]:
    """The network as an fx program, as a graph of operations, and the fx node of each operation."""
    try:
        tracer = fx.Tracer()
        program = fx.GraphModule(net, tracer.trace(net, concrete_args=defaults(net)))
    except Exception as error:  # code that fx cannot follow may raise anything
        raise NotTraceable(str(error)) from error
    for module in program.modules():
        if isinstance(module, OPAQUE):
            raise NotTraceable(f"{type(module).__name__} keeps its additions to itself")
    shapes = Shapes(program)
    try:
        seen = shapes.run(sample)
        expected = net(sample)
    except Exception as error:
        raise NotTraceable(str(error)) from error
    if not same(seen, expected):
        raise NotTraceable("the program read from it gives other results")
    nodes = [node for node in program.graph.nodes if node.op not in ("placeholder", "output")]
    source = next(node for node in program.graph.nodes if node.op == "placeholder")
    nodes.insert(0, source)
    index = {node: i for i, node in enumerate(nodes)}
    operations = [read(node, index, shapes.found.get(node), program) for node in nodes]
    operations[0] = Operation("input", (), shape=tuple(sample.shape))
    end = next(node for node in program.graph.nodes if node.op == "output")
    return program, Graph(operations, [index[node] for node in end.all_input_nodes if node in index]), nodes


class Shapes(fx.Interpreter):
    """Runs a program and remembers the shapes of its tensors."""

    def __init__(self, program):
        super().__init__(program)
        self.found: dict[fx.Node, tuple[int, ...]] = {}

    def run_node(self, n):
        result = super().run_node(n)
        tensor = first_tensor(result)
        if tensor is not None:
            self.found[n] = tuple(tensor.shape)
        return result


def read(node: fx.Node, index: dict, shape, program) -> Operation:
    if node.op == "call_module":
        name = type(program.get_submodule(node.target)).__name__
    else:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    pair = [index.get(a) if isinstance(a, fx.Node) else None for a in node.args[:2]]
    pair += [None] * (2 - len(pair))
    return Operation(
        canonical(name),
        tuple(index[source] for source in node.all_input_nodes if source in index),
        (pair[0], pair[1]),
        shape,
        module_of(node),
        name in ("iadd", "imul") or name.endswith("_"),
    )


def module_of(node: fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    paths = [value[0] if isinstance(value, tuple) else key for key, value in stack.items()]
    if node.op == "call_module" and paths:
        paths = paths[:-1]
    return paths[-1] if paths else ""


def defaults(net: nn.Module) -> dict[str, Any] | None:
    """Arguments of `forward` beyond the images, as they are by default."""
    import inspect

    parameters = list(inspect.signature(net.forward).parameters.values())[1:]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default for p in parameters if p.kind in kinds and p.default is not p.empty} or None


class Watching(TorchFunctionMode):
    """Numbers the torch functions of a pass that return tensors; `visit(number, function, args)` runs before each.

    It may return a function to be called with the result.
    """

    def __init__(self, visit=None):
        super().__init__()
        self.visit = visit
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        follow = self.visit(self.count + 1, name, args, kwargs or {}) if self.visit is not None else None
        result = func(*args, **(kwargs or {}))
        if first_tensor(result) is not None:
            self.count += 1
            if follow is not None:
                follow(result)
        return result


def watched(net: nn.Module, sample: torch.Tensor) -> Graph:
    """The graph of one pass, every torch function an operation, number 0 the input."""
    operations = [Operation("input", (), shape=tuple(sample.shape))]
    numbers, alive = {id(sample): 0}, [sample]  # kept alive, so that no address is used twice
    path: list[str] = []

    def visit(number, name, args, kwargs):
        places = [numbers.get(id(a)) if isinstance(a, torch.Tensor) else None for a in args[:2]]
        places += [None] * (2 - len(places))
        inputs = tuple(numbers[id(t)] for t in tensors((args, kwargs)) if id(t) in numbers)
        in_place = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))

        def follow(result):
            shape = tuple(first_tensor(result).shape)
            module = path[-1] if path else ""
            operations.append(Operation(canonical(name), inputs, (places[0], places[1]), shape, module, in_place))
            for tensor in tensors(result):
                numbers[id(tensor)] = number
                alive.append(tensor)

        return follow

    with inside(net, path), Watching(visit):
        result = net(sample)
    return Graph(operations, [numbers[id(t)] for t in tensors(result) if id(t) in numbers])


@contextlib.contextmanager
def inside(net: nn.Module, path: list[str]):
    """Keeps in `path` the names of the modules whose forward is running."""
    handles = []

    def leave(*_):
        path.pop()

    for name, module in net.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: path.append(name)))
        handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield path
    finally:
        for handle in handles:
            handle.remove()


def tensors(value) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in tensors(part)]
    return []


def first_tensor(value) -> torch.Tensor | None:
    return next(iter(tensors(value)), None)


def same(seen, expected) -> bool:
    ours, theirs = tensors(seen), tensors(expected)
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=1e-3, atol=1e-4, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
    )
