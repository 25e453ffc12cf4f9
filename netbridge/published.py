"""Published weights of well-known ResNets, by a map of their keys to ours.

Read with `weights_only`: a file that asks for more than tensors is refused.
"""

import pickle
import re
from pathlib import Path

import torch

from netbridge.checkpoint import check_tensors
from netbridge.model.network import Network
from netbridge.model.resnet import assemble

# What each family of published weights was trained to see.
IMAGENET_NORMALISATION = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
CIFAR_NORMALISATION = {"mean": [0.4914, 0.4822, 0.4465], "std": [0.2023, 0.1994, 0.2010]}

BLOCK = re.compile(r"layer(\d+)\.(\d+)\.(conv\d|bn\d|downsample|shortcut)\.(.+)")
OUTSIDE = {"conv1": "stem.conv", "bn1": "stem.bn", "linear": "head.fc", "fc": "head.fc"}


def load_foreign(path, normalisation: dict | None = None) -> Network:
    """Someone else's trained ResNet as one of ours, for evaluation, its normalisation in `net.normalisation`.

    Post-activation ResNets with the usual names: conv1, bn1, layer1.0.conv1 ..., with `linear` or `fc`, and shortcuts
    of option A (no weights) or projections named `downsample` or `shortcut`: akamaster's, kuangliu's and chenyaofo's
    CIFAR networks, torchvision's. `normalisation` = {"mean": [...], "std": [...]} overrides what the family is known
    to use.
    """
    path = Path(path)
    state = strip(path, read_tensors(path))
    config, known = recognise(path, state)
    with torch.device("meta"):
        net = assemble(config)
    ours = {translate(name): tensor for name, tensor in state.items()}
    for name, tensor in net.state_dict().items():
        if name.endswith("num_batches_tracked") and name not in ours:  # older than this counter
            ours[name] = torch.zeros(tensor.shape, dtype=tensor.dtype)
    check_tensors(path, net, ours)
    net.load_state_dict({name: tensor.clone() for name, tensor in ours.items()}, assign=True)
    net.normalisation = normalisation or known
    net.about = {"source": path.name}
    return net.eval()


def read_tensors(path: Path) -> dict:
    if not path.is_file():
        raise FileNotFoundError(f"`path` = {str(path)!r} is not a file.")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(f"{path}: refused, it asks for more than tensors ({first_line(error)}).") from None
    except Exception as error:  # whatever the readers raise on bytes that are no checkpoint
        raise ValueError(f"{path}: damaged, cut short, or no checkpoint ({first_line(error)}).") from None


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def strip(path: Path, loaded) -> dict[str, torch.Tensor]:
    """The state dict inside what was saved, without `module.` and the like in front."""
    for key in ("state_dict", "model", "net", "model_state_dict"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise ValueError(f"{path}: no dictionary of tensors, but {type(loaded).__name__}.")
    return {re.sub(r"^(module\.|model\.|_orig_mod\.)+", "", name): value for name, value in loaded.items()}


def recognise(path: Path, state: dict) -> tuple[dict, dict | None]:
    """Our configuration for these keys, and the normalisation of their family."""
    head = next((name for name in ("linear.weight", "fc.weight") if name in state), None)
    places = {tuple(map(int, match.groups()[:2])) for match in map(BLOCK.match, state) if match}
    if "conv1.weight" not in state or "bn1.weight" not in state or head is None or not places:
        raise ValueError(
            f"{path}: no ResNet that is known here. Looked for conv1, bn1, layer1.0.conv1 and linear or fc; "
            f"it has {list(state)[:5]}."
        )
    stages = max(place[0] for place in places)
    counts = [1 + max((b for s, b in places if s == stage), default=-1) for stage in range(1, stages + 1)]
    stem, bottleneck = state["conv1.weight"], "layer1.0.conv3.weight" in state
    projected = any(".downsample." in name or ".shortcut." in name for name in state)
    known = CIFAR_NORMALISATION
    if stem.shape[-1] == 7 or (not projected and head == "linear.weight"):
        known = IMAGENET_NORMALISATION  # torchvision's, and akamaster's, whose networks saw CIFAR through them
    config = {
        "blocks": counts,
        "widths": [
            state[f"layer{stage}.0.conv1.weight"].shape[0] if f"layer{stage}.0.conv1.weight" in state else 0
            for stage in range(1, stages + 1)
        ],
        "bottleneck": bottleneck,
        "num_classes": state[head].shape[0],
        "in_channels": stem.shape[1],
        "post_activation": True,
        "stem": "imagenet" if stem.shape[-1] == 7 else "cifar",
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
        raise ValueError(f"{path}: a stage is missing, its layers are {sorted(places)[:5]}.")
    return config, known


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
