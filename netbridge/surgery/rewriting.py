"""A module's own forward read by torch.fx, so that a step size can be put behind a single operation of it.

Only the module's own lines are read: the modules inside it stay what they are. What is read is run beside the original
and watched, operation by operation, so that a program that does anything else is refused.
"""

import copy
import inspect
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from netbridge.common.nested_tensors import map_tensors, tensors
from netbridge.common.preservation import independent_copy
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Place
from netbridge.foreign.tracers import is_within
from netbridge.foreign.watching import Watching
from netbridge.layers.absorb import has_hooks
from netbridge.surgery.symbolic import NotTraceable, argument_of


class Edge(NamedTuple):
    """Where one operation of a module's own forward takes what another has made, by torch.fx's names of both."""

    program: fx.GraphModule
    made: str
    taken: str


class OwnForward(fx.Tracer):
    """Reads the lines of one forward, and calls every module in it as a whole."""

    def is_leaf_module(self, m, module_qualified_name):
        return True


def read_edge(net: nn.Module, name: str, graph: Graph, place: Place, batch, call) -> Edge:
    """The argument at a place of the pass `graph`, which the module called `name` took, as an edge of its program.

    The network is run, in evaluation mode. Raises NotTraceable where the forward cannot be read, or does something else
    in training.
    """
    if has_hooks(net.get_submodule(name)):
        raise NotTraceable("it has hooks, which may change what it returns")
    arguments = arguments_of(net, net.get_submodule(name), batch, call)
    module = independent_copy(net.get_submodule(name))  # tracing may leave placeholders in its attributes
    programs = [read_program(module.train(mode), arguments) for mode in (True, False)]
    if str(programs[0].graph) != str(programs[1].graph):
        raise NotTraceable("its forward does something else in training than in evaluation")
    made_by = match(programs[1], arguments, graph, name)
    taker = made_by[place.operation]
    made = argument_of(taker, place.path)
    if not isinstance(made, fx.Node):  # 0.3 * f runs as f.__rmul__(0.3)
        (made,) = taker.all_input_nodes
    edge = Edge(programs[1], made.name, taker.name)
    results = [
        one(**map_tensors(arguments, torch.clone)) for one in (module, put_between(module, "", [(edge, Copy())]))
    ]
    if not all(torch.equal(*pair) for pair in zip(*map(tensors, results), strict=True)):
        raise NotTraceable("what it adds is changed in place and used again")
    return edge


class Copy(nn.Module):
    """Returns other memory with the same numbers, as a step size of 1 does."""

    def forward(self, x):
        return x.clone()


def arguments_of(net: nn.Module, module: nn.Module, batch, call) -> dict[str, Any]:
    """What a module is given in a pass, by the names of its forward's parameters."""
    seen: list[dict[str, Any]] = []

    def note(module, args, kwargs):
        seen.append(dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments))

    hook = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        call(net, map_tensors(batch, torch.clone))
    except TypeError as error:
        raise NotTraceable(str(error)) from error
    finally:
        hook.remove()
    if len(seen) != 1:
        raise NotTraceable(f"it acts {len(seen)} times in a pass")
    parameters = inspect.signature(module.forward).parameters.values()
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY) for one in parameters):
        raise NotTraceable("its forward names not all of its arguments")
    return seen[0]


def read_program(module: nn.Module, arguments: dict[str, Any]) -> fx.GraphModule:
    """The program of a module's own forward; arguments that are no tensors are taken for constants."""
    parameters = inspect.signature(module.forward).parameters
    known = {name: p.default for name, p in parameters.items() if p.default is not p.empty} | arguments
    constants = {name: value for name, value in known.items() if not tensors(value)}
    try:
        return fx.GraphModule(module, OwnForward().trace(module, constants or None))
    except Exception as error:  # code that fx cannot follow may raise anything
        raise NotTraceable(f"torch.fx cannot read its forward ({str(error).partition(chr(10))[0]})") from error


def match(program: fx.GraphModule, arguments, graph: Graph, name: str) -> dict[int, fx.Node]:
    """The node of each operation that the module did in the pass `graph`."""
    wanted = [i for i, one in enumerate(graph.operations) if i and is_within(one.module, name)]
    given = [value.clone() if isinstance(value, torch.Tensor) else value for value in arguments.values()]
    with Watching(program, tensors(given)) as watching:
        numbered = Numbered(program, watching)
        try:
            numbered.run(*given)
        except Exception as error:  # as above
            raise NotTraceable(f"what torch.fx read of its forward does not run ({error})") from error
    seen = [(one.name, one.module) for one in watching.operations[1:]]
    known = [(one.name, one.module.removeprefix(name).lstrip(".")) for one in map(graph.operations.__getitem__, wanted)]
    if seen != known:
        raise NotTraceable("what torch.fx read of its forward does something else")
    return {wanted[i - 1]: node for i, node in numbered.nodes.items()}


class Numbered(fx.Interpreter):
    """Runs a program under watch and notes the node of every operation."""

    def __init__(self, program: fx.GraphModule, watching: Watching):
        super().__init__(program)
        self.watching = watching
        self.nodes: dict[int, fx.Node] = {}

    def run_node(self, n):
        before = len(self.watching.operations)
        result = super().run_node(n)
        self.nodes |= dict.fromkeys(range(before, len(self.watching.operations)), n)
        return result


class Rewritten(fx.GraphModule):
    """A module whose forward is a program; everything else in it is what it was, in copies of it, too."""

    def __deepcopy__(self, memo):
        new = super().__deepcopy__(memo)
        keep_rest(new, copy.deepcopy(vars(self), memo))
        return new


def keep_rest(program: fx.GraphModule, attributes: dict[str, Any]) -> None:
    """Give a program the attributes that its lines do not use, which torch.fx leaves out."""
    own = vars(program)
    for key, value in attributes.items():
        if key not in own:
            own[key] = value
        elif key in ("_modules", "_parameters", "_buffers"):
            own[key].update((name, part) for name, part in value.items() if name not in own[key])
        elif key == "_non_persistent_buffers_set":
            own[key].update(value)


def put_between(net: nn.Module, name: str, edges: list[tuple[Edge, nn.Module]]) -> nn.Module:
    """The network with a module on each of these edges of the forward of the module called `name`."""
    module: Any = net.get_submodule(name)
    read, graph = edges[0][0].program, fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(read.graph, copies))
    for node in graph.nodes:
        if node.op == "get_attr" and not hasattr(module, node.target.partition(".")[0]):  # a constant of the lines
            setattr(module, node.target, getattr(read, node.target))
    nodes = {old.name: new for old, new in copies.items()}
    for number, (edge, layer) in enumerate(edges):
        target = f"step_size_{number + 1}" if len(edges) > 1 else "step_size"
        module.add_module(target, layer)
        made, taker = nodes[edge.made], nodes[edge.taken]
        with graph.inserting_before(taker):
            taker.replace_input_with(made, graph.call_module(target, (made,)))
    program = Rewritten(module, graph, type(module).__name__)
    keep_rest(program, vars(module))
    if not name:
        return program
    parent, _, leaf = name.rpartition(".")
    setattr(net.get_submodule(parent), leaf, program)
    return net
