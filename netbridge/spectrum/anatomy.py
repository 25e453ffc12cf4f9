"""A residual block taken apart, ours or anybody's: branch, shortcut, step size, final ReLU."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from netbridge.model.block import Block
from netbridge.spectrum.chain import RELUS, NotAChain, chain_between, chain_of
from netbridge.spectrum.symbolic import NotTraceable, symbolic
from netbridge.step_sizes.base import Shared
from netbridge.surgery.absorb import has_hooks
from netbridge.tracing.foreign import first_tensor
from netbridge.tracing.graph import Place, describe
from netbridge.tracing.untouched import independent_copy


@dataclasses.dataclass
class Anatomy:
    """The parts of one residual block, as functions of a state (1, ...).

    branch      the slope f
    whole       the whole block
    layers      the branch as a chain of layers (`chain`), or None, with the `reason` why it is no such chain
    reason      see `layers`
    identity    whether the shortcut is the identity
    final_relu  whether a ReLU follows the addition
    live        whether the step size depends on the state
    size_at     the step size h as a function of the state; None where it is 1
    size_of     the step size as a function of state and slope, for a block of ours
    shortcut    the shortcut; None where it cannot be separated from the branch
    """

    branch: Callable
    whole: Callable
    layers: list | None = None
    reason: str = ""
    identity: bool = True
    final_relu: bool = False
    live: bool = False
    size_at: Any = None
    size_of: Any = None
    shortcut: Any = None


def anatomy(block: nn.Module, x: torch.Tensor) -> Anatomy:
    """Takes apart a copy of `block`, in evaluation mode and in the precision and on the device of the state `x`."""
    block = independent_copy(block)
    owned = [module.target for module in block.modules() if isinstance(module, Shared)]  # the stage's, so no submodules
    for module in (block, *owned):
        module.to(x.device, x.dtype).eval().requires_grad_(False)
    if isinstance(block, Block):
        return of_ours(block, x)
    return of_foreign(block, x)


def of_ours(block: Block, x: torch.Tensor) -> Anatomy:
    parts = Anatomy(
        branch=block.branch,
        whole=lambda u: block(u.clone()),
        identity=not block.opens,
        final_relu=block.project is torch.relu_,
        live=block.controller.settle(None)[1] is not None,
        size_of=lambda u, slope: torch.as_tensor(block.controller.propose(None, u, slope)[0], dtype=u.dtype),
        shortcut=block.shortcut,
    )
    parts.size_at = lambda u: parts.size_of(block.shortcut(u), block.branch(u))
    if has_hooks(block):  # a hook may change the output, which is then not that of the step
        parts.reason, parts.shortcut = "it has hooks", None
        return parts
    try:
        parts.layers = chain_of(block.branch, x.dtype)
    except NotAChain as error:
        parts.reason = str(error)
    return parts


def of_foreign(block: nn.Module, x: torch.Tensor) -> Anatomy:
    def whole(u):
        return first_tensor(block(u.clone()))

    def increment(u):
        return whole(u) - u

    parts = Anatomy(branch=increment, whole=whole)
    sample = torch.cat([x] * 5)  # five samples: hardly any other axis has this length
    try:
        program, operations, nodes = symbolic(block, sample)
    except NotTraceable as error:
        parts.reason = f"torch.fx cannot read it ({error})"
        return parts
    end = program.graph.output_node().args[0]
    parts.final_relu = isinstance(end, fx.Node) and is_relu(end)
    steps = operations.steps()
    parts.live = any(factor.live for step in steps for branch in step.branches for factor in branch.factors)
    if len(steps) != 1:
        parts.reason = f"it makes {len(steps)} residual steps instead of one; the increment is taken for the branch"
        return parts
    step: Any = steps[0]
    parts.identity = step.identity
    plain = operations.operations[step.addition].name == "add" and len(step.branches) == 1
    if not plain or step.state != 0 or not ends_at(end, nodes[step.addition]):
        parts.reason = "its branch does not start at its input, or something follows the addition"
        return parts
    gates = list(itertools.takewhile(lambda factor: factor.live and factor.layout == 0, step.factors))
    if any(factor.place is not None and factor.place.operation == step.addition for factor in step.factors):
        parts.reason = "its branch is added with a factor of its own (alpha)"
        return parts
    if any(factor.live for factor in step.factors[len(gates) :]):
        parts.reason = "a factor that is no gate multiplies what is gated already"
        return parts
    if len(gates) == len(step.factors):
        slope = argument(nodes, step.branches[0].place)
    else:  # what is not computed from the state belongs to the branch here
        side = 1 - step.shortcut.path[0]
        slope = argument(nodes, Place(step.addition, (side,)))
        for gate in gates:
            slope = argument(nodes, Place(gate.place.operation, (1 - gate.place.path[0],)))
    parts.branch = branch_of(program, slope)
    parts.shortcut = branch_of(program, argument(nodes, step.shortcut))
    if gates:
        factors = [(branch_of(program, argument(nodes, gate.place)), gate.how == "over") for gate in gates]
        parts.size_at = lambda u: math.prod(1.0 / factor(u) if over else factor(u) for factor, over in factors)
    try:
        parts.layers = chain_between(program, nodes[0], slope, x.dtype)
    except NotAChain as error:
        parts.reason = str(error)
    return parts


def argument(nodes: list[fx.Node], place: Place) -> fx.Node:
    """The node that stands at an argument of an operation."""
    node = nodes[place.operation]
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    value: Any = describe(name, node.args, node.kwargs)[1]
    for part in place.path:
        value = value[part]
    return value


def ends_at(end, addition: fx.Node) -> bool:
    """Is the addition the last thing the block does, but for a ReLU?"""
    if isinstance(end, fx.Node) and is_relu(end):
        end = end.all_input_nodes[0]
    return end is addition


def is_relu(node: fx.Node) -> bool:
    if node.op == "call_module":
        owner: Any = node.graph.owning_module
        return type(owner.get_submodule(node.target)) is nn.ReLU
    return node.target in RELUS


def branch_of(program: fx.GraphModule, slope: Any) -> fx.GraphModule:
    """The program that ends at the slope."""
    graph = fx.Graph()
    copies: dict = {}
    for node in program.graph.nodes:
        if node.op == "output":
            break
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node is slope:
            break
    graph.output(copies[slope])
    return fx.GraphModule(program, graph)
