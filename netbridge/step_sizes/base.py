"""What a step-size controller of a network is: a module that returns the step size; the solver multiplies.

    class Gate(nb.Controller, name="gate"):
        def __init__(self, channels):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.zeros(channels))

        def forward(self, state, slope):
            pooled = slope.mean((2, 3))
            return torch.sigmoid(self.scale * pooled)[:, :, None, None]

is all a new one needs; `nb.resnet(20, controller="gate")` then finds it by its name.
"""

import torch
from torch import nn

REGISTRY: dict[str, type] = {}


def registered(record) -> type:
    """The class behind a name, or behind a JSON record {"name": ..., options}."""
    name = record.get("name") if isinstance(record, dict) else record
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"`controller` must be one of {list(REGISTRY)}, or a class of your own; got {name!r}.")
    return REGISTRY[name]


class Controller(nn.Module):
    """Returns h, anything that broadcasts over the slope, from the state u and the coarse slope f(u)."""

    name = ""
    shared = False  # one instance serves every block of a stage (DIA's LSTM), its state travels in the memory
    opening = True  # also on the first block of every stage
    takes_pool = False  # its constructor builds further controllers and wants the stage's shared ones
    modifies_branch = False  # h is 1, the branch itself changes (IEBN)

    def __init_subclass__(cls, name: str | None = None, **rest):
        super().__init_subclass__(**rest)
        if name is None:
            return
        known = REGISTRY.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"`name` = {name!r} is already the controller {known.__module__}.{known.__qualname__}.")
        cls.name = name
        REGISTRY[name] = cls

    def forward(self, state, slope):
        raise NotImplementedError(f"{type(self).__name__} must define forward(state, slope) and return its step size.")

    def propose(self, memory, state, slope):
        """The step size, and what the next block's controller may remember."""
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
    """h = activation(head(squeeze(state, slope))), one number per sample and channel.

    `squeeze` looks at feature maps, everything after it does not: so the head can be fed a learnable vector (`nb.asr`).
    """

    def squeeze(self, state, slope):
        """Global average pooling."""
        return slope.mean((2, 3))

    def of_constant(self, psi):
        """The statistic that stands for a learnable vector (1, C)."""
        return psi

    def only_head(self):
        """Lets go of what only `squeeze` or `forward` need; called when the head is to live on a learnable vector."""
        return self

    def head(self, statistic):
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
