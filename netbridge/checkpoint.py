"""Files of networks and of unfinished trainings: tensors in safetensors, everything else as JSON in its header.

Nothing in such a file can run code when it is read. A file is written beside its place and then renamed, so that
nobody ever reads half of one.

A file may hold large weights in half precision, which makes it half as long; what is read from it is float32 again.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save_file
from torch import nn

from netbridge.model import mobile, resnet, vgg, vit
from netbridge.model.network import Configured
from netbridge.surgery.fold import fold_ours
from odelab.files import replacing

FORMAT = 1
HALVED_FORMAT = 2  # of files with weights in half precision: a version that does not know of them refuses them
LARGE = 1024  # numbers from which on a matrix or a kernel of weights is stored in half precision
FAMILIES = {
    "resnet": resnet.assemble, "vit": vit.assemble, "vgg": vgg.assemble, "repvgg": vgg.assemble,
    "mobilenet": mobile.assemble, "shufflenet": mobile.assemble,
}  # fmt: skip
NETWORK, TRAINING = "netbridge", "training"  # the header's key in the file of a network, and of an unfinished training
ROUNDED_TO = "rounded_to"  # in the header, and in `net.about`: what large weights have been rounded to


def save(net: Configured, path, about: dict | None = None, half: bool = False) -> Path:
    """Write a network to one safetensors file, from which `nb.load` makes it again.

    net     a network of netbridge, as it is: its architecture, weights, buffers and `net.normalisation`
    path    the file to write; an older file is replaced only once the new one is whole on the disk
    about   any record worth keeping with it (data, seed, accuracy) as plain numbers, strings, lists and dictionaries;
            it comes back as `net.about`. Default: what `net.about` holds
    half    False (the default): every number as it is. True: matrices and kernels of at least 1,024 weights are rounded
            to float16, which keeps 11 binary digits and halves the file; everything else (running statistics, biases,
            small matrices) stays float32. `nb.load` gives float32 back, and `net.about["rounded_to"]` is "float16". The
            network in memory is not changed. docs/training.md says what rounding does to accuracies and stiffness

    Returns the path. Raises TypeError where `net` is no network of netbridge, `about` is no plain record or `half` is
    neither True nor False; with `half`, ValueError where a number of `net` is not float32, is not finite, or is too
    large for float16 (65,520 and more).

    >>> import pathlib, tempfile
    >>> import netbridge as nb
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> path = nb.save(nb.resnet(8, controller="se"), folder / "se.safetensors", about={"seed": 3})
    >>> nb.load(path).about
    {'seed': 3}
    >>> short = nb.save(nb.load(path), folder / "short.safetensors", half=True)
    >>> short.stat().st_size < 0.6 * path.stat().st_size, nb.load(short).about
    (True, {'seed': 3, 'rounded_to': 'float16'})
    """
    if not isinstance(half, bool):
        raise TypeError(f"`half` must be True or False, got {half!r}.")
    if not isinstance(net, Configured):
        raise TypeError(
            f"`net` must be a network of netbridge, got {type(net).__name__}. For other modules use "
            "safetensors.torch.save_file(net.state_dict(), path)."
        )
    return save_module(net, path, net.about if about is None else about, half)


def save_module(net: nn.Module, path, about: dict, half: bool = False) -> Path:
    """Any module's tensors; of a network of netbridge also what rebuilds it, of another one the name of its class."""
    own = {"config": net.config} if isinstance(net, Configured) else {"class": class_name(net)}
    header = own | {
        "format": FORMAT,
        "normalisation": getattr(net, "normalisation", None),
        "about": about,
        "torch": torch.__version__,
    }
    tensors = tensors_of(net)
    if half:
        tensors = halve(net, tensors)
        header |= {"format": HALVED_FORMAT, ROUNDED_TO: "float16"}
    write(Path(path), tensors, NETWORK, header, "about")
    return Path(path)


