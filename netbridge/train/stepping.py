"""One step of training: the batch in parts, its mixtures, the gradient where the recipe wants it, and what is averaged.

A batch is cut into equal parts, each normalised on its own. Processes take turns with them, so the number of parts, and
not that of processes, says what is computed.
"""

import contextlib

import torch
from torch import nn

from netbridge.data.datasets import Dataset
from netbridge.data.pictures import Pictures
from netbridge.model.network import Configured
from netbridge.step_sizes.base import Controller
from netbridge.train import distributed
from netbridge.train.augment import shares
from netbridge.train.mixing import Mixing
from netbridge.train.precision import Precision
from netbridge.train.random_depth import RandomDepth
from netbridge.train.recipes import Recipe

LOOKAHEAD_EVERY, LOOKAHEAD_DECAY = 5, 0.95**5  # steps; Jordan 2024, Section 3.4


class Stepper:
    """Takes the steps of one training.

    net        the network, on its device
    data       what it is trained on, for messages
    recipe     a `Recipe`
    seed       of everything that is drawn
    parts      parts of a batch, over all processes
    dtype      of weights and images
    precision  what is computed in
    compiled   pass the network through torch.compile
    """

    ours: type[nn.Module] = Configured  # networks of which every parameter has a part in every pass

    def __init__(
        self,
        net: nn.Module,
        data: Dataset | Pictures,
        recipe: Recipe,
        seed: int,
        parts: int,
        dtype: torch.dtype,
        precision: Precision,
        compiled: bool = False,
    ):
        self.net, self.data, self.recipe, self.seed = net, data, recipe, seed
        self.dtype, self.precision = dtype, precision
        if compiled and recipe.drop_path:
            raise ValueError("`compiled` cannot go with a recipe's `drop_path`, whose step sizes differ every time.")
        self.depth = RandomDepth(net, recipe.drop_path) if recipe.drop_path else None
        self.share_out(parts)
        all_used = isinstance(net, self.ours)
        self.forward = distributed.wrap(torch.compile(net) if compiled else net, all_used)  # type: ignore[arg-type]
        self.optimizer = make_optimizer(net, recipe)
        self.average_from_here()

    def average_from_here(self) -> None:
        """Begin the averages of the weights with the network as it is."""
        averaged = averageable(self.net) if self.recipe.average or self.recipe.ema else []
        self.slow = [x.detach().clone() for x in averaged]

    def share_out(self, parts: int) -> None:
        """Cut batches into so many parts; this process takes every `world`-th of them."""
        self.parts = parts
        self.own = shares(self.recipe.batch, parts)[distributed.rank() :: distributed.world()]

    def step(self, images, labels, epoch: int, number: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Step `number` of an epoch of `steps`: (loss, right answers) of this process.

        The mean of the losses over the processes is that of the batch.
        """
        count = epoch * steps + number
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(count, steps)
        height, width = images.shape[2:]
        mixing = Mixing(self.recipe, self.seed, epoch, number, (height, width))
        factors = self.depth.draw_factors(self.recipe.batch, self.seed, epoch, number) if self.depth else None
        found = self.gradient(images, labels, mixing, factors)
        if self.recipe.sam:
            self.gradient_nearby(images, labels, mixing, factors)
        self.precision.step(self.net, self.optimizer, self.recipe.clip)
        distributed.average_buffers(self.net, len(self.own) / self.parts)
        self.average(count, steps)
        return found

    def gradient(self, images, labels, mixing: Mixing, factors) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradient of the whole batch, in every process; (loss, right answers) of this one's parts.

        Each part starts from the same buffers, which are then averaged over the parts, as with one process per part.
        """
        self.optimizer.zero_grad()
        several = len(self.own) > 1
        before = {name: x.clone() for name, x in self.net.named_buffers()} if several else {}
        after = {name: torch.zeros_like(x) for name, x in before.items() if x.is_floating_point()}
        loss, hits = torch.zeros(2, device=images.device)
        length = self.recipe.batch // self.parts
        for place, rows in enumerate(self.own):
            if several:
                set_buffers(self.net, before)
            part = slice(place * length, (place + 1) * length)
            last = place == len(self.own) - 1
            with contextlib.nullcontext() if last else distributed.alone(self.forward):
                part_loss, part_hits = self.backward(images[part], labels[part], mixing, rows, factors)
            loss, hits = loss + part_loss, hits + part_hits
            if several:
                for name, buffer in self.net.named_buffers():
                    if name in after:
                        after[name].add_(buffer, alpha=1 / len(self.own))
        if several:
            set_buffers(self.net, after)
        return loss, hits

    def backward(self, images, labels, mixing: Mixing, rows: slice, factors) -> tuple[torch.Tensor, torch.Tensor]:
        """One part's share of the gradient; `rows` are its places in the batch."""
        images, targets = mixing(images, labels, rows)
        acting = self.depth.acting(factors[:, rows]) if self.depth is not None else contextlib.nullcontext()
        with acting:
            with self.precision.autocast():
                logits = self.forward(images)
            check_logits(logits, labels, self.data)
            loss = targets.loss(logits.to(self.dtype), self.recipe.smoothing)
            loss = loss / (self.parts / distributed.world())
            self.precision.backward(loss)
        return loss.detach(), targets.hits(logits.detach())

    def gradient_nearby(self, images, labels, mixing: Mixing, factors) -> None:
        """Sharpness-aware minimisation: the gradient at the weights + sam * gradient / its length, at the weights."""
        weights: list[torch.Tensor] = [x for x in self.net.parameters() if x.grad is not None]
        here = [x.detach().clone() for x in (*weights, *self.net.buffers())]
        with torch.no_grad():
            slopes = [x.grad for x in weights if x.grad is not None]
            length = torch.stack([x.norm() for x in slopes]).norm()
            torch._foreach_add_(weights, slopes, alpha=self.recipe.sam / max(float(length), 1e-12))
        self.gradient(images, labels, mixing, factors)
        with torch.no_grad():
            for x, old in zip((*weights, *self.net.buffers()), here, strict=True):
                x.copy_(old)

    @torch.no_grad()
    def average(self, count: int, steps: int) -> None:
        """Updates lookahead and the exponential mean after a step; `count` steps of the whole training came before it.

        Lookahead (Zhang et al. 2019; Jordan 2024, 3.4): every 5 steps slow += (1 - decay) (fast - slow), then fast =
        slow; decay = 0.95**5 * progress**3, with `progress` from 0 to 1 over the training. While few steps n are
        done, the exponential mean has a smaller decay, min(ema, (1 + n) / (10 + n)).
        """
        if self.recipe.average and (count + 1) % LOOKAHEAD_EVERY == 0:
            progress = (count + 1) / (self.recipe.epochs * steps)
            fast = averageable(self.net)
            torch._foreach_lerp_(self.slow, fast, 1 - LOOKAHEAD_DECAY * progress**3)
            torch._foreach_copy_(fast, self.slow)
        if self.recipe.ema:
            decay = min(self.recipe.ema, (1 + count) / (10 + count))
            torch._foreach_lerp_(self.slow, averageable(self.net), 1 - decay)

    @torch.no_grad()
    def finish(self) -> None:
        """The averaged weights are the result."""
        if self.slow:
            torch._foreach_copy_(averageable(self.net), self.slow)

    @contextlib.contextmanager
    def tested_weights(self):
        """A context manager: within it the network has the weights that are tested; with `ema`, those of the mean."""
        if not self.recipe.ema:
            yield
            return
        kept = [x.detach().clone() for x in averageable(self.net)]
        self.finish()
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(averageable(self.net), kept)


@torch.no_grad()
def set_buffers(net: nn.Module, values: dict[str, torch.Tensor]) -> None:
    """Gives buffers these values, by name: a forward pass may have put other tensors in their places."""
    for name, buffer in net.named_buffers():
        if name in values:
            buffer.copy_(values[name])


def averageable(net: nn.Module) -> list[torch.Tensor]:
    """Everything of a network that can be averaged."""
    return [x for x in (*net.parameters(), *net.buffers()) if x.is_floating_point()]


def make_optimizer(net: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimiser, with what shall not decay in a group of its own."""
    parameters = [x for x in net.parameters() if x.requires_grad]
    groups: list[dict] = [{"params": parameters}]
    gates = set() if recipe.decay_gates else {id(getattr(m, name)) for m in net.modules() for name in scales_of(m)}
    if not recipe.decay_all or gates:
        decaying = [x for x in parameters if (recipe.decay_all or x.ndim > 1) and id(x) not in gates]
        known = set(map(id, decaying))
        others = [x for x in parameters if id(x) not in known]
        groups = [{"params": decaying}, {"params": others, "weight_decay": 0.0}]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=recipe.lr, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        groups, recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay, nesterov=recipe.nesterov
    )


def scales_of(module: nn.Module) -> tuple[str, ...]:
    """The names of a controller's parameters that are scales."""
    return module.scales if isinstance(module, Controller) else ()


def check_logits(logits, labels: torch.Tensor, data: Dataset | Pictures) -> None:
    if not torch.is_tensor(logits) or logits.ndim != 2 or len(logits) != len(labels):
        shape = f"shape {tuple(logits.shape)}" if torch.is_tensor(logits) else type(logits).__name__
        raise TypeError(
            f"`net` must return logits (N, classes); for {len(labels)} images it returned {shape}. Wrap it in a module "
            "that does."
        )
    if logits.shape[1] != len(data.names):
        raise ValueError(
            f"`net` has {logits.shape[1]} outputs, and `data` ({data.name}) has {len(data.names)} classes; "
            "a network needs one output for every class, and data that lack some classes need the names of all."
        )
