"""How a pass of somebody else's network is observed: by watching what it does, never by changing it.

A function mode of torch sees every torch function of a pass, branches of Python included. A first pass with a few
images is written down as a list of operations (`graph`), in which the residual steps are found; in the passes that
measure, probes look at the arguments of these operations. Every pass is compared with the list, operation by operation:
a pass that goes another way, because something was cached or the batch has another size, is read anew and taken again.
"""

import contextlib
import math
import warnings
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from netbridge.tracing.graph import LIKE, UNSEEN, Factor, Graph, Operation, Place, Step, describe, is_number, stages
from netbridge.tracing.norms import Recorder
from netbridge.tracing.record import INCREMENT, SLOPE, Places

ATTEMPTS = 4  # passes of one batch; if no two in a row run the same operations, the network is refused
OTHER_WAY = (
    "`net` did something else with these images than with the first ones: {}. Name its blocks in `blocks`, and use "
    "of='increment', so that only their ends are watched."
)


# what a network does with one batch


class Pass(NamedTuple):
    """One pass written down."""

    operations: list[Operation]
    outputs: list[int]
    ends: dict[str, tuple]  # the shapes of a sample before and after each module that ran

    def graph(self) -> Graph:
        return Graph(self.operations, self.outputs)


def way(operation: Operation) -> tuple:
    """What must be the same for two operations to be the same one: name, module, and where its tensors come from."""
    return operation.name, operation.inputs, operation.module


class Watching(TorchFunctionMode):
    """Writes down the torch functions of a pass that return tensors, and lets probes look at them.

    inputs      the tensors that go into the network, operation 0
    modules     the names of the modules whose forward is running, kept by `inside`
    expected    the operations of an earlier pass; where this one leaves their way, `same_way` becomes False
    before      probes by the number of the operation whose arguments they look at: probe(arguments)
    behind      probes by the number of the operation whose result they look at: probe(result)
    """

    def __init__(self, inputs: list[torch.Tensor], modules: list[str], expected=None, before=None, behind=None):
        super().__init__()
        self.modules, self.expected, self.before, self.behind = modules, expected, before or {}, behind or {}
        self.same_way = expected is not None
        self.operations = [Operation("input", (), shape=tuple(inputs[0].shape), whole=is_whole(inputs[0]))]
        self.numbers: dict[int, tuple[weakref.ref, int]] = {}
        self.sharing: dict[int, list[weakref.ref]] = {}  # the numbered tensors by the memory they lie in
        for tensor in inputs:
            self.give_number(tensor, 0)

    def give_number(self, tensor: torch.Tensor, number: int):
        if self.number(tensor) is None and (memory := memory_of(tensor)) is not None:
            self.sharing.setdefault(memory, []).append(weakref.ref(tensor))
        self.numbers[id(tensor)] = weakref.ref(tensor), number

    def pass_on_change(self, changed: torch.Tensor, number: int):
        """Number anew every tensor that shows the memory of one that was changed in place."""
        memory = memory_of(changed)
        sharing = (
            [] if memory is None else [tensor for one in self.sharing.get(memory, ()) if (tensor := one()) is not None]
        )
        for tensor in sharing:
            before = self.number(tensor)
            if tensor is changed or not isinstance(before, int) or not overlap(changed, tensor):
                continue
            if changed.numel() == tensor.numel():  # all of it, perhaps in another layout
                operation = Operation("view", (number,), (number,), tuple(tensor.shape), self.module())
            else:
                shape = tuple(tensor.shape)
                operation = Operation("setitem", (before, number), (before, None, number), shape, self.module())
            self.give_number(tensor, len(self.operations))
            self.operations.append(operation)

    def number_unseen(self, tensor: torch.Tensor):
        """Give a tensor with the first axis of the images that no torch function returned an operation of its own."""
        batch = self.operations[0].shape[:1]
        if (
            self.number(tensor) is None
            and tensor.ndim > 1
            and tensor.shape[:1] == batch
            and type(tensor) is torch.Tensor
        ):
            self.give_number(tensor, len(self.operations))
            self.operations.append(Operation(UNSEEN, (), shape=tuple(tensor.shape), module=self.module()))

    def module(self) -> str:
        return self.modules[-1] if self.modules else ""

    def number(self, value) -> int | tuple | None:
        """The operation that a tensor comes from; of a list, a tuple of them."""
        if isinstance(value, torch.Tensor):
            reference, number = self.numbers.get(id(value), (None, None))
            return number if reference is not None and reference() is value else None  # an id may be used again
        return tuple(self.number(part) for part in value) if isinstance(value, tuple | list) else None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        raw = getattr(func, "__name__", "")
        if raw == "__get__":  # a property, such as x.mT
            raw = getattr(getattr(func, "__self__", None), "__name__", raw)
        name, arguments = describe(raw, args, kwargs)
        given = tensors(args[:1] if name in LIKE else (args, kwargs))
        for tensor in given:
            self.number_unseen(tensor)
        inputs: Any = tuple(n for t in given if (n := self.number(t)) is not None)
        count, module = len(self.operations), self.module()
        ahead = self.expected[count] if self.same_way and count < len(self.expected) else None
        if ahead is not None and way(ahead) == (name, inputs, module):
            for probe in self.before.get(count, ()):
                probe(arguments)
        operands = tuple(map(self.number, arguments))
        result = func(*args, **kwargs)
        made = first_tensor(result)
        if made is None and name == "setitem" and isinstance(args[0], torch.Tensor):
            made = result_of = args[0]
        else:
            result_of = result
        if made is None:
            return result
        in_place = raw.startswith("__i") or (raw.endswith("_") and not raw.endswith("__"))
        numbers = tuple(float(a) if is_number(a) else None for a in arguments)
        operation = Operation(name, inputs, operands, tuple(made.shape), module, in_place, numbers, is_whole(made))
        self.operations.append(operation)
        if ahead is None or way(ahead) != way(operation):
            self.same_way = False
        for tensor in tensors(result_of):
            self.give_number(tensor, count)
        if args and made is args[0]:
            self.pass_on_change(made, count)
        if self.same_way:
            for probe in self.behind.get(count, ()):
                probe(result)
        return result

    def finished(self) -> bool:
        """Did the whole pass go the expected way?"""
        return self.same_way and len(self.operations) == len(self.expected)


