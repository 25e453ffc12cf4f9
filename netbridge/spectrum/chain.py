"""A residual branch read as a chain of convolutions, channel scalings and ReLUs, the normalisations folded in.

The chain computes the same as the branch: a normalisation in evaluation mode is an affine map per channel and is folded
into the convolution before it; a normalisation that comes first, as in pre-activation blocks, stays on its own.
"""

import operator
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional as F

from netbridge.surgery.absorb import has_hooks, is_plain


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


class NotAChain(Exception):
    """A branch holds an operation other than convolution, normalisation and ReLU; the text names it."""


RELUS = {torch.relu, torch.relu_, F.relu, F.relu_, "relu", "relu_"}
PASSING = (nn.Identity, nn.Dropout, nn.Dropout2d)  # in evaluation mode


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
    return fold_norms([layer for layer in reversed(layers) if layer is not None])


def layer_of(program, node: fx.Node, dtype):
    if node.op == "call_module":
        return layer_of_module(program.get_submodule(node.target), dtype)
    if node.op in ("call_function", "call_method") and node.target in RELUS:
        return Relu()
    if node.target is operator.pos:
        return None
    raise NotAChain(f"{node.name} is neither convolution, normalisation nor ReLU")


def layer_of_module(module: nn.Module, dtype):
    if not is_plain(module):
        raise NotAChain(f"a {type(module).__name__} has hooks, a forward of its own or a parametrisation")
    if isinstance(module, PASSING):
        return None
    if type(module) is nn.ReLU:
        return Relu()
    if type(module) is nn.Conv2d and module.padding_mode == "zeros" and "weight" in module._parameters:
        return convolution_of(module, dtype)
    if type(module) is nn.BatchNorm2d and module.running_mean is not None:
        return scaling_of(module, dtype)
    raise NotAChain(f"a {type(module).__name__} is neither convolution, normalisation with fixed statistics nor ReLU")


def convolution_of(conv: nn.Conv2d, dtype) -> Convolution:
    padding = conv.padding
    if padding == "valid":
        padding = (0, 0)
    if isinstance(padding, str):
        doubled = [d * (k - 1) for d, k in zip(conv.dilation, conv.kernel_size, strict=True)]
        if any(total % 2 for total in doubled):
            raise NotAChain('a Conv2d with padding="same" and an even kernel pads unevenly')
        padding = tuple(total // 2 for total in doubled)
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
