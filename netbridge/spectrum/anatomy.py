"""A residual block taken apart, ours or anybody's: branch, shortcut, step size, final ReLU."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from netbridge.common.batches import sample_of
from netbridge.common.nested_tensors import first_tensor, tensors
from netbridge.common.preservation import independent_copy, unwrap
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Step
from netbridge.layers.absorb import has_hooks, is_plain
from netbridge.model.block import Block
from netbridge.spectrum.chain import RELUS, NotAChain, chain_between, chain_of
from netbridge.spectrum.separation import NotSeparable, Separation, fresh_buffers, watch_block, watched_step
from netbridge.step_sizes.base import Shared
from netbridge.surgery.symbolic import NotTraceable, same, symbolic


@dataclasses.dataclass
class Anatomy:
    """The parts of one residual block, as functions of a state (1, ...).

    branch      the slope f, as `nb.trace` measures it; where a block makes several steps, the increment; None where f
                cannot be told from its step size
    whole       the whole block
    increment   what the block adds to its state, h f; None where it is `size_at` times `branch`
    layers      the branch as a chain of layers (`chain`), or None, with the `reason` why it is no such chain
    reason      see `layers`
    identity    whether the shortcut is the identity
    final_relu  whether a ReLU follows the addition
    live        whether the step size depends on the state
    size_at     the step size h as a function of the state; None where it is 1
    size_of     the step size as a function of state and slope, for a block of ours
    shortcut    the shortcut; None where it cannot be separated from the branch
    """

    branch: Any
    whole: Callable
    increment: Any = None
    layers: list | None = None
    reason: str = ""
    identity: bool = True
    final_relu: bool = False
    live: bool = False
    size_at: Any = None
    size_of: Any = None
    shortcut: Any = None

    def slope(self) -> Callable:
        """The branch; ValueError where there is none of its own."""
        if self.branch is None:
            raise ValueError(
                f'`block`: its branch cannot be told from its step size, as {self.reason}; part="increment" and '
                'part="block" can be asked for.'
            )
        return self.branch


def anatomy(block: nn.Module, x: torch.Tensor) -> Anatomy:
    """Takes apart a copy of `block`, in evaluation mode and in the precision and on the device of the state `x`."""
    block = independent_copy(unwrap(block))
    owned = [module.target for module in block.modules() if isinstance(module, Shared)]  # the stage's, so no submodules
    for module in (block, *owned):
        module.to(x.device, x.dtype).eval().requires_grad_(False)
    check_function(block, x)
    if isinstance(block, Block):
        return of_ours(block, x)
    return of_foreign(block, x)


def check_function(block: nn.Module, x: torch.Tensor) -> None:
    """Raises ValueError unless a block is a function of its state alone: it takes one, and returns the same twice."""
    kind = type(block).__name__
    with torch.no_grad():
        try:
            with fresh_buffers(block):
                results = [tensors(block(x.clone()))[:1] for _ in range(2)]
        except Exception as error:  # a block may raise anything
            raise ValueError(
                f"`block` ({kind}) could not be run on a state of shape {tuple(x.shape)} in {x.dtype} alone: {error}. "
                "One that takes more goes into a module whose forward takes the state and adds the rest."
            ) from error
    if not same(*results):
        raise ValueError(
            f"`block` ({kind}) returns something else every time for one state (random numbers, or a memory of "
            "earlier calls), and has no Jacobian; switch that off."
        )


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
        with fresh_buffers(block):
            return first_tensor(block(u.clone()))

    def increment(u):
        new = whole(u)
        if new.shape != u.shape:
            raise ValueError(
                f"`block` maps {tuple(u.shape[1:])} to {tuple(new.shape[1:])} and its branch could not be told apart "
                f'({parts.reason}); only part="block" can be asked for.'
            )
        return new - u

    parts = Anatomy(branch=increment, whole=whole, increment=increment)
    sample = sample_of(x)
    try:
        read_program(parts, *symbolic(block, sample), x.dtype)
    except (NotTraceable, NotSeparable) as error:
        parts.reason = str(error)
        watch_step(parts, block, sample)
    return parts


def read_program(parts: Anatomy, program: fx.GraphModule, graph: Graph, nodes: list[fx.Node], dtype) -> None:
    """Take apart a block that torch.fx has read."""
    end: Any = program.graph.output_node().args[0]
    parts.final_relu = isinstance(end, fx.Node) and is_relu(end)
    steps = graph.steps()
    parts.live = is_live(steps)
    if len(steps) != 1:
        raise NotSeparable(
            f"it makes {len(steps)} residual steps instead of one; the increment is taken for the branch"
        )
    (step,) = steps
    added = graph.operations[step.addition].name in ("add", "sub")
    if not (added and ends_at(end, nodes[step.addition])):
        raise NotSeparable("it adds no single branch, or something follows the addition")
    separation = Separation(program, graph, nodes, step)
    if step.factors:
        parts.size_at = separation.step_size()
    parts.branch, parts.shortcut, parts.increment = separation.branch(), separation.shortcut(), None
    parts.identity = step.identity and step.state == 0
    try:
        if separation.changes_layout:
            raise NotAChain("its branch is added in another layout")
        parts.layers = chain_between(program, nodes[0], nodes[separation.slope], dtype)
    except NotAChain as error:
        parts.reason = str(error)


def watch_step(parts: Anatomy, block: nn.Module, sample: torch.Tensor) -> None:
    """Branch and step size of a block that torch.fx cannot take apart, where a trace of it sees one step."""
    first = watch_block(block, sample)
    graph = first.graph
    steps = graph.steps()
    parts.live = is_live(steps)
    if graph.find_out_of_sight():
        parts.branch, parts.reason = None, "it adds or multiplies what comes from no function of torch's"
    elif len(steps) == 1:  # which may start behind the input, at a normalisation of it: f is a function of the input
        (step,) = steps
        parts.identity = step.identity and step.state == 0 and not step.scale
        parts.branch, size = watched_step(block, first, step, sample)
        parts.size_at = size if step.factors or step.tableau else None
        parts.increment = parts.increment if step.scale else None  # which is p (x + h f) - x there


def is_live(steps: list[Step]) -> bool:
    """Does a step size depend on the state?"""
    return any(factor.live for step in steps for factor in step.factors)


def ends_at(end, addition: fx.Node) -> bool:
    """Is the addition the last thing the block does, but for a ReLU?"""
    if isinstance(end, fx.Node) and is_relu(end):
        end = end.all_input_nodes[0]
    return end is addition


def is_relu(node: fx.Node) -> bool:
    if node.op == "call_module":
        owner: Any = node.graph.owning_module
        layer = owner.get_submodule(node.target)
        return type(layer) is nn.ReLU and is_plain(layer)  # a hook may change what it returns
    return node.target in RELUS