@contextlib.contextmanager
def inside(net: nn.Module, path: list[str], ends: dict[str, tuple] | None = None):
    """Keeps in `path` the names of the modules whose forward is running, and in `ends` the shapes at their ends."""

    def enter(name, args):
        path.append(name)
        if ends is not None:
            ends[name] = (sample_shape(args), None)

    def leave(name, output):
        if path:
            path.pop()
        if ends is not None and name in ends:
            ends[name] = (ends[name][0], sample_shape(output))

    with contextlib.ExitStack() as stack:
        stack.callback(path.clear)
        for name, module in net.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):  # takes no hooks, and hides its operations anyway
                before = module.register_forward_pre_hook(lambda _, args, name=name: enter(name, args))
                after = module.register_forward_hook(lambda _, a, out, name=name: leave(name, out), always_call=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
        yield path


def sample_shape(value) -> tuple[int, ...] | None:
    tensor = first_tensor(value)
    return None if tensor is None else tuple(tensor.shape[1:])


def watch_pass(net: nn.Module, call, batch) -> Pass:
    """One pass of `batch`, written down."""
    path: list[str] = []
    ends: dict[str, tuple] = {}
    with inside(net, path, ends), Watching(tensors(batch), path) as watching:
        result = call(net, batch)
        outputs = [n for t in tensors(result) if isinstance(n := watching.number(t), int)]
    return Pass(watching.operations, outputs, ends)


def memory_of(tensor: torch.Tensor) -> int | None:
    """Where a tensor's numbers lie; None where it has none of its own, as within torch.func."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return None


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Do two tensors in one memory show the same numbers? Slices beside each other do not."""
    size = one.untyped_storage().nbytes()
    if size in (one.nbytes, other.nbytes) or one._base is other or other._base is one:
        return True
    return (one.data_ptr(), one.shape, one.stride()) == (other.data_ptr(), other.shape, other.stride())


def is_whole(tensor: torch.Tensor) -> bool:
    """Does it hold whole numbers or truth values?"""
    return not (tensor.is_floating_point() or tensor.is_complex())


def tensors(value) -> list[torch.Tensor]:
    """The tensors in nested tuples, lists and mappings."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in tensors(part)]
    return []


def first_tensor(value) -> Any:
    """The first tensor in a nested structure, or None."""
    return next(iter(tensors(value)), None)


# what looks at a step


class Probe:
    """Reports one step to a recorder, at the moments that `looks` names."""

    def __init__(self, k: int, step: Step, recorder: Recorder, operations: list[Operation]):
        self.k, self.step, self.recorder = k, step, recorder
        self.fragile = {n for place, *_ in step.branches if operations[n := place.operation].in_place}
        self.parts: dict[int, torch.Tensor] = {}
        self.values: dict[Factor, Any] = {}
        self.state: torch.Tensor | None = None
        self.slope_shape: tuple[int, ...] = ()

    def looks(self):
        """(operation, is it before it, what to call) in the order in which they happen within one operation."""
        step = self.step
        several = len(step.branches) > 1
        for number, branch in enumerate(step.branches):
            if branch.how == "plain":
                yield branch.place.operation, True, self.look(self.see_part if several else self.see_slope, number)
            for factor in branch.factors:
                if factor.place is not None:
                    yield factor.place.operation, True, self.see_factor(factor)
        yield step.shortcut.operation, True, self.see_state
        yield step.addition, True, self.see_sum
        yield step.after, False, self.see_next

    def look(self, see, number):
        return lambda arguments: see(number, at(arguments, self.step.branches[number].place))

    def see_slope(self, number, slope):
        self.slope_shape = tuple(slope.shape)
        self.recorder.slope(self.k, slope)

    def see_part(self, number, slope):
        self.parts[number] = slope.clone() if self.step.branches[number].place.operation in self.fragile else slope

    def see_factor(self, factor):
        def see(arguments):
            self.values[factor] = at(arguments, factor.place)

        return see

    def see_state(self, arguments):
        state = at(arguments, self.step.shortcut)
        self.recorder.state(self.k, state)
        formed = self.step.branches[0].how == "towards"
        if formed or (self.recorder.needs_states and self.step.identity):
            self.state = state.clone() if self.step.overwrites else state

    def see_sum(self, arguments):
        branches = self.step.branches
        first = branches[0]
        if len(branches) > 1:
            parts = [self.size(branch.factors) * self.parts[number] for number, branch in enumerate(branches)]
            self.recorder.slope(self.k, sum(parts[1:], start=parts[0]))
        elif first.how != "plain":
            given = at(arguments, first.place)
            if first.how == "towards":
                slope = given - self.state
            else:
                other = arguments[first.place.path[0] + 1]
                slope = given / other if first.how == "quotient" else given * other
            self.see_slope(0, slope)
        if len(branches) == 1 and first.factors:
            crossed = first.factors[-1].layout
            shape = self.slope_shape if crossed else self.step.shape
            self.recorder.size(self.k, self.size(first.factors), self.recorder.images(self.k), len(shape))
        self.parts.clear()
        self.values.clear()
        if not (self.recorder.needs_states and self.step.identity):
            self.state = None

    def size(self, factors: tuple[Factor, ...]):
        """The product of the factors; NaN where two of them belong to different layouts of the same features."""
        scalar: Any = 1.0
        by_layout: dict[int, Any] = {}
        for factor in reversed(factors):
            value = factor.number if factor.place is None else self.values[factor]
            value = 1.0 - value if factor.how == "rest" else 1.0 / value if factor.how == "over" else value
            if isinstance(value, torch.Tensor) and value.numel() > 1:
                by_layout[factor.layout] = by_layout.get(factor.layout, 1.0) * value
            else:
                scalar = scalar * (float(value) if isinstance(value, torch.Tensor) else value)
        if not by_layout:
            return scalar
        (size, *others) = by_layout.values()
        return math.nan if others else size if scalar == 1.0 else scalar * size

    def see_next(self, new):
        self.recorder.left(self.k, self.state, first_tensor(new))
        self.state = None


def at(arguments, place: Place):
    for part in place.path:
        arguments = arguments[part]
    return arguments


class StepTracer:
    """Observes the residual steps of somebody else's network, which were found among its sums.

    net         the network
    call        call(net, batch) runs it
    first       its first pass, written down
    named       the blocks whose steps are observed; None: all steps
    """

    sees = (SLOPE, INCREMENT)

    def __init__(self, net: nn.Module, call, first: Pass, named):
        self.net, self.call, self.named = net, call, named
        self.operations: list[Any] = []
        self.steps: list[Any] = []
        self.hidden: list[Any] = []
        self.read(first)
        every = first.graph().steps()
        stage, opens = stages(every)
        chosen, _ = choose(every, named)
        self.places = Places([every[i].name for i in chosen], [stage[i] for i in chosen], [opens[i] for i in chosen])
        if named is not None:
            self.rename()

    def read(self, seen: Pass):
        """Finds the steps of this pass; the passes that follow are expected to take the same ones."""
        steps = seen.graph().steps()
        chosen, self.hidden = choose(steps, self.named)
        steps = [steps[i] for i in chosen]
        if self.steps and [(s.name, s.identity) for s in steps] != [(s.name, s.identity) for s in self.steps]:
            ours, theirs = ([step.name for step in some] for some in (self.steps, steps))
            raise ValueError(OTHER_WAY.format(f"the residual steps were {ours} and are {theirs}"))
        self.operations, self.steps = seen.operations, steps

    def __call__(self, batch, recorder: Recorder):
        for _ in range(ATTEMPTS):
            recorder.begin()
            before: dict[int, list] = {}
            behind: dict[int, list] = {}
            for k, step in enumerate(self.steps):
                for operation, is_before, probe in Probe(k, step, recorder, self.operations).looks():
                    (before if is_before else behind).setdefault(operation, []).append(probe)
            path: list[str] = []
            with inside(self.net, path), Watching(tensors(batch), path, self.operations, before, behind) as watching:
                output = self.call(self.net, batch)
            if watching.finished():
                return output
            outputs = [n for t in tensors(output) if isinstance(n := watching.number(t), int)]
            self.read(Pass(watching.operations, outputs, {}))
        raise ValueError(OTHER_WAY.format(f"{ATTEMPTS} passes of one batch went different ways"))

    def rename(self):
        """Names a step after its block where the block has only this step."""
        for name in self.named:
            inside = [k for k, step in enumerate(self.steps) if within(step.module, name)]
            if len(inside) == 1:
                self.places.names[inside[0]] = name


class BlockTracer:
    """Observes named blocks at their ends only: what goes in and what comes out."""

    sees = (INCREMENT,)

    def __init__(self, net: nn.Module, call, blocks: dict[str, nn.Module]):
        self.net, self.call, self.blocks = net, call, blocks
        self.places: Places | None = None

    def __call__(self, batch, recorder: Recorder):
        places, entered = Places(), {}
        shapes: list = []

        def enter(name, args, kwargs):
            state = next((t for t in tensors((args, kwargs)) if t.is_floating_point()), None)
            if state is None:
                raise ValueError(f"block {name!r} takes no tensor: there is no state before it.")
            entered[name] = state.clone()  # the block may overwrite it

        def leave(name, output):
            k, before = len(places.names), entered.pop(name)
            new = first_tensor(output)
            if new is None:
                raise ValueError(f"block {name!r} returns no tensor: there is no state after it.")
            opens = not shapes or new.shape != before.shape or before.shape != shapes[-1]
            shapes.append(new.shape)
            recorder.state(k, before)
            recorder.left(k, before if new.shape == before.shape else None, new)
            recorder.size(k, math.nan, len(new), new.ndim)
            places.add(name, (places.stage[-1] if k else -1) + opens, opens)

        with contextlib.ExitStack() as stack:
            for name, block in self.blocks.items():
                before = block.register_forward_pre_hook(lambda _, a, k, name=name: enter(name, a, k), with_kwargs=True)
                stack.callback(before.remove)
                after = block.register_forward_hook(lambda _, a, out, name=name: leave(name, out))
                stack.callback(after.remove)
            output = self.call(self.net, batch)
        if self.places is not None and places != self.places:
            raise ValueError(OTHER_WAY.format(f"the blocks were {self.places.names} and are {places.names}"))
        self.places = places
        return output


# which blocks


def tracer_of(net: nn.Module, call, sample, kinds: tuple[str, ...] | None, blocks):
    """The tracer for somebody else's network: by its steps where sums are found, else by the ends of its blocks."""
    named = None if blocks is None else named_blocks(net, blocks)
    first = watch_pass(net, call, sample)
    tracer = StepTracer(net, call, first, named)
    obscured = [module for module in first.graph().obscured() if named is None or any(within(module, n) for n in named)]
    if tracer.steps and not tracer.hidden and not obscured:
        if named is None:
            warn_of_unseen(net, first, tracer.steps)
        return tracer
    if obscured and (named is None or SLOPE in (kinds or ())):
        raise ValueError(
            f"`net` adds or multiplies, in {obscured[0]!r}, what comes from no function of torch's (TorchScript, "
            "NumPy, vmap and operations of one's own are not seen): its branch cannot be told from its step size. "
            "Name its blocks in `blocks`, and use of='increment', so that only their ends are watched."
        )
    if named is None:
        raise ValueError(
            f"`net` ({type(net).__name__}) has no residual blocks that could be seen. Looked for sums of shortcut(x) "
            "and branch(x) computed from one state x, where the shortcut is x itself or a projection of it without "
            'nonlinearity, and the first axis is the batch. Name its blocks yourself: blocks=["layer1.0", ...].'
        )
    if SLOPE in (kinds or ()):
        raise ValueError(
            f"`of` = 'slope' needs the branch of every block, and inside {tracer.hidden[0]!r} no residual addition "
            "could be seen; use of='increment'."
        )
    return BlockTracer(net, call, named)


def warn_of_unseen(net: nn.Module, first: Pass, steps: list[Step]):
    """Warns of blocks without an observed sum whose class has one elsewhere, and of such branches."""
    modules = dict(net.named_modules())
    warn_of_unadded(modules, first, steps)
    partial = [step.name for step in steps if first.graph().is_partial(step)]
    if partial:
        warnings.warn(
            f"the steps {partial} change a slice of their state: their index is that of the slice, not of the state.",
            stacklevel=4,
        )
    unexplained = first.graph().unexplained(steps)
    if unexplained:
        warnings.warn(
            f"the trace is without sums in {unexplained}: two things computed from one state, in which no state and "
            "branch could be told apart, or which have not one row an image.",
            stacklevel=4,
        )
    classes = {type(modules[step.module]) for step in steps if step.module in modules}
    seen = {step.module for step in first.graph().candidates()}
    unseen = [
        name
        for name, (before, after) in first.ends.items()
        if type(modules[name]) in classes and before == after and not any(within(one, name) for one in seen)
    ]
    if unseen:
        warnings.warn(
            f"the trace is without the blocks {unseen}: like the blocks that were found they are of the class "
            f"{type(modules[unseen[0]]).__name__}, but no residual addition could be seen in them.",
            stacklevel=4,
        )


def warn_of_unadded(modules: dict[str, nn.Module], first: Pass, steps: list[Step]):
    """Warns of modules that have the class of an observed branch, but whose output no residual sum adds to a state."""
    graph = first.graph()
    seen = {operation.module for operation in map(graph.operations.__getitem__, graph.in_branches(steps))}
    kinds = set()
    for step in steps:
        for branch in step.branches:
            path = graph.maker(branch.place, step.module)
            inner = [path.rsplit(".", cut)[0] for cut in range(path.count(".") + 1)] if path else []
            kinds |= {type(modules[name]) for name in inner if name != step.module and within(name, step.module)}
    kinds = {kind for kind in kinds if not kind.__module__.startswith("torch.")}
    unseen = [
        name
        for name, (before, after) in first.ends.items()
        if type(modules[name]) in kinds and before == after and any(p.ndim > 1 for p in modules[name].parameters())
        and not any(within(one, name) for one in seen)
    ]  # fmt: skip
    if unseen:
        warnings.warn(
            f"the trace is without {unseen}: like branches of the steps that were found they are of the class "
            f"{type(modules[unseen[0]]).__name__}, but no addition of their results to the state they are computed "
            "from could be seen (a momentum or a second state beside the first is no residual step).",
            stacklevel=5,
        )


def choose(steps, named):
    """The steps inside the named blocks, and the blocks without one."""
    if named is None:
        return list(range(len(steps))), []
    chosen = [i for i, step in enumerate(steps) if any(within(step.module, name) for name in named)]
    return chosen, [name for name in named if not any(within(step.module, name) for step in steps)]


def within(module: str, name: str) -> bool:
    return not name or module == name or module.startswith(f"{name}.")


def named_blocks(net: nn.Module, blocks) -> dict[str, nn.Module]:
    """Blocks by name from names, modules, or classes of modules."""
    modules = dict(net.named_modules())
    names = {id(module): name for name, module in modules.items()}
    found: list[str] = []
    for block in [blocks] if isinstance(blocks, str | type | nn.Module) else list(blocks):
        if isinstance(block, type):
            fitting = [name for name, module in modules.items() if isinstance(module, block)]
        elif isinstance(block, nn.Module):
            fitting = [names[id(block)]] if id(block) in names else []
        else:
            fitting = [block] if block in modules else []
        if not fitting:
            known = [name for name in modules if name]
            raise ValueError(f"`blocks` names {block!r}, which `net` does not have; it has {known[:8]} ...")
        found += fitting
    if not found:
        raise ValueError("`blocks` is empty; name at least one block.")
    order = {name: place for place, name in enumerate(modules)}
    return {name: modules[name] for name in sorted(set(found), key=order.__getitem__)}
