"""Devices: which one is used where none is named, and the state of the random numbers that layers draw on it."""

import os

import torch


def local_rank() -> int:
    """The number of this process among those that `torchrun` started on this machine; 0 without `torchrun`.

    It is read from the environment, so nothing of training is needed to know it.
    """
    return int(os.environ.get("LOCAL_RANK", "0"))


def best_device() -> torch.device:
    """The GPU that belongs to this process, else that of an Apple machine, else the processor."""
    if torch.cuda.is_available():
        return torch.device("cuda", local_rank())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def usable_device(name) -> torch.device:
    """The device of this name; ValueError where torch has none such here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:  # torch raises either
        raise ValueError(f"`device` = {str(name)!r} cannot be used here: {str(error).splitlines()[0]}.") from None
    return device


def drawing_state(device: torch.device) -> torch.Tensor:
    """The state of the random numbers that layers draw on a device, as bytes; on a GPU behind the processor's."""
    state = torch.get_rng_state()
    return torch.cat([state, torch.cuda.get_rng_state(device)]) if device.type == "cuda" else state


def set_drawing_state(state: torch.Tensor, device: torch.device) -> None:
    """Puts back what `drawing_state` gave; a state from a machine without this GPU leaves the GPU's as it is."""
    length = len(torch.get_rng_state())
    torch.set_rng_state(state[:length])
    if device.type == "cuda" and len(state) > length:
        torch.cuda.set_rng_state(state[length:], device)
