"""The convolutions of a folded branch: the last adds its result to the state by itself, and all rectify theirs.

After `fold` a branch ends with a convolution, and u + f would read and write whole feature maps once more for the sum:
a tenth of the time of a folded ResNet-164. oneDNN's convolution can add into the memory that holds u, and rectify what
it writes. That is done in inference on CPUs, where the state is the run's own and nobody looks at f; everywhere else
sum and rectifier are passes of their own.
"""

import torch
from torch import nn
from torch.autograd import forward_ad

ADDITIONS = (torch.Tensor.__add__, torch.Tensor.add)


class Pending:
    """A slope f that is still an input to its last convolution; the solver's u + f runs it, in the memory of u."""

    def __init__(self, conv: nn.Conv2d, x: torch.Tensor, rectify: bool):
        self.conv, self.x, self.rectify = conv, x, rectify

    def value(self) -> torch.Tensor:
        return self.conv(self.x)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        u, pending = args if len(args) == 2 else (None, None)
        if function in ADDITIONS and isinstance(pending, Pending):
            return pending.added_to(u)
        known = [arg.value() if isinstance(arg, Pending) else arg for arg in args]
        return function(*known, **(kwargs or {}))

    def added_to(self, u: torch.Tensor):
        """u + f; rectified where the projection that comes next would do just that."""
        conv, x = self.conv, self.x
        torch.ops.mkldnn._convolution_pointwise_.binary(
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
            "relu" if self.rectify else None,
            [],
            None,
        )
        return Rectified(u) if self.rectify else u


class Rectified:
    """A state that relu_ would not change."""

    def __init__(self, state: torch.Tensor):
        self.state = state

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is not torch.relu_:
            raise TypeError(f"a rectified state can only be projected, not given to {function.__name__}.")
        return args[0].state


def rectified(conv: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    """relu(conv(x)) in one pass."""
    return torch.ops.mkldnn._convolution_pointwise(
        x, conv.weight, conv.bias, conv.padding, conv.stride, conv.dilation, conv.groups, "relu", [], None
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
    parts = branch._modules.values()
    return (
        type(u) is torch.Tensor
        and u.device.type == "cpu"
        and u.dtype == torch.float32
        and all(plain(part) for part in parts if isinstance(part, nn.modules.conv._ConvNd))
        and not any(part._forward_hooks or part._forward_pre_hooks for part in (branch, *parts))
    )


def plain(conv: nn.Module) -> bool:
    return (
        type(conv) is nn.Conv2d
        and conv.weight.dtype == torch.float32
        and conv.padding_mode == "zeros"
        and not isinstance(conv.padding, str)
    )
