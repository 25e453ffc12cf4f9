"""What every step-size controller of a network is: a module that returns the step size; the solver multiplies."""

import inspect
from typing import Any

import torch
from torch import nn

REGISTRY: dict[str, "type[Controller]"] = {}


class One(float):
    """The number 1. It multiplies a slope by returning it, where torch would write a whole feature map anew."""

    def __mul__(self, slope):
        return slope

    __rmul__ = __mul__


UNIT = One(1.0)


def registered_class(record) -> "type[Controller]":
    """The class behind a name, or behind a JSON record {"name": ..., options}."""
    name = record.get("name") if isinstance(record, dict) else record
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"`controller` must be one of {list(REGISTRY)}, or a class of your own; got {name!r}.")
    return REGISTRY[name]


def check_step_size(h, slope, controller) -> None:
    """Raises where h is neither a number nor a tensor whose first axis matches the samples of the slope."""
    if isinstance(h, float | int) or torch.jit.is_tracing():  # which would write comparisons of sizes down, and warn
        return
    name = controller.name or type(controller).__name__
    if not isinstance(h, torch.Tensor):
        raise TypeError(f"controller {name!r} returned {h!r}; its step size must be a number or a tensor.")
    size, target = tuple(h.shape), tuple(slope.shape)
    fits = len(size) <= len(target) and all(a in (1, b) for a, b in zip(size[::-1], target[::-1], strict=False))
    leading = 0 < len(size) < len(target) and size == target[: len(size)] and h.numel() > 1
    if leading or not fits:
        raise ValueError(
            f"controller {name!r} returned a step size of shape {size} for a slope of shape {target}: it must be a "
            "number or broadcast over the slope. One number per sample and channel of feature maps is "
            "h[:, :, None, None]."
        )


