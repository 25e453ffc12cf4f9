"""The last convolution of a folded branch, adding its result to the state by itself.

After `fold` a branch ends with a convolution, and u + f would read and write whole feature maps once more for the sum:
a tenth of the time of a folded ResNet-164. oneDNN's convolution can add into the memory that holds u. That is done in
inference on CPUs, where the state is the run's own and nobody looks at f; everywhere else the sum is formed as usual.
"""

import torch
from torch import nn
from torch.autograd import forward_ad

ADDITIONS = (torch.Tensor.__add__, torch.Tensor.add)


class Pending:
    """A slope f that is still an input to its last convolution; the solver's u + f runs it, in the memory of u."""

    def __init__(self, conv: nn.Conv2d, x: torch.Tensor):
        self.conv, self.x = conv, x

    def value(self) -> torch.Tensor:
        return self.conv(self.x)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        u, pending = args if len(args) == 2 else (None, None)
        if function in ADDITIONS and isinstance(pending, Pending):
            return pending.added_to(u)
        known = [arg.value() if isinstance(arg, Pending) else arg for arg in args]
        return function(*known, **(kwargs or {}))

    def added_to(self, u: torch.Tensor) -> torch.Tensor:
        conv, x = self.conv, self.x
        return torch.ops.mkldnn._convolution_pointwise_.binary(
            u,
            x,
            conv.weight,
            conv.bias,
            conv.padding,
            conv.stride,
            conv.dilation,
            conv.groups,
            "add",
            1.0,
            None,
            [],
            None,
        )


def available() -> bool:
    """Is this an ordinary pass on tensors of the CPU, which no mode, transform or trace wants to see?"""
    return (
        not torch.compiler.is_compiling()
        and torch.backends.mkldnn.is_available()
        and torch._C._get_mkldnn_enabled()
        and hasattr(torch.ops.mkldnn, "_convolution_pointwise_")
        and not torch.is_grad_enabled()
        and not torch.jit.is_tracing()
        and not torch.is_autocast_enabled("cpu")
        and forward_ad._current_level < 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._len_torch_function_stack() == 0
    )


def suits(branch: nn.Module, u: torch.Tensor) -> bool:
    """Single precision on the CPU, the plain kind of convolution, and no hook that holds a state or a slope."""
    conv = branch.last
    parts = (branch, *branch._modules.values())
    return (
        type(u) is torch.Tensor
        and u.device.type == "cpu"
        and u.dtype == conv.weight.dtype == torch.float32
        and type(conv) is nn.Conv2d
        and conv.padding_mode == "zeros"
        and not isinstance(conv.padding, str)
        and not any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    )
