"""A network: a stem, stages whose blocks are steps of `odelab`'s solver, a head."""

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.layers import own as layers
from netbridge.model import continuous
from netbridge.model.block import Block
from netbridge.model.solve import Layer, Memory, Observation, fixed_tableau
from odelab.methods.tableau import Method

WEIGHTS = ("shared", "interpolated")
LIGHTEST = 1.5  # in images that are meant to lie in [0, 1], which resizing may exceed a little


class Stem(nn.Module):
    """The first convolution: 7x7 with stride 2 ("imagenet") or 3x3 ("cifar", "cifar-pooled"), with norm and ReLU.

    A max-pool follows in "imagenet" and "cifar-pooled". Before pre-activation blocks the convolution has no norm.
    """

    pairs = (("conv", "bn"),)

    def __init__(
        self, channels_in: int, width: int, kind: str, post_activation: bool, norm: str = "batch", convolution="plain"
    ):
        super().__init__()
        kernel, stride = (7, 2) if kind == "imagenet" else (3, 1)
        self.conv = layers.convolution(convolution, channels_in, width, kernel, stride, norm)
        self.bn = layers.behind(self.conv, norm, width) if post_activation else nn.Identity()
        self.pooled, self.post_activation = kind != "cifar", post_activation

    def forward(self, x):
        x = self.bn(self.conv(x))
        if self.post_activation:
            x = torch.relu_(x)
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1) if self.pooled else x


