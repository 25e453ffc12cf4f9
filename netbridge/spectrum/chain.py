"""A residual branch read as a chain of layers whose norms are known, the normalisations folded in.

The chain computes the same as the branch. Of convolutions, channel scalings and ReLUs `reduction` forms a Jacobian; of
other affine maps, activations and poolings the norm is known. A normalisation in evaluation mode is an affine map per
channel and is folded into the convolution before it; one that comes first, as in pre-activation blocks, stays on its
own.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.nn.modules import conv as convolutions
from torch.nn.modules import padding as paddings
from torch.nn.modules import pooling

from netbridge.common.preservation import independent_copy
from netbridge.layers.absorb import PASSING, has_hooks, is_plain, settle_weights


class Convolution(NamedTuple):
    weight: torch.Tensor  # (O, C / groups, kh, kw), the normalisation's scale inside
    bias: torch.Tensor | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def linear(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, self.weight, None, self.stride, self.padding, self.dilation, self.groups)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y if self.bias is None else y + self.bias.view(-1, 1, 1)

    def adjoint(self, y: torch.Tensor, size) -> torch.Tensor:
        """Apply the adjoint of `linear`, which leads to maps of height and width `size`."""
        spans = zip(size, y.shape[2:], self.stride, self.padding, self.dilation, self.weight.shape[2:], strict=True)
        left_over = [n - ((out - 1) * s - 2 * p + d * (k - 1) + 1) for n, out, s, p, d, k in spans]
        return F.conv_transpose2d(
            y, self.weight, None, self.stride, self.padding, left_over, self.groups, self.dilation
        )

    def rescale(self, scale, shift) -> "Convolution":
        """The convolution that gives scale * y + shift, per channel, where this one gives y."""
        bias = shift if self.bias is None else self.bias * scale + shift
        return self._replace(weight=self.weight * scale.view(-1, 1, 1, 1), bias=bias)


class Scaling(NamedTuple):
    """scale * x + shift per channel."""

    scale: torch.Tensor
    shift: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale.view(-1, 1, 1) + self.shift.view(-1, 1, 1)


class Relu(NamedTuple):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


class Affine(NamedTuple):
    """An affine map of another kind: a convolution with another padding, a padding, an average, a linear layer."""

    function: Callable

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Bounded(NamedTuple):
    """An activation or a pooling: its output moves at most `lipschitz` times as far as its input."""

    function: Callable
    lipschitz: float

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


LINEAR = (Convolution, Scaling, Affine)


class NotAChain(Exception):
    """A branch holds an operation whose norm is not known; the text names it."""


NEITHER = "neither an affine map, a normalisation with fixed statistics, a max-pool nor an activation of known slope"
RELUS = {torch.relu, torch.relu_, F.relu, F.relu_, "relu", "relu_"}
DROPOUTS = (*PASSING, nn.AlphaDropout, nn.FeatureAlphaDropout)  # in evaluation mode
AFFINE: tuple[type, ...] = (
    *(convolutions._ConvNd, nn.Linear, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle),
    *(paddings._ReflectionPadNd, paddings._ReplicationPadNd, paddings._CircularPadNd, paddings._ConstantPadNd),
    *(pooling._AvgPoolNd, pooling._AdaptiveAvgPoolNd),
)
GELU = 0.5 + 0.5 * math.erf(1) + math.exp(-1) / math.sqrt(math.pi)  # its slope at sqrt(2), where that is largest
SLOPES: dict[type, Callable[[Any], float]] = {  # the largest slope; where it was searched for, its last digit is raised
    nn.GELU: lambda layer: 1.12899307 if layer.approximate == "tanh" else GELU,
    nn.SiLU: lambda _: 1.09983933,
    nn.Mish: lambda _: 1.08849817,
    nn.SELU: lambda _: 1.75809935,
    nn.ELU: lambda layer: max(1.0, abs(layer.alpha)),
    nn.CELU: lambda _: 1.0,
    nn.LeakyReLU: lambda layer: max(1.0, abs(layer.negative_slope)),
    nn.PReLU: lambda layer: max(1.0, float(layer.weight.detach().abs().max())),
    nn.ReLU6: lambda _: 1.0,
    nn.Hardtanh: lambda _: 1.0,
    nn.Hardswish: lambda _: 1.5,
    nn.Tanh: lambda _: 1.0,
    nn.Sigmoid: lambda _: 0.25,
}
LAYERS: dict[Any, type] = {  # of functions and methods, the layer whose settings stand in the same order
    F.gelu: nn.GELU, F.silu: nn.SiLU, F.mish: nn.Mish, F.selu: nn.SELU, F.elu: nn.ELU, F.celu: nn.CELU,
    F.leaky_relu: nn.LeakyReLU, F.relu6: nn.ReLU6, F.hardtanh: nn.Hardtanh, F.hardswish: nn.Hardswish,
    F.max_pool2d: nn.MaxPool2d, torch.max_pool2d: nn.MaxPool2d, F.avg_pool2d: nn.AvgPool2d,
    F.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
    **dict.fromkeys((torch.tanh, F.tanh, "tanh", "tanh_"), nn.Tanh),
    **dict.fromkeys((torch.sigmoid, F.sigmoid, "sigmoid", "sigmoid_"), nn.Sigmoid),
}  # fmt: skip


def chain_of(branch: nn.Module, dtype: torch.dtype) -> list:
    """The layers of a module that is such a chain, in `dtype`."""
    if has_hooks(branch):
        raise NotAChain("it has hooks")
    try:
        program = fx.symbolic_trace(branch)
    except Exception as error:  # code that fx cannot follow may raise anything
        raise NotAChain(f"torch.fx cannot read it ({error})") from error
    nodes = [node for node in program.graph.nodes if node.op != "output"]
    return chain_between(program, nodes[0], program.graph.output_node().args[0], dtype)


def chain_between(program: fx.GraphModule, start: fx.Node, end, dtype: torch.dtype) -> list:
    """The layers that lead from one node of an fx program to another."""
    layers: list = []
    while end is not start:
        if not isinstance(end, fx.Node) or len(end.all_input_nodes) != 1:
            raise NotAChain(f"{getattr(end, 'name', end)} takes more than one map")
        layers.append(layer_of(program, end, dtype))
        end = end.all_input_nodes[0]
    return join_affine(fold_norms([layer for layer in reversed(layers) if layer is not None]))


def is_reducible(layers: list) -> bool:
    """Is a chain made of those layers alone whose Jacobian `reduction` can form?"""
    return all(isinstance(layer, (Convolution, Scaling, Relu)) for layer in layers)


def layer_of(program, node: fx.Node, dtype):
    if node.op == "call_module":
        return layer_of_module(program.get_submodule(node.target), dtype)
    settings: Any = {key: value for key, value in node.kwargs.items() if key not in ("input", "inplace")}
    if node.target in RELUS:
        return Relu()
    if node.target is operator.pos or (node.target in (F.dropout, F.dropout2d) and not settings.get("training", True)):
        return None
    if node.target is F.pad:
        return Affine(functools.partial(pad, settings=node.args[1:], options=settings))
    if node.target in LAYERS:
        return layer_of_module(LAYERS[node.target](*node.args[1:], **settings), dtype)
    raise NotAChain(f"{node.name} is {NEITHER}")


def layer_of_module(module: nn.Module, dtype):
    module = independent_copy(module)
    settle_weights(module)
    if not is_plain(module):
        raise NotAChain(f"a {type(module).__name__} has hooks, a forward of its own or a parametrisation")
    module = module.to(dtype=dtype).requires_grad_(False)
    if hasattr(module, "inplace"):
        vars(module)["inplace"] = False
    if isinstance(module, DROPOUTS):
        return None
    if type(module) is nn.ReLU:
        return Relu()
    if type(module) is nn.Conv2d and is_symmetric(module):
        return convolution_of(module, dtype)
    if type(module) is nn.BatchNorm2d and module.running_mean is not None:
        return scaling_of(module, dtype)
    if type(module) in SLOPES:
        return Bounded(module, SLOPES[type(module)](module))
    if isinstance(module, pooling._MaxPoolNd) and not module.return_indices:
        return Bounded(module, math.sqrt(overlap(module)))
    if isinstance(module, AFFINE):
        return Affine(module)
    raise NotAChain(f"a {type(module).__name__} is {NEITHER}")


def pad(x: torch.Tensor, settings, options) -> torch.Tensor:
    return F.pad(x, *settings, **options)


def overlap(pool) -> int:
    """In how many windows of a max-pool a place may lie: as often a difference there may count in the output."""
    axes = {nn.MaxPool1d: 1, nn.MaxPool2d: 2, nn.MaxPool3d: 3}[type(pool)]
    settings = (pool.kernel_size, pool.stride, pool.dilation)
    kernel, stride, dilation = ([value] * axes if isinstance(value, int) else value for value in settings)
    spans = zip(kernel, stride, dilation, strict=True)
    return math.prod(-(-k * math.gcd(s, d) // s) for k, s, d in spans)


def is_symmetric(conv: nn.Conv2d) -> bool:
    """Are there zeros around it, as many on either side?"""
    uneven = conv.padding == "same" and any(
        d * (k - 1) % 2 for d, k in zip(conv.dilation, conv.kernel_size, strict=True)
    )
    return conv.padding_mode == "zeros" and not uneven


def convolution_of(conv: nn.Conv2d, dtype) -> Convolution:
    padding: Any = {"valid": (0, 0)}.get(conv.padding, conv.padding) if isinstance(conv.padding, str) else conv.padding
    if padding == "same":
        padding = tuple(d * (k - 1) // 2 for d, k in zip(conv.dilation, conv.kernel_size, strict=True))
    weight = conv.weight.detach().to(dtype)
    bias = None if conv.bias is None else conv.bias.detach().to(dtype)
    return Convolution(weight, bias, conv.stride, padding, conv.dilation, conv.groups)


def scaling_of(norm: nn.BatchNorm2d, dtype) -> Scaling:
    statistics: Any = norm  # a normalisation without fixed statistics has been refused before
    mean, variance = statistics.running_mean.to(dtype), statistics.running_var.to(dtype)
    scale = torch.rsqrt(variance + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.detach().to(dtype)
    shift = -mean * scale
    if norm.bias is not None:
        shift = shift + norm.bias.detach().to(dtype)
    return Scaling(scale, shift)


def fold_norms(layers: list) -> list:
    """Every normalisation taken into the convolution before it."""
    result: list = []
    for layer in layers:
        if isinstance(layer, Scaling) and result and isinstance(result[-1], Convolution):
            result[-1] = result[-1].rescale(layer.scale, layer.shift)
        else:
            result.append(layer)
    return result


def join_affine(layers: list) -> list:
    """Neighbouring linear layers as one map where one of them is neither convolution nor scaling.

    So a padding belongs to the convolution behind it, and the norm of both is exact.
    """
    result: list = []
    for layer in layers:
        joins = result and isinstance(layer, LINEAR) and isinstance(result[-1], LINEAR)
        if joins and Affine in (type(layer), type(result[-1])):
            before = result.pop()
            layer = Affine(lambda x, before=before, layer=layer: layer(before(x)))
        result.append(layer)
    return result
