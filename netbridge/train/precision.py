"""In what precision a training computes: autocast, the scale of the loss in float16, and CUDA's faster kernels."""

import contextlib

import torch
from torch import nn

from netbridge.train.recipes import Recipe


class Precision:
    """What a recipe's `bfloat16`, `float16`, `tf32` and `benchmark` mean on a device.

    recipe   a `Recipe`
    device   of the training
    dtype    of weights and images; only float32 computes in half precision
    """

    def __init__(self, recipe: Recipe, device: torch.device, dtype: torch.dtype):
        self.recipe, self.device = recipe, device
        self.half = half_of(recipe, device) if dtype == torch.float32 else None
        scaled = self.half == torch.float16
        # gradients in float16 vanish below 6e-8; those of a loss 65,536 times as large do not
        self.scaler = torch.amp.GradScaler(device.type) if scaled else None

    def autocast(self):
        """A context manager: within it, layers compute in half precision where the recipe wants it."""
        if self.half is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.half)

    @contextlib.contextmanager
    def kernels(self):
        """A context manager: within it, CUDA's settings are those of the recipe; behind it, what they were."""
        if self.device.type != "cuda":
            yield
            return
        cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
        before = cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark
        cudnn.allow_tf32 = matmul.allow_tf32 = self.recipe.tf32
        cudnn.benchmark = self.recipe.benchmark
        try:
            yield
        finally:
            cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark = before

    def backward(self, loss: torch.Tensor) -> None:
        """Adds the gradient of a loss, times its scale, to those of the weights."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, net: nn.Module, optimizer: torch.optim.Optimizer, clip: float) -> None:
        """One step of the optimiser. A gradient that overflowed in float16 is left out, and the scale is halved."""
        if self.scaler is not None:
            self.scaler.unscale_(optimizer)
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        if self.scaler is None:
            optimizer.step()
        else:
            self.scaler.step(optimizer)
            self.scaler.update()

    def state(self) -> dict:
        """What the next start needs, as plain values; empty where nothing is scaled."""
        return {} if self.scaler is None else self.scaler.state_dict()

    def restore(self, state: dict) -> None:
        """Go on with what `state` returned."""
        if self.scaler is not None and state:
            self.scaler.load_state_dict(state)


def half_of(recipe: Recipe, device: torch.device) -> torch.dtype | None:
    """The half precision that a recipe computes in on a device; None: in none."""
    if recipe.bfloat16 and (device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_bf16_supported())):
        return torch.bfloat16
    return torch.float16 if recipe.float16 and device.type in ("cpu", "cuda") else None
