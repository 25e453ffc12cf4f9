"""Published weights of well-known ResNets, by a map of their keys to ours.

Read with `weights_only`: a file that asks for more than tensors is refused.
"""

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from netbridge.checkpoint import check_tensors
from netbridge.common.preservation import preserve, unwrap
from netbridge.model.network import Network
from netbridge.model.resnet import assemble

# What each family of published weights was trained to see.
IMAGENET_NORMALISATION = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
CIFAR_NORMALISATION = {"mean": [0.4914, 0.4822, 0.4465], "std": [0.2023, 0.1994, 0.2010]}

BLOCK = re.compile(r"layer(\d+)\.(\d+)\.(conv\d|bn\d|downsample|shortcut)\.(.+)")
SAME_OUTPUTS = 1e-3  # relative to the largest output: more than rounding in single precision
OUTSIDE = {"conv1": "stem.conv", "bn1": "stem.bn", "linear": "head.fc", "fc": "head.fc"}


def load_foreign(source, normalisation: dict | None = None, stem: str | None = None) -> Network:
    """Someone else's trained ResNet as one of ours, for evaluation, its normalisation in `net.normalisation`.

    Post-activation ResNets with the usual names are known: conv1, bn1, layer1.0.conv1 ..., with `linear` or `fc`, and
    shortcuts of option A (no weights) or projections named `downsample` or `shortcut`: akamaster's, kuangliu's and
    chenyaofo's CIFAR networks, torchvision's.

    source         a file of weights (.pt, .pth, .th, .safetensors), a state_dict, or the module itself. Only a module
                   shows what it computes, and its outputs are compared with ours; weights are read as torchvision's,
                   with the stride of a bottleneck in its 3x3 convolution, or as akamaster's, with zeros on both sides
    normalisation  {"mean": [...], "std": [...]} of the images it was trained on; default: what its family uses
    stem           "imagenet" (7x7 and max-pool), "cifar" (3x3), or "cifar-pooled" (3x3 and max-pool). Weights do not
                   tell the last two apart: a module does; for weights the default is "cifar", with a warning where the
                   names are those of networks that may pool

    Returns the network in evaluation mode. Raises FileNotFoundError, or a ValueError that says what is not known here:
    grouped (ResNeXt) and wide bottlenecks, other names, a module that computes something else with these weights, a
    file that is damaged or asks for more than tensors.

    >>> import torch
    >>> import netbridge as nb
    >>> weights = {"conv1.weight": torch.zeros(4, 3, 3, 3), "linear.weight": torch.zeros(10, 4)}
    >>> nb.load_foreign(weights)
    Traceback (most recent call last):
    ...
    ValueError: `source`: no ResNet that is known here. Looked for conv1, bn1, layer1.0.conv1 and linear or fc; ...
    """
    if isinstance(source, nn.Module):
        source = unwrap(source)
        place, loaded, stem = "`source`", source.state_dict(), stem or stem_of(source)
    elif isinstance(source, Mapping):
        place, loaded = "`source`", dict(source)
    else:
        place, loaded = str(source), read_tensors(Path(source))
    state = strip(place, loaded)
    config, known = recognise(place, state, stem)
    with torch.device("meta"):
        net = assemble(config)
    ours = {translate(name): tensor for name, tensor in state.items()}
    for name, tensor in net.state_dict().items():
        if name.endswith("num_batches_tracked") and name not in ours:  # files older than this counter
            ours[name] = torch.zeros(tensor.shape, dtype=tensor.dtype)
    check_tensors(place, net, ours)
    net.load_state_dict({name: tensor.detach().clone() for name, tensor in ours.items()}, assign=True)
    net.normalisation = normalisation or known
    net.about = {"source": Path(place).name if place != "`source`" else type(source).__name__}
    if isinstance(source, nn.Module) and type(source).forward is not nn.Module.forward:
        check_outputs(net.eval(), source)
    return net.eval()


def check_outputs(net: Network, source: nn.Module) -> None:
    """Raises ValueError unless our network computes what the module does: weights do not include the activation."""
    images = torch.rand(2, net.config["in_channels"], 64, 64, generator=torch.Generator().manual_seed(0))
    images = images.to(net.stem.conv.weight)
    with preserve(source), torch.no_grad():
        wanted, found = source(images), net(images)
    if wanted.shape != found.shape or not (found - wanted).abs().max() <= SAME_OUTPUTS * wanted.abs().max():
        raise ValueError(
            f"`source`: this {type(source).__name__} has the layers of a ResNet that is known here and computes "
            "something else with them (another activation, epsilon, dilation, pooling); `nb.trace` measures it as is."
        )


def read_tensors(path: Path) -> dict:
    if not path.is_file():
        raise FileNotFoundError(f"`source` = {str(path)!r} is not a file.")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = re.search(r"GLOBAL ([\w.]+)", plain(error))
        what = f"a {wanted[1]}" if wanted else plain(error)[:200]
        raise ValueError(
            f"{path}: refused, it asks for more than tensors ({what}), and reading that can run code. If you trust the "
            "file, load it yourself and give `nb.load_foreign` the module, or its state_dict."
        ) from None
    except Exception as error:  # whatever the readers raise on bytes that are no checkpoint
        raise ValueError(f"{path}: damaged, cut short, or no checkpoint ({plain(error)[:200]}).") from None


