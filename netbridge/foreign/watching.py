"""A pass of somebody else's network written down as a list of operations, by watching and never by changing it.

A function mode of torch sees every torch function of a pass, branches of Python included.
"""

import contextlib
import functools
import os
import sys
import weakref
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from netbridge.common import batches
from netbridge.common.nested_tensors import first_tensor, tensors
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import UNSEEN, Operation
from netbridge.foreign.solvers import watch_solvers
from netbridge.foreign.vocabulary import LAYOUTS, LIKE, TENSORLESS, TRANSPARENT, describe, is_number

PASSED_BY = tuple(os.path.join(os.path.dirname(path), "") for path in (__file__, torch.__file__))
SPELLED_OUT = nn.modules.transformer.__file__  # of torch's own modules, in which there are sums


class Pass:
    """One pass written down.

    operations  in the order they ran
    outputs     the numbers of those that made what the network returned
    ends        the operations behind the first tensors that each module that ran was given and returned
    choices     what the caller decides
    """

    def __init__(self, operations: list[Operation], outputs: list[int], ends: dict[str, list], choices=None):
        self.operations, self.outputs, self.ends, self.choices = operations, outputs, ends, choices

    def keeps_shape(self, module: str) -> bool:
        """Did a module that ran return a tensor of the shape that it was given?"""
        shapes = [None if i is None else self.operations[i].shape for i in self.ends[module]]
        return None not in shapes and shapes[0] == shapes[1]

    @functools.cached_property
    def graph(self) -> Graph:
        return Graph(self.operations, self.outputs, self.choices)


def signature_of(operation: Operation) -> tuple:
    """What must be the same for two operations to be the same one: name, module, and where its tensors come from."""
    return operation.name, operation.inputs, operation.module