def halve(net: nn.Module, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a network, its large weights in float16; refuses what this would spoil."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise ValueError(
                f"`half` rounds float32, and `{name}` of `net` is {kind}. Save `net.float()`, or leave `half` out."
            )
    halved = {name: tensors[name].half() for name in large_weights(net)}
    for name, tensor in halved.items():
        if not bool(torch.isfinite(tensor).all()):
            largest = float(tensors[name].abs().max())
            raise ValueError(
                f"`half`: `{name}` of `net` holds {largest:.6g}, and float16 holds finite numbers below 65,520 only. "
                "Leave `half` out."
            )
    return tensors | halved


def large_weights(net: nn.Module) -> list[str]:
    """The names of the weights that half precision is worth its rounding for: matrices and kernels of many numbers."""
    return [name for name, x in net.named_parameters(remove_duplicate=False) if x.dim() > 1 and x.numel() >= LARGE]


def class_name(net: nn.Module) -> str:
    return f"{type(net).__module__}.{type(net).__qualname__}"


def tensors_of(net: nn.Module) -> dict[str, torch.Tensor]:
    """The state of a module as tensors that share no memory."""
    state = net.state_dict()
    for name, value in state.items():
        if not torch.is_tensor(value):
            raise TypeError(f"`net` keeps {type(value).__name__} as `{name}` in its state; only tensors can be saved.")
    return {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def write(path: Path, tensors: dict, key: str, header: dict, named: str) -> None:
    """`named`: the argument that is to blame where the header cannot be written."""
    try:
        record = json.dumps(header)
    except TypeError as error:
        raise TypeError(f"`{named}` must be plain numbers, strings, lists and dictionaries: {error}.") from None
    with replacing(path) as unfinished:
        save_file(tensors, unfinished, metadata={key: record})


def save_training(
    path: Path, net, optimizer, slow: list, record: dict, drawing: Sequence = (), observed: Mapping | None = None
) -> None:
    """What an interrupted training needs to go on with the same bits: network, optimiser, averaged weights.

    The optimiser's tensors and its plain values (numbers, None) are both kept; what is neither is refused. `drawing`:
    within an epoch, the states of the processes' random numbers; `observed`: tensors that an observer remembers.
    """
    tensors = {f"net.{name}": value for name, value in tensors_of(net).items()}
    for name, value in (observed or {}).items():
        if not torch.is_tensor(value):
            raise TypeError(f"the `state_dict` of `on_epoch` must hold tensors; `{name}` is {type(value).__name__}.")
        tensors[f"observer.{name}"] = value.detach().cpu().contiguous().clone()
    tensors |= {f"drawing.{number}": value for number, value in enumerate(drawing)}
    plain: dict[str, dict] = {}
    for number, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if torch.is_tensor(value):
                tensors[f"optimizer.{number}.{key}"] = value.detach().cpu().contiguous().clone()
            else:
                plain.setdefault(str(number), {})[key] = value
    tensors |= {f"average.{number}": value.cpu().contiguous().clone() for number, value in enumerate(slow)}
    write(path, tensors, TRAINING, {**record, "optimizer": plain}, "optimizer")


def load_training(path: Path) -> tuple[dict, dict] | None:
    """(record, tensors) of `save_training`, or None where nothing was written yet."""
    if not path.is_file():
        return None
    try:
        return read(path, TRAINING)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path}: damaged, training cannot go on from it ({error}). Delete it to start anew."
        ) from None


def restore_training(record: dict, tensors: dict, net, optimizer, slow: list) -> None:
    """Put back what `save_training` wrote."""
    net.load_state_dict({name.removeprefix("net."): x for name, x in tensors.items() if name.startswith("net.")})
    held: dict[int, dict] = {int(number): dict(values) for number, values in record.get("optimizer", {}).items()}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            held.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": held})
    for number, tensor in enumerate(slow):
        tensor.copy_(tensors[f"average.{number}"])


