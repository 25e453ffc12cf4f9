"""What a block computes and what goes into it, as digests: the names under which a survey keeps its rows."""

import functools
import hashlib
import inspect
import numbers
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from netbridge.step_sizes.base import Shared

TOLD = (  # of these the text and the weights say everything, but for SETTINGS
    "torch.nn.modules.conv", "torch.nn.modules.batchnorm", "torch.nn.modules.linear", "torch.nn.modules.container",
    "torch.nn.modules.dropout", "torch.nn.modules.pooling", "netbridge.model.block", "netbridge.step_sizes",
)  # fmt: skip
TOLD_CLASSES = (nn.ReLU, nn.Sigmoid, nn.Identity)
SETTINGS = {  # of blocks and controllers of ours, with their usual values, of which nothing is said
    "post_activation": True, "project": torch.relu_, "value": 1.0, "activation": torch.sigmoid, "inputs": "both",
    "adaptor": "full",
}  # fmt: skip
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
OF_TORCH = frozenset(vars(nn.Module()))  # what every module has
PLAIN = (str, bytes, bool, numbers.Number, type(None), type(...), torch.dtype, torch.device, torch.Size, slice, range)


def digest_of_tensor(tensor: torch.Tensor) -> bytes:
    """Of the numbers, the shape and the precision."""
    tensor = tensor.detach().cpu().contiguous()
    about = f"{tuple(tensor.shape)} {tensor.dtype}".encode()
    return hashlib.sha256(about + tensor.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest().encode()


def digest_of_block(block: nn.Module) -> str:
    """Of its modules with their settings, hooks and code, its weights, and controllers that it shares.

    Settings that the text of a module does not show, such as a factor kept as a number, are looked up in it.
    """
    return hashlib.sha256("".join(words_of_modules(block, {})).encode()).hexdigest()


def words_of_modules(block: nn.Module, seen: dict[int, Any]) -> Iterator[str]:
    yield repr(block)
    modules = [*block.modules()]
    modules += [inner for module in modules if isinstance(module, Shared) for inner in module.target.modules()]
    seen |= {id(module): module for module in modules}
    for module in modules:
        kind: Any = type(module)
        yield f"{kind.__module__}.{kind.__qualname__}"
        yield source_of(kind)
        for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            yield name + digest_of_tensor(tensor).decode()
        yield from words_beside(module, seen)


@functools.cache
def source_of(kind: Any) -> str:
    """The text of a class or function, which takes milliseconds to find; "" where it has none."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def words_beside(module: nn.Module, seen: dict[int, Any]) -> Iterator[str]:
    """Attributes of the module that its text and its weights do not tell, its hooks, and the code of its ancestors."""
    kind = type(module)
    attributes = vars(module)
    if kind in TOLD_CLASSES or kind.__module__.startswith(TOLD):
        names = [name for name, usual in SETTINGS.items() if attributes.get(name, usual) != usual]
        names += ["forward"] if "forward" in attributes else []
    else:
        names = sorted(name for name in attributes if name not in OF_TORCH)
        yield from (
            source_of(base) for base in kind.__mro__[1:] if not base.__module__.startswith(("torch.", "builtins"))
        )
    for name in names:
        yield name
        yield from words_of(attributes[name], seen)
    for name in HOOKS:  # by their order; the numbers that torch gives them go on through a process
        yield from words_of(list(attributes[name].values()), seen) if attributes.get(name) else ()


def words_of(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """A value in words that are the same in every process; `seen` holds what has been described, by its id."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r};"
        return
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        yield digest_of_tensor(torch.as_tensor(value)).decode()
        return
    kind = value if isinstance(value, type) else type(value)
    yield f"{kind.__module__}.{kind.__qualname__}("
    if id(value) in seen:
        yield "again)"
        return
    seen[id(value)] = value
    if isinstance(value, type):
        yield source_of(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from words_of(key, seen)
            yield from words_of(one, seen)
    elif isinstance(value, list | tuple | deque):
        for one in value:
            yield from words_of(one, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted("".join(words_of(one, seen)) for one in value)
    elif isinstance(value, functools.partial):
        yield from words_of((value.func, value.args, value.keywords), seen)
    elif inspect.ismethod(value):
        yield from words_of((value.__func__, value.__self__), seen)
    elif inspect.isfunction(value):
        yield f"{value.__qualname__} {source_of(value)}"
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from words_of((cells, value.__defaults__, value.__kwdefaults__), seen)
    elif inspect.isroutine(value):
        yield f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    elif isinstance(value, nn.Module):
        yield from words_of_modules(value, seen)
    elif hasattr(value, "__dict__"):
        yield from words_of(vars(value), seen)
    yield ")"
