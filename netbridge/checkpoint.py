"""Checkpoints: tensors in safetensors, and in the header a JSON record that says how to rebuild the network.

Nothing in such a file can run code. It is written beside its place and then renamed: no half of one is ever read.
"""

import contextlib
import json
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save_file

from netbridge.files import whole
from netbridge.model.network import Network
from netbridge.model.resnet import assemble
from netbridge.surgery.fold import fold_structure

FORMAT = 1
KEY = "netbridge"


def save(net: Network, path, about: dict | None = None) -> Path:
    """Write a network; `about`, any record worth keeping with it (data, seed, accuracy), comes back as `net.about`."""
    if not isinstance(net, Network):
        raise TypeError(f"`net` must be a network of netbridge, got {type(net).__name__}.")
    path = Path(path)
    header = {
        "format": FORMAT,
        "config": net.config,
        "normalisation": net.normalisation,
        "about": net.about if about is None else about,
        "torch": torch.__version__,
    }
    try:
        record = json.dumps(header)
    except TypeError as error:
        raise TypeError(f"`about` must be plain numbers, strings, lists and dictionaries: {error}.") from None
    state = {name: tensor.detach().contiguous().cpu() for name, tensor in net.state_dict().items()}
    with whole(path) as unfinished:
        save_file(state, unfinished, metadata={KEY: record})
    return path


def load(path) -> Network:
    """The network of a file written by `nb.save`, in evaluation mode: whole, or an error that names what is wrong."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`path` = {str(path)!r} is not a file.")
    header, state = read(path)
    net = rebuild(path, header, state)
    check_tensors(path, net, state)
    net.load_state_dict(state, assign=True)
    net.normalisation, net.about = header.get("normalisation"), header.get("about") or {}
    return net.eval()


def read(path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    """The header and the tensors of a file; what is damaged, foreign or a pickle is refused in words."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = parse_header(path, (file.metadata() or {}).get(KEY))
            return header, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
    except safetensors.SafetensorError as error:
        refuse_pickle(path)
        raise ValueError(f"{path}: damaged or cut short, or no safetensors file at all ({error}).") from None


def read_header(path: Path) -> dict:
    """What a file says of its network, without reading a tensor."""
    with safetensors.safe_open(path, framework="pt") as file:
        return parse_header(path, (file.metadata() or {}).get(KEY))


def parse_header(path: Path, record: str | None) -> dict:
    if record is None:
        raise ValueError(f"{path}: safetensors without netbridge's record of the architecture; written by nb.save?")
    with contextlib.suppress(json.JSONDecodeError):
        header = json.loads(record)
        if isinstance(header, dict) and isinstance(header.get("config"), dict):
            if header.get("format") != FORMAT:
                raise ValueError(f"{path}: format {header.get('format')}, and this version reads format {FORMAT}.")
            return header
    raise ValueError(f"{path}: its record of the architecture is damaged.")


def refuse_pickle(path: Path) -> None:
    """Asked only of what is no safetensors: the length such a file begins with may look like a pickle's first bytes."""
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"PK" or start[:1] == b"\x80":
        raise ValueError(
            f"{path}: this is a pickle, which could run code when read; nb.load reads safetensors only. For published "
            "weights of a known ResNet use nb.load_foreign, which reads tensors and nothing else."
        )


def rebuild(path: Path, header: dict, state: dict) -> Network:
    """The network of the header's configuration, without memory for its tensors."""
    config = header["config"]
    try:
        if sum(config["blocks"]) > len(state):
            raise ValueError(f"{sum(config['blocks'])} blocks from {len(state)} tensors")
        with torch.device("meta"):
            net = assemble(config)
            if config["folded"]:
                fold_structure(net)
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{path}: its architecture cannot be rebuilt: {error}") from error
    return net


def check_tensors(path: Path, net: Network, state: dict) -> None:
    """Names, shapes and finiteness, before anything is loaded."""
    wanted = net.state_dict()
    missing, extra = sorted(wanted.keys() - state.keys()), sorted(state.keys() - wanted.keys())
    if missing or extra:
        raise ValueError(
            f"{path}: its tensors are not those of its architecture: {len(missing)} missing {missing[:3]}, "
            f"{len(extra)} too many {extra[:3]}."
        )
    for name, tensor in state.items():
        if tensor.shape != wanted[name].shape:
            raise ValueError(f"{path}: `{name}` is {tuple(tensor.shape)}, the network's {tuple(wanted[name].shape)}.")
    refuse_unfinished(path, state)


def refuse_unfinished(path: Path, state: dict) -> None:
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise ValueError(f"{path}: `{name}` holds {count} NaN or infinite values; its training diverged.")