class Watching(TorchFunctionMode):
    """Writes down the torch functions of a pass that return tensors, and lets probes look at them.

    net         the network
    inputs      the tensors that go into it, operation 0
    expected    the operations of an earlier pass; where this one leaves their way, `same_way` becomes False
    before      probes by the number of the operation whose arguments they look at: probe(arguments)
    behind      probes by the number of the operation whose result they look at: probe(result)
    steps       a `SolverSteps`, which is told of the steps of solvers
    """

    def __init__(self, net: nn.Module, inputs: list[torch.Tensor], expected=None, before=None, behind=None, steps=None):
        super().__init__()
        self.solvers = watch_solvers(self, steps)
        self.names = {id(module): name for name, module in net.named_modules()}
        hooked = (module for module in net.modules() if module._forward_hooks or module._forward_pre_hooks)
        self.hooked = {id(module): module for module in hooked}
        self.modules: list[str] = []  # whose forward is running
        self.ends: dict[str, list] = {}
        self.otherwise: dict[int, tuple] = {}  # shape and repetition of expected operations, where they are others here
        self.expected, self.before, self.behind = expected, before or {}, behind or {}
        self.same_way = expected is not None
        self.operations = [Operation("input", (), shape=tuple(inputs[0].shape), whole=is_whole(inputs[0]))]
        self.images = inputs[0].shape[0]
        self.inside: set[int] | None = None  # within a solver: the operations whose numbers it has taken
        self.numbers: dict[int, tuple[weakref.ref, int]] = {}
        self.sharing: dict[int, list[weakref.ref]] = {}  # the numbered tensors by the memory they lie in
        for tensor in inputs:
            self.give_number(tensor, 0)

    def __enter__(self):
        self.solvers.__enter__()
        self.hooks = self.hook_modules()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        for hook in self.hooks:
            hook.remove()
        self.solvers.__exit__(*error)

    def hook_modules(self) -> list:
        """Two hooks for all modules, which cost less than two for each; one with hooks has its own behind them."""

        def unless_hooked(hook):
            return lambda module, *ends: None if id(module) in self.hooked else hook(module, *ends)

        hooks: list = [register_module_forward_pre_hook(unless_hooked(self.enter))]
        hooks.append(register_module_forward_hook(unless_hooked(self.leave), always_call=True))
        for module in self.hooked.values():  # functions: methods would be copied with the module, and this pass with it
            hooks.append(module.register_forward_pre_hook(lambda *ends: self.enter(*ends)))
            hooks.append(module.register_forward_hook(lambda *ends: self.leave(*ends), always_call=True))
        return hooks

    def enter(self, module: nn.Module, args):
        if (name := self.names.get(id(module))) is not None:
            self.modules.append(name)
            self.ends[name] = [self.number(first_tensor(args)), None]

    def leave(self, module: nn.Module, args, output):
        if id(module) in self.names and self.modules:
            self.ends[self.modules.pop()][1] = self.number(first_tensor(output))

    def written(self, result, choices=None) -> Pass:
        """The pass, which returned this."""
        for i, (shape, again) in self.otherwise.items():
            self.operations[i] = self.operations[i]._replace(shape=shape, again=again)
        outputs = [n for t in tensors(result) if isinstance(n := self.number(t), int)]
        return Pass(self.operations, outputs, self.ends, choices)

    def give_number(self, tensor: torch.Tensor, number: int):
        if self.number(tensor) is None and (memory := memory_of(tensor)) is not None:
            self.sharing.setdefault(memory, []).append(weakref.ref(tensor))
        self.numbers[id(tensor)] = weakref.ref(tensor), number

    def pass_on_change(self, changed: torch.Tensor, number: int):
        """Number anew every tensor that shows the memory of one that was changed in place."""
        memory = memory_of(changed)
        if memory is None:
            return
        sharing = [tensor for one in self.sharing.get(memory, ()) if (tensor := one()) is not None]
        self.sharing[memory] = list(map(weakref.ref, sharing))
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

    def number_or_unseen(self, tensor: torch.Tensor) -> Any:
        """The operation that a tensor comes from.

        One with the first axis of the images that no torch function returned gets an operation of its own.
        """
        number = self.number(tensor)
        if number is None and type(tensor) is torch.Tensor and tensor.ndim > 1 and len(tensor) == self.images:
            self.give_number(tensor, number := len(self.operations))
            self.operations.append(Operation(UNSEEN, (), shape=tuple(tensor.shape), module=self.module()))
        return number

    @contextlib.contextmanager
    def stand_for(self, name: str):
        """A context manager: what runs within it is one operation of this name; it yields a function of its result."""
        self.inside, module = set(), self.module()

        def write(result: torch.Tensor):
            inputs: Any = tuple(sorted(self.inside or ()))
            self.give_number(result, len(self.operations))
            operation, ahead = Operation(name, inputs, inputs, tuple(result.shape), module), self.ahead()
            self.same_way = ahead is not None and signature_of(ahead) == signature_of(operation)
            self.operations.append(operation)

        try:
            yield write
        finally:
            self.inside = None

    def ahead(self) -> Operation | None:
        """The operation that comes next, if the pass goes on as the earlier one did."""
        count = len(self.operations)
        return self.expected[count] if self.same_way and count < len(self.expected) else None

    def module(self) -> str:
        return self.modules[-1] if self.modules else ""

    def number(self, value) -> int | tuple | None:
        """The operation that a tensor comes from; of a list, a tuple of them."""
        if isinstance(value, torch.Tensor):
            reference, number = self.numbers.get(id(value), (None, None))
            return number if reference is not None and reference() is value else None  # an id may be used again
        return tuple(self.number(part) for part in value) if isinstance(value, tuple | list) else None

    def constant(self, value) -> Any:
        """Something that tells one tensor that comes from no operation from another."""
        if isinstance(value, tuple | list):
            return tuple(map(self.constant, value))
        return id(value) if isinstance(value, torch.Tensor) and self.number(value) is None else None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.inside is not None:
            self.inside.update(n for t in tensors((args, kwargs)) if isinstance(n := self.number(t), int))
            return func(*args, **kwargs)
        raw = getattr(func, "__name__", "")
        if raw == "__get__":  # a property, such as x.mT
            raw = getattr(getattr(func, "__self__", None), "__name__", raw)
        if raw in TENSORLESS:
            return func(*args, **kwargs)
        if raw == "glu":
            return self.take_apart(func, types, args, kwargs)
        if raw in ("var_mean", "std_mean"):
            return self.take_two(func, types, args, kwargs)
        name, arguments = describe(raw, args, kwargs)
        taken = args[:1] if name in LIKE else args[1:] if name == "copy" else args
        given = tensors(taken if name in LIKE else (taken, kwargs))
        inputs: Any = tuple(n for t in given if (n := self.number_or_unseen(t)) is not None)
        count, module = len(self.operations), self.module()
        repeat = repeating(func, args[1:], kwargs)
        ahead = self.ahead()
        if ahead is not None and signature_of(ahead) != (name, inputs, module):
            ahead = None
        for probe in self.before.get(count, ()) if ahead is not None else ():
            probe(arguments, repeat)
        result = func(*args, **kwargs)
        in_place = raw.startswith(("__i", "__setitem")) or (raw.endswith("_") and not raw.endswith("__"))
        returned = result if raw != "__setitem__" else args[0]
        results = tensors(returned)
        if not results:
            return result
        made = results[0]
        if name in ("view_as", "reshape_as"):
            repeat = repeating(torch.Tensor.reshape, (made.shape,), {})
        if ahead is not None:
            operation = ahead
            if ahead.shape != made.shape:
                self.otherwise[count] = tuple(made.shape), ahead.again and repeat
        else:
            self.same_way = False
            numbers = tuple(float(a) if is_number(a) else None for a in arguments)
            details = repr([shown(value) for value in (*arguments, *sorted(kwargs.items()))])
            constants = tuple(map(self.constant, (*arguments, *kwargs.values())))
            operands = tuple(map(self.number, arguments))
            operation = Operation(
                name, inputs, operands, tuple(made.shape), module, in_place, numbers, is_whole(made), details,
                constants, len(results) > 1, repeat if name in LAYOUTS else None, line_of_user(),
            )  # fmt: skip
        self.operations.append(operation)
        for tensor in results:
            self.give_number(tensor, count)
        if args and made is args[0] and (in_place or name not in LAYOUTS | TRANSPARENT):  # these may return their own
            self.pass_on_change(made, count)
        if self.same_way:
            for probe in self.behind.get(count, ()):
                probe(returned)
        return result

    def take_apart(self, glu, types, args, kwargs):
        """Writes a gated linear unit down as the product of its one half with the sigmoid of the other, which it is."""
        whole, dim = kwargs.get("input", args[:1]), kwargs.get("dim", (*args, -1, -1)[1])
        whole = whole[0] if isinstance(whole, tuple) else whole
        left, right = self.__torch_function__(torch.chunk, types, (whole, 2, dim))

        def mul(left, gate):
            return glu(whole, dim)

        return self.__torch_function__(mul, types, (left, self.__torch_function__(torch.sigmoid, types, (right,))))

    def take_two(self, both, types, args, kwargs):
        """Writes a variance or deviation with its mean down as two functions, each of which has its own degree."""

        def part(k: int, name: str):
            function = lambda *args, **kwargs: both(*args, **kwargs)[k]  # noqa: E731
            function.__name__ = name
            return function

        functions = map(part, (0, 1), both.__name__.split("_"))  # var_mean, std_mean
        return tuple(self.__torch_function__(one, types, args, kwargs) for one in functions)

    def is_complete(self) -> bool:
        """Did the whole pass go the expected way?"""
        return self.same_way and len(self.operations) == len(self.expected)


