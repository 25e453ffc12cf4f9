"""What a run of training needs to go on as if it had never stopped, in one file that is whole or not there."""

import json
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save_file

from netbridge.files import whole

KEY = "training"


def flat_state(net, optimizer, averaged) -> dict[str, torch.Tensor]:
    """Network, optimiser and running average as named tensors."""
    tensors = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": x for key, x in state.items() if torch.is_tensor(x)}
    tensors |= {f"average.{number}": tensor for number, tensor in enumerate(averaged or [])}
    return {name: tensor.detach().contiguous().cpu().clone() for name, tensor in tensors.items()}


def restore(tensors: dict, net, optimizer, averaged) -> None:
    net.load_state_dict({name[4:]: x for name, x in tensors.items() if name.startswith("net.")})
    state = optimizer.state_dict()
    held: dict[int, dict] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            held.setdefault(int(number), {})[key] = tensor
    state["state"] = held
    optimizer.load_state_dict(state)
    for number, tensor in enumerate(averaged or []):
        tensor.copy_(tensors[f"average.{number}"])


def write(path: Path, tensors: dict, record: dict) -> None:
    with whole(path) as unfinished:
        save_file(tensors, unfinished, {KEY: json.dumps(record)})


def read(path: Path) -> tuple[dict, dict] | None:
    """(tensors, record), or None where nothing was written yet."""
    if not path.is_file():
        return None
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            record = json.loads((file.metadata() or {})[KEY])
            return {name: file.get_tensor(name) for name in file.keys()}, record  # noqa: SIM118 (not a dict)
    except (safetensors.SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path}: damaged, training cannot go on from it ({error}). Delete it to start anew."
        ) from None
