"""ASR. Zhong, Huang, Wen, Qin and Lin, ASR: Attention-alike Structural Re-parameterization, 2023, Section 3, Table 6.

The head of a channel module, such as SE's two linear maps, is applied to a learnable vector psi instead of the average
of f over the map (GAP). The step size is then a constant per channel once training ends, and `nb.merge` folds it into
the layer before it (Eq. 5 to 7). Several uses multiply. With a live module beside it, ASR acts first and the live
module sees ASR's product, as it would if the constant had been folded into the normalisation already.

A batch normalisation inside a head would subtract a constant's own mean and return 0; under ASR it therefore stays in
evaluation mode and uses its running statistics.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from netbridge.step_sizes.base import REGISTRY, ChannelController, Controller, Shared, registered_class

ACTIVATIONS = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}


class ASR(Controller, name="asr"):
    takes_pool = True
    scales = ("psi",)

    def __init__(
        self,
        channels: int,
        module=None,
        uses: int = 1,
        init: float = 0.1,
        learnable: bool = True,
        spread: float = 0.0,
        activation: str = "sigmoid",
        inner: float | None = None,
        beside=None,
        *,
        build,
    ):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        psi = torch.full((uses, channels), init)
        if not psi.is_meta:  # drawing on the device "meta" would make torch load its compiler
            psi += spread * torch.randn(uses, channels)
        if learnable:
            self.psi = nn.Parameter(psi)
        else:
            self.register_buffer("psi", psi)  # a buffer is no parameter, and `scales` may name it all the same
        self.heads: Any = nn.ModuleList([] if module is None else [build(module, use) for use in range(uses)])
        self.live = None if beside is None else build(beside)
        for head in map(itself, self.heads):
            head.only_head()
            if inner is not None:
                for parameter in head.parameters():
                    nn.init.constant_(parameter, inner)
        self.train(self.training)

    @classmethod
    def check(cls, module=None, uses=1, activation="sigmoid", learnable=True, **rest):
        kind = None if module is None else registered_class(module)
        if kind is not None and not issubclass(kind, ChannelController):
            raise ValueError(
                f"`module` = {kind.name!r} is no channel module, it has no head to feed a vector to; take one of "
                f"{[name for name, other in REGISTRY.items() if issubclass(other, ChannelController)]}, or None."
            )
        if not (isinstance(uses, int) and uses >= 1):
            raise ValueError(f"`uses` must be a positive integer, got {uses!r}.")
        if not isinstance(learnable, bool):
            raise ValueError(f"`learnable` must be True or False, got {learnable!r}.")
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {list(ACTIVATIONS)}, got {activation!r}.")

    def train(self, mode: bool = True):
        super().train(mode)
        for head in map(itself, self.heads):
            for part in head.modules():
                if isinstance(part, _BatchNorm):
                    part.eval()
        return self

    def constant(self, memory):
        """The step size as a vector (C,), and the heads' memories (DIA's, one per use)."""
        if not len(self.heads):
            return self.psi.prod(dim=0), memory
        memory = (None,) * len(self.heads) if memory is None else memory
        gates, memories = [], []
        for head, psi, held in zip(self.heads, self.psi.unsqueeze(1).unbind(), memory, strict=True):
            gate, held = head.advance(held, head.of_constant(psi), self.activation)
            gates.append(gate)
            memories.append(held)
        return torch.cat(gates).prod(dim=0), tuple(memories)

    def propose(self, memory, state, slope):
        held, beside = (None, None) if memory is None else memory
        vector, held = self.constant(held)
        h = vector.view(1, -1, 1, 1)
        if self.live is not None:
            live, beside = self.live.propose(beside, state, h * slope)
            h = h * live
        return h, (held, beside)

    def forward(self, state, slope):
        return self.propose(None, state, slope)[0]

    def settle(self, memory):
        held, beside = (None, None) if memory is None else memory
        vector, held = self.constant(held)
        return vector, self.live, (held, beside)


def itself(controller):
    """The controller behind a block's handle on a shared one."""
    return controller.target if isinstance(controller, Shared) else controller