def check_signatures(kind: Any, name: str):
    """Raises TypeError where a controller's functions cannot be called as networks call them."""
    required = [
        parameter.name
        for parameter in list(inspect.signature(kind.__init__).parameters.values())[2:]
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if not accepts(kind.__init__, 2) or set(required) - {"build"}:
        raise TypeError(
            f"controller {name!r} must be built from the number of channels, and its options need defaults: "
            f"`def __init__(self, channels, option=1.0)`, got __init__{inspect.signature(kind.__init__)}."
        )
    for function, arguments in (("forward", ("state", "slope")), ("propose", ("memory", "state", "slope"))):
        written = getattr(kind, function)
        if not accepts(written, 1 + len(arguments)):
            raise TypeError(
                f"controller {name!r} must define `def {function}(self, {', '.join(arguments)})`, got "
                f"{function}{inspect.signature(written)}."
            )


def accepts(function, count: int) -> bool:
    """Can its first arguments, so many of them, be handed over by position?"""
    parameters = inspect.signature(function).parameters.values()
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(by_position) >= count or any(p.kind is p.VAR_POSITIONAL for p in parameters)


class Controller(nn.Module):
    """A module that decides the step size h of a block from its state u and its slope f(u).

    Write a subclass with a name and a `forward(state, slope)` that returns a number or a tensor which broadcasts over
    the slope (N, C, height, width). `nb.resnet(20, controller="my name")` then builds one per block as
    `YourClass(channels, **options)`, where the options are those of `nb.controller("my name", ...)`: numbers and
    strings with defaults. A class without parameters needs no `__init__`. `propose(memory, state, slope)` may be
    defined in place of `forward` by a controller that remembers from block to block; it returns (h, memory).

    channels  channels of the slope; a class without an `__init__` of its own ignores them

    These class attributes may be set in a subclass:

    name             set by `class Mine(nb.Controller, name="mine")`
    shared           True: one instance serves all blocks of a stage (DIA); default False
    opening          False: by default not on the first block of each stage (StepNet); default True
    takes_pool       True: `__init__` gets a keyword `build` that makes further controllers (ASR); default False
    modifies_branch  True: the step size is 1 and `attach(block)` changes the block's branch (IEBN); default False
    scales           names of parameters that are scales rather than weights; recipes with decay_gates=False do not
                     decay them; default none

    >>> import torch, netbridge as nb
    >>> class Gate(nb.Controller, name="gate of the example"):
    ...     def __init__(self, channels, start=0.0):
    ...         super().__init__()
    ...         self.scale = torch.nn.Parameter(torch.full((channels,), start))
    ...
    ...     def forward(self, state, slope):
    ...         return torch.sigmoid(self.scale * slope.mean((2, 3)))[:, :, None, None]
    >>> net = nb.resnet(14, controller=nb.controller("gate of the example", start=0.5))
    >>> net(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    name = ""
    shared = False
    opening = True
    takes_pool = False
    modifies_branch = False
    scales: tuple[str, ...] = ()

    def __init__(self, channels: int | None = None):
        super().__init__()

    def __init_subclass__(cls, name: str | None = None, **rest):
        super().__init_subclass__(**rest)
        if name is None:
            return
        check_signatures(cls, name)
        known = REGISTRY.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"`name` = {name!r} is already the controller {known.__module__}.{known.__qualname__}.")
        cls.name = name
        REGISTRY[name] = cls

    def forward(self, state, slope):
        raise NotImplementedError(f"{type(self).__name__} must define forward(state, slope) and return its step size.")

    def propose(self, memory, state, slope):
        """Returns (h, memory): the step size, and the memory that the controller of the next block receives."""
        return self(state, slope), memory

    @classmethod
    def check(cls, **options):
        """Raises on options that could not be built."""

    def settle(self, memory):
        """(constant step or None, what stays live or None, memory): what `merge` may fold into the branch."""
        return None, self, memory

    def attach(self, block):
        """Called when the block has become this controller's; a branch modifier does its work here."""

    def detach(self, block):
        """Called before the block gets another controller."""


class ChannelController(Controller):
    """A controller with one number per sample and channel: h = sigmoid(head(squeeze(state, slope))).

    A subclass defines `head(statistic)`, which returns logits (N, C); `squeeze`, global average pooling by default,
    makes the statistic. Only `squeeze` sees feature maps, so `nb.asr` can feed the head a learnable vector instead.

    channels  channels of the slope; a class without an `__init__` of its own ignores them

    >>> import torch, netbridge as nb
    >>> class Mean(nb.ChannelController, name="mean of the example"):
    ...     def head(self, statistic):
    ...         return statistic
    >>> h = Mean(4)(None, torch.zeros(2, 4, 8, 8))
    >>> h.shape, float(h[0, 0, 0, 0])
    (torch.Size([2, 4, 1, 1]), 0.5)
    """

    def squeeze(self, state, slope):
        """The mean of the slope over the map, (N, C): global average pooling."""
        return slope.mean((2, 3))

    def of_constant(self, psi):
        """The statistic that stands for a learnable vector (1, C)."""
        return psi

    def only_head(self):
        """Returns the controller without what only `squeeze` or `forward` use, for a head on a learnable vector."""
        return self

    def head(self, statistic):
        """Logits (N, C) from what `squeeze` has returned; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must define head(statistic) and return logits (N, C).")

    def gate(self, statistic, activation=torch.sigmoid):
        return activation(self.head(statistic))

    def advance(self, memory, statistic, activation=torch.sigmoid):
        """The gate (N, C) and the memory; only a recurrent controller changes the latter."""
        return self.gate(statistic, activation), memory

    def forward(self, state, slope):
        gate, _ = self.advance(None, self.squeeze(state, slope))
        return gate[:, :, None, None]


class Shared(Controller):
    """A block's handle on a controller the stage owns; holds no parameters of its own, so none is saved twice."""

    def __init__(self, owner: Controller):
        super().__init__()
        self.owner = (owner,)  # in a tuple, so that it is not registered as a submodule

    @property
    def target(self):
        return self.owner[0]

    def forward(self, state, slope):
        return self.target(state, slope)

    def propose(self, memory, state, slope):
        return self.target.propose(memory, state, slope)

    def advance(self, memory, statistic, activation=torch.sigmoid):
        return self.target.advance(memory, statistic, activation)

    def of_constant(self, psi):
        return self.target.of_constant(psi)

    def extra_repr(self):
        return f"{self.target.name}, owned by the stage"
