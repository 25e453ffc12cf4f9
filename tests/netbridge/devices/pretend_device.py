"""A second device on every machine: a tensor that was created on the wrong one is found without a GPU, as on a GPU.

torch's device "meta" refuses tensors of the processor, too, but it holds no values: whatever asks for one, such as a
mask, `nonzero` or `item`, cannot run there. A tensor of the pretend device computes with a tensor of the processor that
it hides, and an operation refuses tensors of both devices where CUDA's would. So all of a program runs there, and what
it computes can be compared with what it computes on the processor.

`with pretend_device() as device:` makes the device usable; `assert_alike_on_both` compares the two.

The device wears a name of torch's own, "lazy", for which torch has no kernels, so that nothing computes there by
accident, and whose backward passes run in the thread that asks for them.
"""

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE, PROCESSOR = torch.device("lazy", 0), torch.device("cpu")
COPIES = {torch.ops.aten.copy_}  # from one device to another
INDEXING = {getattr(torch.ops.aten, name) for name in ("index", "index_put", "index_put_", "_index_put_impl_")}
CREATORS = {torch.tensor, torch.as_tensor, torch.asarray}  # torch shows a dispatch mode nothing of them


class PretendTensor(torch.Tensor):
    """A tensor of the pretend device. `hidden` is the tensor of the processor that it computes with."""

    hidden: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # a result is what `operate` makes of it

    @staticmethod
    def __new__(cls, hidden: torch.Tensor):
        layout = {"strides": hidden.stride(), "storage_offset": hidden.storage_offset(), "dtype": hidden.dtype}
        tensor = torch.Tensor._make_wrapper_subclass(cls, hidden.shape, **layout, device=DEVICE)
        tensor.hidden = hidden
        return tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return operate(function, args, kwargs or {})

    @property
    def data(self):
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, other):
        """Modules set it when they change their precision or memory format."""
        torch.Tensor.data.__set__(self, other)
        self.hidden = other.hidden

    def tolist(self):
        return self.hidden.tolist()

    def numpy(self, **options):
        raise TypeError(f"a tensor of {DEVICE} cannot become an array of NumPy; copy it to the processor first.")

    def __repr__(self, **options):
        return f"PretendTensor({self.hidden})"


def is_pretend(value) -> bool:
    return isinstance(value, PretendTensor)


def operate(function, args, kwargs):
    """Carry out one operation of torch on the device of its tensors, or on the one that it is asked for."""
    there = any(map(is_pretend, tree_leaves((args, kwargs))))
    if there:
        refuse_a_mixture(function, args, kwargs)
    asked = kwargs.get("device")
    if asked is not None:
        there = asked.type == DEVICE.type
        kwargs = kwargs | {"device": PROCESSOR if there else asked}
    if there and kwargs.get("generator") is not None:
        raise RuntimeError(f"{function}: a generator of the processor cannot draw on {DEVICE}.")
    owners: dict[int, PretendTensor] = {}

    def uncover(value):
        if not is_pretend(value):
            return value
        owners[id(value.hidden)] = value
        return value.hidden

    def cover(value):
        if not isinstance(value, torch.Tensor):
            return value
        return owners[id(value)] if id(value) in owners else PretendTensor(value)  # what acts in place returns itself

    result = function(*tree_map(uncover, args), **tree_map(uncover, kwargs))
    return tree_map(cover, result) if there else result


def refuse_a_mixture(function, args, kwargs) -> None:
    """Raise where an operation is given tensors of both devices in a way that CUDA's operations refuse."""
    packet = function.overloadpacket
    if packet in COPIES:
        return
    if packet in INDEXING and is_pretend(args[0]):
        args = (args[0], *args[2:])  # the processor's numbers may be indices into a tensor of any device
    strangers = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and not is_pretend(x)]
    if torch.Tag.pointwise in function.tags or packet in INDEXING:
        strangers = [x for x in strangers if x.ndim]  # a single number may be the processor's
    if strangers:
        shapes = ", ".join(str(tuple(x.shape)) for x in strangers)
        raise RuntimeError(f"{function} mixes tensors of {DEVICE} with the processor's, of shape {shapes}.")


class Dispatch(TorchDispatchMode):
    """Sees every operation, also one that makes a tensor of none."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return operate(function, args, kwargs or {})


class Creation(TorchFunctionMode):
    """Makes tensors of numbers on the processor and copies them to the device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, created = dict(kwargs or {}), function in CREATORS
        if function is torch.Tensor.new_tensor:
            (like, *args), created, function = args, True, torch.tensor
            kwargs = {"device": like.device, "dtype": like.dtype} | kwargs
        if not created or kwargs.get("device") is None:
            return function(*args, **kwargs)
        device = kwargs.pop("device")
        return function(*args, **kwargs).to(device)


@contextlib.contextmanager
def pretend_device() -> Iterator[torch.device]:
    """A context manager: within it the device can be used, which it hands to the block."""
    ask = torch.is_autocast_enabled

    def is_autocast_enabled(*kind):
        return kind != (DEVICE.type,) and ask(*kind)  # torch has no answer for this kind of device

    with mock.patch.object(torch, "is_autocast_enabled", is_autocast_enabled), Creation(), Dispatch():
        yield DEVICE


def assert_alike_on_both(compute: Callable[[torch.device], object], rtol: float = 0.0) -> None:
    """Assert that a computation runs on the pretend device and gives what it gives on the processor.

    compute  of the device, on which it builds all that it needs. It returns tensors, on whatever device, and numbers, in
             lists and dictionaries
    rtol     relative difference that is allowed; 0, the default, wants the same bits. Where the product takes another
             way for tensors that are not the processor's, it is a rounding error
    """
    results = []
    for context in (contextlib.nullcontext(PROCESSOR), pretend_device()):
        with context as device:
            torch.manual_seed(1)
            computed = compute(device)
            results.append(tree_map(lambda x: x.detach().cpu() if isinstance(x, torch.Tensor) else x, computed))
    atol = rtol * max(
        (float(x.abs().max()) for x in tree_leaves(results[0]) if torch.is_tensor(x) and x.numel()), default=1
    )
    torch.testing.assert_close(results[1], results[0], rtol=rtol, atol=atol, equal_nan=True)