def repeating(func, rest, kwargs):
    """An operation on another first tensor; it keeps no hold of the one that it ran on.

    A copy that made a view possible (`x.mT.contiguous().view(...)`) is no operation of its own here.
    """
    return lambda tensor: func(tensor.contiguous(), *rest, **kwargs)


def shown(value) -> Any:
    """An argument without its tensors."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    return [shown(part) for part in value] if isinstance(value, tuple | list) else value


def line_of_user() -> str:
    """File and line of the innermost code of the network that is neither ours nor torch's, but for its transformers.

    Nothing where there is none: a layer of torch in a `Sequential` is called by torch alone.
    """
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != batches.__file__:  # from which the network is called
        path = frame.f_code.co_filename
        if path == SPELLED_OUT or not path.startswith(PASSED_BY):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def watch_pass(net: nn.Module, call, batch, choices=None) -> Pass:
    """One pass of `batch`, written down."""
    known = "torchdiffeq" in sys.modules
    with Watching(net, tensors(batch)) as watching:
        result = call(net, batch)
    if not known and "torchdiffeq" in sys.modules:  # imported by this pass, which therefore saw its sums
        return watch_pass(net, call, batch, choices)
    return watching.written(result, choices)


def memory_of(tensor: torch.Tensor) -> int | None:
    """Where a tensor's numbers lie; None where it has none of its own, as within torch.func."""
    try:
        return tensor.untyped_storage().data_ptr() or None  # nothing lies anywhere
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