class Head(nn.Module):
    """Global average and a linear map; after pre-activation blocks a normalisation and a ReLU come first."""

    def __init__(self, width: int, num_classes: int, post_activation: bool = True, norm: str = "batch"):
        super().__init__()
        self.bn = nn.Identity() if post_activation else layers.normalisation(norm, width)
        self.fc = nn.Linear(width, num_classes)
        self.post_activation = post_activation

    def forward(self, x):
        if not self.post_activation:
            x = torch.relu_(self.bn(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Stage(nn.Module):
    """Blocks of one shape, one after the other: u' = h f(u; theta(t)) over as many layers as there are blocks.

    The first block may change the shape; it is then a plain Euler step from its shortcut's output.

    blocks        the blocks, in order
    number        the stage's number within the network, from 0
    method        the explicit method, an `odelab` Method: EULER is the usual residual network
    depth_factor  steps per layer; 2 halves every step
    weights       "shared": a block's parameters hold for the whole of its step; "interpolated": they run linearly from
                  one block to the next, so that RK4 at t + 1/2 sees half of each
    solver        the name of a torchdiffeq solver, which makes the stage an ODE-net: the projection is then applied
                  once, at its end, and only a block that changes the shape is called, so hooks on the others see
                  nothing; None: `method` takes the steps
    tolerance     the ODE-net's relative and absolute tolerance
    entrance      layers before the first block that are no step, where the shape changes without a shortcut; None: none

    >>> import torch, netbridge as nb, odelab as ol
    >>> blocks = [nb.Block(nb.Branch(4, 4, 1, bottleneck=False, post_activation=True), None) for _ in range(2)]
    >>> stage, x = nb.Stage(blocks, 0, ol.EULER).eval(), torch.rand(1, 4, 8, 8)
    >>> bool(torch.equal(stage(x), blocks[1](blocks[0](x))))
    True
    """

    def __init__(
        self,
        blocks: list[Block],
        number: int,
        method: Method,
        depth_factor: int = 1,
        weights: str = "shared",
        solver: str | None = None,
        tolerance: float = 1e-3,
        entrance: nn.Module | None = None,
    ):
        super().__init__()
        self.entrance = entrance
        self.shared = nn.ModuleDict()  # controllers that serve several blocks
        self.blocks = nn.ModuleList(blocks)
        self.number = number
        self.method, self.depth_factor, self.weights = method, depth_factor, weights
        self.solver, self.tolerance = solver, tolerance
        self.tableau = fixed_tableau(method, frozen=weights == "shared")
        self.observation: Observation | None = None

    @property
    def between_blocks(self) -> bool:
        """Are slopes evaluated with parameters that are interpolated between two blocks?"""
        on_blocks_only = self.method.stages == 1 and self.depth_factor == 1 and self.solver is None
        return self.weights == "interpolated" and not on_blocks_only

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory: Any = Memory(self.number, None)
        slope_at = None if self.weights == "shared" else self.slope_between
        if self.entrance is not None:
            x = self.entrance(x)
        for number, block in enumerate(self.blocks):
            if self.solver is not None and not block.opens:
                return continuous.run_ode_net(self, memory, number, x)
            layer = Layer(number, memory, self.tableau, self.depth_factor, slope_at, self.observation)
            x = block(x, layer=layer)
            memory = layer.after
        return x

    def slope_between(self, t, u):
        return continuous.slope_between(self.blocks, float(t), u)

    def extra_repr(self):
        if self.solver is not None:
            return f"{self.solver}, {self.weights} weights"
        return f"{self.method.name}, {self.depth_factor} steps per layer, {self.weights} weights"


class Configured(nn.Module):
    """A network that a plain dictionary rebuilds, so that `nb.save` and a training know what it is.

    config  the dictionary; its `family` says which function of `netbridge.model` builds it, without one `nb.resnet`
    """

    def __init__(self, config: dict):
        super().__init__()
        self.config = config
        self.normalisation: dict | None = None
        self.about: dict = {}

    def __prepare_scriptable__(self):
        raise TypeError(
            f"a {type(self).__name__} of netbridge takes its steps in Python, which torch.jit.script does not read; "
            "torch.export.export, torch.compile and torch.jit.trace make programs of it."
        )

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        """What a notebook shows of a network that is the last line of a cell; `print` shows its layers."""
        family, gates = self.config.get("family", "resnet"), self.config["controllers"]
        kinds = " and ".join(dict.fromkeys(map(str, gates)))
        count = sum(parameter.numel() for parameter in self.parameters())
        scored = f", test accuracy {self.about['test_accuracy']:.2%}" if "test_accuracy" in self.about else ""
        printer.text(f"{type(self).__name__}({family} of {len(gates)} {kinds} blocks, {count:,} parameters{scored})")

    def check_images(self, x: torch.Tensor, name: str = "x") -> None:
        """Raises ValueError for anything but images with as many channels as the network takes."""
        channels = self.config["in_channels"]
        if not torch.jit.is_tracing() and (x.ndim != 4 or x.shape[1] != channels):
            behind = (
                f" Channels are axis 1: {name}.permute(0, 3, 1, 2)." if x.ndim == 4 and x.shape[3] == channels else ""
            )
            raise ValueError(
                f"`{name}` must be images (N, {channels}, height, width), got shape {tuple(x.shape)}.{behind}"
            )

    def normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1] as this network was trained to see them; bytes from 0 to 255 are refused."""
        if not isinstance(images, torch.Tensor):
            raise TypeError(
                f"`images` must be a tensor, got {type(images).__name__}; of an array torch.from_numpy(...)."
            )
        self.check_images(images, "images")
        if not images.is_floating_point() or (images.numel() and images.max() > LIGHTEST):
            raise ValueError(
                f"`images` must be numbers in [0, 1], got {images.dtype} up to {images.max().item():.3g}; of bytes "
                "they are images.float() / 255."
            )
        if self.normalisation is None:
            return images
        mean, std = (images.new_tensor(self.normalisation[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
        return (images - mean) / std


class Network(Configured):
    """A residual network of netbridge; `nb.resnet`, `nb.mobilenet`, `nb.vit`, `nb.load` and `nb.load_foreign` make one.

    stem    the layers before the first stage
    stages  a list of `nb.Stage`
    head    the layers behind the last one
    config  the plain dictionary that rebuilds the network; `nb.save` writes it

    Further attributes: `normalisation`, {"mean", "std"} per channel of the images it was trained on, or None; `about`,
    any record that travels with it through `nb.save` and `nb.load`; `blocks` and `block_names`, over all stages.

    >>> import torch, netbridge as nb
    >>> net = nb.resnet(14)
    >>> net(torch.rand(2, 3, 32, 32)).shape, len(net.stages), net.block_names[2]
    (torch.Size([2, 10]), 3, 'stages.1.blocks.0')
    """

    def __init__(self, stem: nn.Module, stages: list[Stage], head: nn.Module, config: dict):
        super().__init__(config)
        self.stem: Any = stem
        self.stages: Any = nn.ModuleList(stages)  # whose elements are modules of any kind to a type checker
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.check_images(x)
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x)

    @property
    def blocks(self) -> list:
        """All blocks in the order they act, whatever their stage."""
        return [block for stage in self.stages for block in stage.blocks]

    @property
    def block_names(self) -> list[str]:
        """The blocks' names within the network, in the order of `blocks`."""
        return [f"stages.{s}.blocks.{b}" for s, stage in enumerate(self.stages) for b in range(len(stage.blocks))]

    @contextlib.contextmanager
    def observed(self, record, carry=None, step=None):
        """A context manager: within it, every step of a forward pass calls `record` as `odelab.core.integrate` does.

        It yields an `Observation`, whose `carry` is what `record` has returned so far.

        record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new) -> carry, where memory.stage is the stage's number
        and t the layer within it. For a block that opens a stage, u is the output of its
        shortcut. No tensor is overwritten while a pass is observed, unless a given `step` does so (see
        `solve.Observation`). A step of an ODE-net is the increment of the state over one layer.
        """
        before = [stage.observation for stage in self.stages]
        observation = Observation(record, carry, step)
        for stage in self.stages:
            stage.observation = observation
        try:
            yield observation
        finally:
            for stage, old in zip(self.stages, before, strict=True):
                stage.observation = old
