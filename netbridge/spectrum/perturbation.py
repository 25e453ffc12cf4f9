"""How far a perturbation can grow by Theorem 6.1 of the ASR paper, and how far it does grow.

The paper is "ASR: Attention-alike Structural Re-parameterization". Its bound is

epsilon_{t+1} <= epsilon_t (||shortcut|| + alpha_t L_t), alpha_t = max |h_t| (with tanh h may be negative), L_t the
product of the norms of the branch's layers, normalisations folded in: of a linear layer its operator norm, with its
padding; of an activation its largest slope, which is 1 for a ReLU and 1.13 for GELU; of a max-pool the root of the
number of windows that a place may lie in. The paper has ||W_t|| for L_t and 1 for the shortcut, and begins the product
of its Eq. 9 at t = 1 instead of 0. The proof takes the step size for a constant: with a live gate alpha_t is what these
images showed, and the product bounds nothing.
"""

import contextlib
import dataclasses
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from netbridge.common.batches import Samples, images_of, to_network
from netbridge.common.nested_tensors import first_tensor
from netbridge.common.preservation import preserve, unwrap
from netbridge.model.network import Network
from netbridge.spectrum.anatomy import Anatomy, anatomy
from netbridge.spectrum.autodiff import pullback, tangent, tell_in_words
from netbridge.spectrum.chain import Affine, Bounded, Convolution, Scaling
from netbridge.tracing.differentiable import widen
from netbridge.tracing.states import block_states, blocks_of
from odelab.files.saved import register
from odelab.results import Result

VECTORS = 4
ROUNDS = 300
TOLERANCE = 1e-7  # the power iteration ends when a round raises the norm by less than this share


@register
@dataclasses.dataclass(frozen=True, eq=False)
class PerturbationBound(Result, kinds={"growth": "netbridge.figures:draw_growth"}):
    """The growth of perturbations through T blocks: the bound of the theorem, and what was measured.

    `factor` (T,) is shortcut + alpha * lipschitz of each block, `bound` (T,) the product of the factors up to each
    block, `measured` (T,) the largest growth epsilon_{t+1} / epsilon_0 over images and perturbations. `live` names the
    blocks whose step size depends on the image: for these the theorem is not proved.
    """

    names: tuple[str, ...]
    alpha: np.ndarray
    lipschitz: np.ndarray
    shortcut: np.ndarray
    measured: np.ndarray
    live: tuple[str, ...]

    @property
    def factor(self) -> np.ndarray:
        return self.shortcut + self.alpha * self.lipschitz

    @property
    def bound(self) -> np.ndarray:
        return np.cumprod(self.factor)

    @property
    def proved(self) -> bool:
        return not self.live

    def table(self):
        """A row per block."""
        names = ("alpha", "lipschitz", "shortcut", "factor", "bound", "measured")
        return {"block": self.names, **{name: getattr(self, name) for name in names}}

    def __str__(self):
        lines = [f"{'block':24} {'alpha':>8} {'L':>10} {'factor':>10} {'bound':>10} {'measured':>10}"]
        rows = zip(self.names, self.alpha, self.lipschitz, self.factor, self.bound, self.measured, strict=True)
        lines += [
            f"{name:24} {alpha:8.3f}" + "".join(f" {value:10.3g}" for value in rest) for name, alpha, *rest in rows
        ]
        if self.live:
            lines.append(f"not proved: the step size of {', '.join(self.live)} depends on the image.")
        return "\n".join(lines)


