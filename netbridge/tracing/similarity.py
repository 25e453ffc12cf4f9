"""How alike are the trajectories of two networks, whose features share no coordinates? Linear CKA and Gram matrices.

Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019, with the unbiased
estimate of HSIC (Song et al. 2012) as Nguyen, Raghu and Kornblith 2021 have it: the usual one calls any two networks
alike when there are fewer images than features.
"""

import contextlib

import numpy as np
import torch
from torch import nn

from netbridge.common.batches import Samples, images_of, to_network
from netbridge.common.nested_tensors import first_tensor
from netbridge.common.preservation import preserve
from netbridge.recording.record import Record
from netbridge.tracing.states import blocks_of

FEWEST = 4  # images that the unbiased estimate needs


def cka(x, y, grams: bool = False) -> float:
    """How alike two networks represent the same images: linear CKA, 1 for the same up to rotation and scale.

    It compares which images lie near which, and no feature with any other, so that the two may differ in number and
    order. The estimate is unbiased: of unrelated representations it is near 0, and may fall below it.

    x, y    arrays or tensors (N, ...) of the same N images, at least 4; what follows N are features
    grams   True: `x` and `y` are Gram matrices (N, N) already, such as `nb.state_grams` returns

    Returns the similarity, a number that is at most 1; NaN where one of them does not tell the images apart. Raises
    ValueError where the two are not of the same images.

    >>> import torch, netbridge as nb
    >>> _ = torch.manual_seed(0)
    >>> x, rotation = torch.randn(20, 3), torch.linalg.qr(torch.randn(3, 3)).Q
    >>> round(nb.cka(x, 5 * x @ rotation), 6), abs(nb.cka(x, torch.randn(20, 3))) < 0.3
    (1.0, True)
    """
    k, l_ = (as_gram(name, value, grams) for name, value in (("x", x), ("y", y)))
    if len(k) != len(l_):
        raise ValueError(f"`y` must be of the same images as `x`, {len(k)} of them, got {len(l_)}.")
    rounding = [len(k) * np.finfo(float).eps * float(np.abs(gram).max()) for gram in (k, l_)]
    k, l_ = centre(k), centre(l_)
    # the unbiased estimates of HSIC (Song et al. 2012) without their common factor 1 / (N (N - 3))
    lengths = [float(np.linalg.norm(gram)) for gram in (k, l_)]
    if any(length <= len(k) * least for length, least in zip(lengths, rounding, strict=True)):
        return float("nan")
    return float((k * l_).sum() / (lengths[0] * lengths[1]))


def as_gram(name: str, value, grams: bool) -> np.ndarray:
    """Inner products of all pairs of images, in double precision."""
    rows = torch.as_tensor(value).detach().cpu().double().numpy()
    if len(rows) < FEWEST or (grams and rows.shape != (len(rows), len(rows))):
        what = "a square Gram matrix" if grams else "an array (N, ...)"
        raise ValueError(f"`{name}` must be {what} of at least {FEWEST} images, got shape {rows.shape}.")
    if grams:
        return rows
    rows = rows.reshape(len(rows), -1)
    return rows @ rows.T


def centre(gram: np.ndarray) -> np.ndarray:
    """U-centred (Székely and Rizzo 2014): free of the images' means, and of each image with itself."""
    n = len(gram)
    gram = gram - np.diag(np.diag(gram))
    rows = gram.sum(0) / (n - 2)
    gram = gram - rows - rows[:, None] + gram.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(gram, 0.0)
    return gram


def profile_distance(record: Record, other: Record, scaled: bool = False) -> np.ndarray:
    """How far two networks' indices lie apart, |log NSI - log NSI'|, for every image and block, (N, T).

    No feature of one is compared with any of the other: only how far each moves at its step, relative to where it is.
    NaN where one of the indices is not defined. Raises ValueError for records of other images or blocks.

    record, other   of the same images, from networks with the same number of blocks
    scaled          divide each network's indices by its scale, their mean over counted blocks and images: what is left
                    does not see that the branches of one network are so many times larger than those of the other

    >>> import numpy as np, netbridge as nb
    >>> from netbridge.tracing.similarity import profile_distance
    >>> one = nb.Record(np.array([[0.5, 1.0]]), [0, 0], [True, False], ("a", "b"), "slope")
    >>> profile_distance(one, nb.Record(2 * one.nsi, one.stage, one.first, one.names, "slope"))
    array([[0.69314718, 0.69314718]])
    >>> twice = nb.Record(2 * one.nsi, one.stage, one.first, one.names, "slope")
    >>> profile_distance(one, twice, scaled=True)
    array([[0., 0.]])
    """
    if record.nsi.shape != other.nsi.shape or record.of != other.of:
        raise ValueError(f"`other` must be of the same images, blocks and kind as {record}, got {other}.")
    scales = [one.nsi[:, ~np.asarray(one.first)].mean() if scaled else 1.0 for one in (record, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        here, there = (np.log(one.nsi / scale) for one, scale in zip((record, other), scales, strict=True))
        return np.abs(here - there)


def state_grams(
    net: nn.Module, images: torch.Tensor, blocks=None, batch_axis: int | None = None
) -> dict[str, np.ndarray]:
    """The state behind every residual block as a Gram matrix: the inner products of all pairs of these images.

    What `nb.cka` needs of a network, in N x N numbers a block instead of all its feature maps. The diagonal holds the
    squared norms of the states. The network is run in evaluation mode and is afterwards what it was before.

    net         the network, ours or anybody's
    images      a batch of images (N, ...), which pass through the network together
    blocks      names of blocks, modules, or a class of modules, where the blocks are not found by themselves
    batch_axis  along which axis of `images` the samples stand, as in `nb.trace`

    Returns the matrices (N, N) by the blocks' names, in the order of the blocks. Raises ValueError where no residual
    block can be seen.

    >>> import torch, netbridge as nb
    >>> one, other, images = nb.resnet(8), nb.resnet(8), torch.randn(6, 3, 16, 16)
    >>> here, there = nb.state_grams(one, images), nb.state_grams(other, images)
    >>> {name: gram.shape for name, gram in here.items()}
    {'stages.0.blocks.0': (6, 6), 'stages.1.blocks.0': (6, 6), 'stages.2.blocks.0': (6, 6)}
    >>> all(nb.cka(here[name], there[name], grams=True) < 1 for name in here)
    True
    """
    grams: dict[str, np.ndarray] = {}
    samples = Samples(axis=batch_axis)

    def leave(name, out):
        rows = samples.in_front(first_tensor(out)).flatten(1)
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        grams[name] = (rows @ rows.T).cpu().double().numpy()

    with preserve(net), torch.no_grad(), contextlib.ExitStack() as stack:
        images = to_network(net, images_of(images)).clone()  # a network may change what it is given
        for name, block in blocks_of(net, images, blocks, batch_axis).items():
            hook = block.register_forward_hook(lambda _, inputs, out, name=name: leave(name, out))
            stack.callback(hook.remove)
        net(images)
    return grams