def load(path):
    """The network of a file that `nb.save` or a training wrote, in evaluation mode.

    path    the file

    Returns the network as it was saved, with `net.about` and `net.normalisation`; it may be trained further. Weights in
    half precision are float32 again, and `net.about["rounded_to"]` says that they have been rounded. Raises
    FileNotFoundError, or a ValueError that names what is wrong: a damaged file, tensors that do not fit the
    architecture or are not finite, a pickle (which could run code, and is refused unread).

    >>> import netbridge as nb
    >>> from netbridge.pretrained_networks import ZOO
    >>> net = nb.load(ZOO / "digits" / "resnet32-width4-se-seed0.safetensors")
    >>> net.about["controller"], net.about["test_errors"], net.training
    ('se', 4, False)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`path` = {str(path)!r} is not a file.")
    header, state = read(path, NETWORK)
    if not isinstance(header.get("config"), Mapping):
        if kind := header.get("class"):
            raise ValueError(
                f"{path}: these are the weights of a {kind}, which is no network of netbridge. Build one, then give "
                "its `load_state_dict` what safetensors.torch.load_file reads from here."
            )
        raise ValueError(f"{path}: its record of the architecture is damaged.")
    return network_from(path, header, state)


def network_from(path: Path, header: dict, state: dict) -> Configured:
    """The network of a header and its tensors, in evaluation mode."""
    net = rebuild(path, header, state)
    check_tensors(path, net, state)
    net.load_state_dict(state, assign=True)
    net.normalisation, net.about = header.get("normalisation"), header.get("about") or {}
    return net.eval()


def read(path: Path, key: str) -> tuple[dict, dict[str, torch.Tensor]]:
    """The header and the tensors of a file; what is damaged, another's or a pickle is refused in words."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
    except safetensors.SafetensorError as error:
        refuse_pickle(path)
        raise ValueError(f"{path}: damaged or cut short, or no safetensors file at all ({error}).") from None
    header = read_header(path, key)
    if ROUNDED_TO in header:
        tensors = {name: x.float() if x.dtype == torch.float16 else x for name, x in tensors.items()}
    return header, tensors


def read_header(path: Path, key: str = NETWORK) -> dict:
    """What a file says of its network or training, without reading a tensor."""
    with safetensors.safe_open(path, framework="pt") as file:
        record = (file.metadata() or {}).get(key)
    if record is None:
        raise ValueError(f"{path}: safetensors without netbridge's record of the architecture; written by nb.save?")
    header = None
    with contextlib.suppress(json.JSONDecodeError):
        header = json.loads(record)
    if not isinstance(header, dict):
        raise ValueError(f"{path}: its record of the architecture is damaged.")
    if header.get("format", FORMAT) not in (FORMAT, HALVED_FORMAT):
        raise ValueError(
            f"{path}: format {header['format']}, and this version reads format {FORMAT} and format {HALVED_FORMAT}."
        )
    if ROUNDED_TO in header:
        header["about"] = (header.get("about") or {}) | {ROUNDED_TO: header[ROUNDED_TO]}
    return header


def refuse_pickle(path: Path) -> None:
    """Asked only of what is no safetensors: the length such a file begins with may look like a pickle's first bytes."""
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"PK" or start[:1] == b"\x80":
        raise ValueError(
            f"{path}: this is a pickle, which could run code when read; nb.load reads safetensors only. For published "
            "weights of a known ResNet use nb.load_foreign, which reads tensors and nothing else."
        )


def rebuild(path: Path, header: dict, state: dict) -> Configured:
    """The network of the header's configuration, without memory for its tensors."""
    config = header["config"]
    try:
        if sum(config["blocks"]) > len(state):
            raise ValueError(f"{sum(config['blocks'])} blocks from {len(state)} tensors")
        with torch.device("meta"):
            net = FAMILIES[config.get("family", "resnet")](config)
            if config["folded"]:
                fold_ours(net)
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{path}: its architecture cannot be rebuilt: {error}") from error
    return net


def check_tensors(path: Path | str, net: Configured, state: dict) -> None:
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


def refuse_unfinished(path: Path | str, state: dict) -> None:
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise ValueError(f"{path}: `{name}` holds {count} NaN or infinite values; its training diverged.")