def perturbation_bound(
    net: nn.Module,
    images: torch.Tensor,
    blocks=None,
    size: float = 1e-3,
    search: int = 10,
    batch_axis: int | None = None,
) -> PerturbationBound:
    """Bound how far a perturbation can grow through a network, and measure how far it does (Theorem 6.1 of ASR).

    The bound after block t is the product of ||shortcut|| + alpha L over the blocks so far: alpha is the largest |h|
    that these images showed, L the product of the norms of the branch's layers. A perturbation is followed
    through all blocks, first in a random direction, then turned towards the one that grows most.

    net         a network, ours or anybody's, whose branches are made of convolutions (with any padding, also with
                weight_norm or spectral_norm), linear layers, batch normalisations, activations, pools and dropout
    images      a batch (N, channels, height, width)
    blocks      names of the blocks in order; by default those that `nb.block_states` finds
    size        of the perturbation, relative to the norm of the state before the first block; 1e-3
    search      how many times its direction is turned towards faster growth; 10
    batch_axis  along which axis of `images` the samples stand, as in `nb.trace`

    Returns a PerturbationBound with, per block, `names`, `alpha`, `lipschitz`, `shortcut`, `factor`, `bound` and
    `measured`; `proved` is False where a step size depends on the image (`live`), for which the theorem is not proved.
    Raises ValueError where a branch has layers whose norm is not known, or the network does more than one Euler step
    per block.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> net = nb.resnet(depth=8, widths=(4, 4, 4), controller=nb.asr("se")).eval()
    >>> found = nb.perturbation_bound(net, torch.rand(2, 3, 8, 8), search=2)
    >>> found.proved, bool((found.measured <= found.bound).all())
    (True, True)
    """
    if not size > 0:
        raise ValueError(f"`size` must be positive, got {size!r}.")
    net, samples = unwrap(net), Samples(axis=batch_axis)
    images = to_network(net, images_of(images))
    with preserve(net):
        found = blocks_of(net, images, blocks, batch_axis)
        states = block_states(net, images, list(found), batch_axis)
        check_axis(samples, states, found)
        states = {name: samples.in_front(state) for name, state in states.items()}
        norms = [block_norms(name, block, widen(states[name])) for name, block in found.items()]
        measured = measured_growth(net, images, samples, states, found, size, search)
    names, alpha, lipschitz, shortcut, live = zip(*norms, strict=True)
    still = tuple(name for name, alive in zip(names, live, strict=True) if alive)
    return PerturbationBound(names, np.array(alpha), np.array(lipschitz), np.array(shortcut), measured, still)


def check_axis(samples: Samples, states: dict[str, torch.Tensor], blocks: dict[str, nn.Module]):
    """Each block must be the same function of its samples wherever they stand: its layers are looked at one by one."""
    for name, state in states.items() if samples.axis else ():
        with torch.no_grad():
            there, here = (first_tensor(blocks[name](x.clone())) for x in (state, samples.in_front(state)))
        if not torch.allclose(samples.in_front(there), here, rtol=1e-4, atol=1e-5):
            raise ValueError(f"block {name!r} mixes rows, so that the norms of its layers are not known.")


def block_norms(name: str, block: nn.Module, states: torch.Tensor):
    """Name, alpha, L, ||shortcut||, and whether the step size depends on the state."""
    parts = anatomy(block, states[:1])
    if parts.layers is None or parts.shortcut is None:
        raise ValueError(
            f"block {name!r} has no known operator norm: {parts.reason}. The bound is for branches of linear layers, "
            "normalisations with fixed statistics, max-pools and activations."
        )
    with torch.no_grad():
        lipschitz = chain_norm(parts.layers, states[:1])
        shortcut = 1.0 if parts.identity else map_norm(parts.shortcut, states[:1])
        return name, largest_step(parts, states), lipschitz, shortcut, parts.live


def largest_step(parts: Anatomy, states: torch.Tensor) -> float:
    h = 1.0 if parts.size_at is None else parts.size_at(states)
    return float(h.abs().max()) if isinstance(h, torch.Tensor) else abs(float(h))


def chain_norm(layers: list, x: torch.Tensor) -> float:
    """The product of the norms of a chain's layers at the sizes they meet."""
    product = 1.0
    for layer in layers:
        if isinstance(layer, Convolution):
            product *= operator_norm(layer, (int(x.shape[2]), int(x.shape[3])))
        elif isinstance(layer, Scaling):
            product *= float(layer.scale.abs().max())
        elif isinstance(layer, Affine):
            product *= map_norm(layer.function, x)
        elif isinstance(layer, Bounded):
            product *= layer.lipschitz
        x = layer(x)
    return product


def operator_norm(convolution: Convolution, size: tuple[int, int]) -> float:
    """||W||_2 of a convolution at the size of its input, approached from below."""
    weight = convolution.weight
    like = weight.new_empty((weight.shape[1] * convolution.groups, *size))
    return power_iteration(convolution.linear, lambda y: convolution.adjoint(y, size), like)


def map_norm(affine: Callable, x: torch.Tensor) -> float:
    """||A||_2 of an affine map of (1, ...), by the same iteration on its derivative."""
    directions = torch.cat([x] * VECTORS)
    return power_iteration(lambda v: tangent(affine, directions, v), pullback(affine, directions)[1], x[0])


