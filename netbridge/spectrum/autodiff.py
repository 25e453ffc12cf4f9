"""Jacobians of any map of maps by automatic differentiation, where a block cannot be reduced.

`torch.func.linearize` would save a pass per product, but it refuses the in-place operations that residual blocks use.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import odelab
from netbridge.common.preservation import keep_generators
from odelab import JacobianOperator

FULL = 1024  # "auto" forms the whole Jacobian up to this size
LARGEST = 4 * 2**30  # bytes of a Jacobian formed whole
PORTION = 64  # directions differentiated at a time
UNDIFFERENTIABLE = (  # what torch says of operations that have no derivative, forwards or backwards
    "modified by an inplace operation", "autograd.Function", "forward AD", "don't support automatic differentiation",
    "mutate a captured Tensor",
)  # fmt: skip


def differentiated_spectrum(function: Callable, x, projected: bool, values: str, zero_tolerance, k, conditions=True):
    """Singular values where `function` changes the shape of x (1, ...), else eigenvalues.

    The outputs that a final ReLU holds at zero (`projected`) are exact zeros of the spectrum, which Arnoldi would miss.
    """
    with torch.no_grad():
        y = function(x.clone())
    everything = torch.arange(x.numel())
    known: tuple[tuple[float, int], ...]
    if y.shape != x.shape:
        if y.numel() == x.numel():
            raise ValueError(
                f"`block` maps {tuple(x.shape[1:])} to {tuple(y.shape[1:])}: a Jacobian between different spaces has "
                "no eigenvalues, even where both have the same number of units."
            )
        alive, known, inputs = torch.arange(y.numel()), (), everything
    else:
        alive = (y > 0).flatten().cpu().nonzero()[:, 0] if projected else everything
        known, inputs = ((0.0, y.numel() - len(alive)),), alive
    if values == "full" or not len(alive) or (values == "auto" and max(len(alive), len(inputs)) <= FULL):
        matrix = jacobian(function, x, alive, everything)  # dead outputs have zero rows, dead inputs count in its norm
        frobenius = float(torch.linalg.matrix_norm(matrix))
        matrix = matrix[:, inputs]
        return odelab.spectrum(matrix, "full", zero_tolerance, k, known, frobenius=frobenius, conditions=conditions)
    operator = jacobian_operator(function, x, alive, inputs)
    return odelab.spectrum(operator, "extremes", zero_tolerance, k, known, conditions=conditions)


def jacobian_operator(function: Callable, x, rows=None, columns=None) -> JacobianOperator:
    """v -> J v and w -> J' w of a map of (1, ...) at x, between some of its units or all of them."""
    begin = functools.cache(lambda: pullback(function, x))
    if rows is None:
        with torch.no_grad(), exact_attention():
            rows = torch.arange(function(x.clone()).numel())
    columns = torch.arange(x.numel()) if columns is None else columns

    def embed(v, where, like):
        units = x.new_zeros(like.numel())
        units[where] = torch.as_tensor(np.ravel(v), dtype=x.dtype, device=x.device)
        return units.view(like.shape)

    def forward(v):
        return tangent(function, x, embed(v, columns, x)).flatten()[rows].detach().cpu().numpy()

    def backward(w):
        with exact_attention():
            output, pull = begin()
            return pull(embed(w, rows, output)).flatten()[columns].cpu().numpy()

    name = str(x.dtype).removeprefix("torch.")
    return JacobianOperator((len(rows), len(columns)), forward, backward, dtype=name)


def jacobian(function: Callable, x, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """The matrix between these units, some directions at a time."""
    size = x.element_size() * len(rows) * len(columns)
    if size > LARGEST:
        raise ValueError(
            f'`values` = "full" would form a Jacobian of {len(rows)} x {len(columns)} ({size / 2**30:.0f} GiB): this '
            'block is not made of ReLUs alone and cannot be reduced; use values="extremes".'
        )

    def push(v):
        return tangent(function, x, v.view(x.shape)).flatten()

    matrix = x.new_empty((len(rows), len(columns)))
    for start in range(0, len(columns), PORTION):
        units = columns[start : start + PORTION].to(x.device)
        directions = nn.functional.one_hot(units, x.numel()).to(x.dtype)
        found = torch.func.vmap(push, randomness="same")(directions)  # numbers drawn, and not used, are no matter
        matrix[:, start : start + PORTION] = found.T[rows].detach()
    return matrix


def tangent(function: Callable, x: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The derivative of `function` at x in a direction, by forward differentiation."""
    prepare()
    with exact_attention(), keep_generators(), tell_in_words():
        return torch.func.jvp(function, (x,), (direction,))[1]


def pullback(function: Callable, x) -> tuple[torch.Tensor, Callable]:
    """The value of `function` at x, and its derivative from the other side: w -> J' w, or of many w at once.

    By torch's plain reverse differentiation: `torch.func.vjp` would load the compiler, most of a second, and would
    write down the derivative of every product as well.
    """
    with torch.enable_grad(), keep_generators(), tell_in_words():
        start = x.detach().requires_grad_()
        output = function(start.clone())  # the function may change its argument in place

    def pull(w, many: bool = False):
        if not output.requires_grad:  # it does not depend on x
            return x.new_zeros((len(w), *x.shape) if many else x.shape)
        options = {"retain_graph": True, "materialize_grads": True, "is_grads_batched": many}
        with tell_in_words():
            return torch.autograd.grad(output, start, w, **options)[0]

    return output.detach(), pull


@contextlib.contextmanager
def tell_in_words():
    """A context manager: what torch cannot differentiate is refused as something about the block."""
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:
        if not any(word in str(error) for word in UNDIFFERENTIABLE):
            raise
        raise ValueError(
            f"`block` is written so that torch cannot differentiate it: {str(error).partition('. ')[0]}. "
            "Replace this operation by one that it can."
        ) from error


@contextlib.contextmanager
def exact_attention():
    """Attention written out: torch's fused kernels, and its shortcut for whole layers, have no forward derivative."""
    shortcut = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(shortcut)


@functools.cache
def prepare():
    """Set up torch's forward differentiation once; its own set-up calls something it has deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.func.jvp(torch.sin, (torch.zeros(1),), (torch.ones(1),))