def plain(error: Exception) -> str:
    """A message without colours and line ends."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return " ".join(text.split()) or type(error).__name__


def strip(place: str, loaded) -> dict[str, torch.Tensor]:
    """The state dict inside what was saved, without `module.` and the like in front."""
    for key in ("state_dict", "model", "net", "model_state_dict"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise ValueError(f"{place}: no dictionary of tensors, but {type(loaded).__name__}.")
    plain_names = {re.sub(r"^(module\.|model\.|_orig_mod\.)+", "", name): value for name, value in loaded.items()}
    plain_names.pop("n_averaged", None)  # the counter of torch's AveragedModel
    return plain_names


def stem_of(net: nn.Module) -> str | None:
    """What a module's stem is, where it says so: 3x3 convolutions with and without max-pool have the same weights."""
    convolution = getattr(net, "conv1", None)
    if not isinstance(convolution, nn.Conv2d) or convolution.kernel_size[0] == 7:
        return None
    return "cifar-pooled" if isinstance(getattr(net, "maxpool", None), nn.MaxPool2d) else "cifar"


def recognise(place: str, state: dict, stem: str | None) -> tuple[dict, dict | None]:
    """Our configuration for these keys, and the normalisation of their family."""
    head = next((name for name in ("linear.weight", "fc.weight") if name in state), None)
    found = {tuple(map(int, match.groups()[:2])) for match in map(BLOCK.match, state) if match}
    if "conv1.weight" not in state or "bn1.weight" not in state or head is None or not found:
        raise ValueError(
            f"{place}: no ResNet that is known here. Looked for conv1, bn1, layer1.0.conv1 and linear or fc; "
            f"it has {list(state)[:5]}."
        )
    stages = max(place[0] for place in found)
    counts = [1 + max((b for s, b in found if s == stage), default=-1) for stage in range(1, stages + 1)]
    opening, bottleneck = state["conv1.weight"], "layer1.0.conv3.weight" in state
    if bottleneck:
        refuse_other_bottlenecks(place, state)
    projected = any(".downsample." in name or ".shortcut." in name for name in state)
    known = CIFAR_NORMALISATION
    if opening.shape[-1] == 7 or (not projected and head == "linear.weight"):
        known = IMAGENET_NORMALISATION  # torchvision's, and akamaster's, whose networks saw CIFAR through them
    config = {
        "blocks": counts,
        "widths": [
            state[f"layer{stage}.0.conv1.weight"].shape[0] if f"layer{stage}.0.conv1.weight" in state else 0
            for stage in range(1, stages + 1)
        ],
        "bottleneck": bottleneck,
        "num_classes": state[head].shape[0],
        "in_channels": opening.shape[1],
        "post_activation": True,
        "stem": chosen_stem(place, state, stem, stages),
        "shortcut": "B" if projected else "A",
        "method": "EULER",
        "depth_factor": 1,
        "weights": "shared",
        "solver": None,
        "tolerance": 1e-3,
        "folded": False,
        "controllers": ["constant"] * sum(counts),
    }
    if min(config["widths"]) < 1 or sum(counts) > len(state):
        raise ValueError(f"{place}: a stage is missing, its layers are {sorted(found)[:5]}.")
    return config, known


def refuse_other_bottlenecks(place: str, state: dict) -> None:
    inner, out = state.get("layer1.0.conv2.weight"), state["layer1.0.conv3.weight"]
    if inner is None or inner.ndim != 4 or out.ndim != 4:
        return  # the comparison of all names and shapes will name it
    if inner.shape[0] != inner.shape[1]:
        raise ValueError(
            f"{place}: grouped convolutions, as in ResNeXt ({inner.shape[0] // max(inner.shape[1], 1)} groups in "
            "layer1.0.conv2), are not known here; `nb.trace` measures such a network as it is."
        )
    if out.shape[0] != 4 * inner.shape[0]:
        raise ValueError(
            f"{place}: a wide bottleneck ({inner.shape[0]} channels inside, {out.shape[0]} outside, here always 4 "
            "times as many) is not known here; `nb.trace` measures such a network as it is."
        )


def chosen_stem(place: str, state: dict, stem: str | None, stages: int) -> str:
    size = state["conv1.weight"].shape[-1]
    if stem is not None:
        fitting = ("imagenet",) if size == 7 else ("cifar", "cifar-pooled")
        if stem not in fitting:
            raise ValueError(
                f"`stem` must be one of {list(fitting)} for a first convolution of {size}x{size}, got {stem!r}."
            )
        return stem
    if size == 7:
        return "imagenet"
    if stages == 4 and "fc.weight" in state and any(".downsample." in name for name in state):
        warnings.warn(
            f"{place}: a 3x3 first convolution in a network with torchvision's names, which may have a max-pool behind "
            'it; weights do not tell, and it is read without one. Say stem="cifar-pooled" or stem="cifar".',
            stacklevel=4,
        )
    return "cifar"


def translate(name: str) -> str:
    """One of their keys as ours; an unknown one stays, to be named by the check."""
    match = BLOCK.match(name)
    if match is None:
        start, _, rest = name.partition(".")
        return f"{OUTSIDE[start]}.{rest}" if start in OUTSIDE else name
    stage, block, layer, rest = match.groups()
    place = f"stages.{int(stage) - 1}.blocks.{block}"
    if layer in ("downsample", "shortcut"):
        index, _, leaf = rest.partition(".")
        return f"{place}.shortcut.{'conv' if index == '0' else 'bn'}.{leaf}"
    return f"{place}.branch.{layer}.{rest}"