def power_iteration(forward: Callable, backward: Callable, like: torch.Tensor) -> float:
    """The largest singular value of a linear map of batches, from a few vectors at once: the first alone may stall."""
    generator = torch.Generator().manual_seed(0)
    v = torch.randn((VECTORS, *like.shape), generator=generator, dtype=like.dtype).to(like.device)
    norm = 0.0
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(v.flatten(1).T).Q.T
        v = v.new_zeros(v.shape) if len(basis) < VECTORS else v
        v[: len(basis)] = basis.view(-1, *like.shape)
        image = forward(v)
        before, norm = norm, float(torch.linalg.matrix_norm(image.flatten(1), 2))
        if norm - before <= TOLERANCE * norm:
            break
        v = backward(image)
    return norm


def measured_growth(
    net, images, samples: Samples, inputs, blocks: dict[str, nn.Module], size: float, search: int
) -> np.ndarray:
    """epsilon_{t+1} / epsilon_0 after every block, the largest over images and over the perturbations tried, (T,)."""
    states = outputs(net, images, samples, blocks, None)
    check_chain(net, states, inputs)
    start = states[0].detach()
    axes = tuple(range(1, start.ndim))
    scale = size * torch.linalg.vector_norm(start, dim=axes, keepdim=True)
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(0), dtype=start.dtype).to(start)
    largest = np.zeros(len(blocks))
    for turn in range(search + 1):
        delta = scale * direction / torch.linalg.vector_norm(direction, dim=axes, keepdim=True)
        delta.requires_grad_(turn < search)
        moved = outputs(net, images, samples, blocks, delta)[1:]
        distances = [distance_of(new, old.detach()) for new, old in zip(moved, states[1:], strict=True)]
        grown = torch.stack(distances).detach() / distance_of(delta.detach(), torch.zeros_like(start))
        largest = np.maximum(largest, grown.amax(1).double().cpu().numpy())
        if turn < search:  # the gradient of the distance is the next vector of a power iteration on J'J
            with tell_in_words():
                direction = torch.autograd.grad(distances[-1].square().sum(), delta)[0]
    return largest


def distance_of(new, old) -> torch.Tensor:
    return torch.linalg.vector_norm((new - old).flatten(1), dim=1)


def outputs(net: nn.Module, images, samples: Samples, blocks: dict[str, nn.Module], delta) -> list[torch.Tensor]:
    """The state before the first block, `delta` added to it, and the state after every block; samples in front."""
    states: list[torch.Tensor] = []

    def shift(_, args):
        state = args[0].clone() if delta is None else args[0] + samples.in_place(delta)
        states.append(samples.in_front(state))
        return (state.clone(), *args[1:])

    with contextlib.ExitStack() as stack, torch.set_grad_enabled(delta is not None and delta.requires_grad):
        own = [module for module in net.modules() if isinstance(module, Network)]
        if own:
            stack.callback(own[0].stages[0].register_forward_pre_hook(shift).remove)

            def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
                states.append(u_new.clone())
                return carry

            stack.enter_context(own[0].observed(record))
        else:
            for place, block in enumerate(blocks.values()):
                if place == 0:
                    stack.callback(block.register_forward_pre_hook(shift).remove)
                leave = block.register_forward_hook(
                    lambda _, args, out: states.append(samples.in_front(first_tensor(out).clone()))
                )
                stack.callback(leave.remove)
        with tell_in_words():
            net(images.clone())  # a network may change what it is given
    return states


def check_chain(net: nn.Module, states: list[torch.Tensor], inputs: dict[str, torch.Tensor]):
    """Each block must begin where the one before it ended, and make one Euler step."""
    own = [stage for module in net.modules() if isinstance(module, Network) for stage in module.stages]
    if len(states) != len(inputs) + 1 or any(stage.method.stages > 1 or stage.solver for stage in own):
        raise ValueError("`net` does not make one Euler step per block, and the theorem speaks of nothing else.")
    for (name, state), before in zip(inputs.items(), states[:-1], strict=True):
        if state.shape != before.shape or not torch.allclose(state, before, rtol=1e-4, atol=1e-5):
            raise ValueError(
                f"`net` does something else just before block {name!r}: the growth from block to block is not the "
                "product of the blocks' own."
            )
