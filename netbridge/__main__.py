"""The doctor from a shell: `python -m netbridge mine.py:network` says which blocks are stiff and what a swap does."""

import argparse
import dataclasses
import sys
from pathlib import Path

import torch
from torch import nn

import netbridge as nb
from netbridge.data.folders import some_pictures
from netbridge.data.pictures import IMAGENET_MEAN, IMAGENET_STD
from netbridge.model.network import Configured
from odelab.doctor.shell import value_of


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m netbridge", description=__doc__.split(": ", 1)[1])
    parser.add_argument(
        "network",
        help="FILE.py:NAME of a torch module, or of a function that returns one; a file that nb.save wrote; or a name "
        "of nb.pretrained(), such as cifar10/resnet20-se-seed0",
    )
    parser.add_argument(
        "--images", metavar="FOLDER", help="pictures to show it, in subfolders too; random numbers without"
    )
    parser.add_argument("--size", type=int, default=32, help="height and width of the images; 32")
    parser.add_argument("--count", type=int, default=16, help="how many images; 16")
    parser.add_argument("--states", type=int, default=1, help="for how many of them limits are computed; 1")
    parser.add_argument("--allowed", type=float, default=10.0, help="seconds of processor time for the limits; 10")
    parser.add_argument("--report", metavar="FOLDER", help="write a page with pictures into this folder, too")
    asked = parser.parse_args(arguments)
    if min(asked.size, asked.count) < 1:
        parser.error(f"--size and --count must be at least 1, got {asked.size} and {asked.count}")
    try:
        net = named(asked.network)
        images, said = shown(net, asked.images, asked.size, asked.count)
        found = nb.diagnose(net, images, states=asked.states, allowed=asked.allowed)
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    found = dataclasses.replace(found, name=asked.network.rpartition(":")[2], images=said)
    print(found)
    if asked.report:
        print(found.report(asked.report).resolve().as_uri())
    return 0


def named(text: str) -> nn.Module:
    """The network of this name: of a Python file, of a file of weights, or among those that are shipped."""
    if Path(text).suffix == ".safetensors":
        return nb.load(text)
    return value_of(text, nn.Module, "networks") if ":" in text else nb.pretrained(text)


def shown(net: nn.Module, folder: str | None, size: int, count: int) -> tuple[torch.Tensor, str]:
    """Images as this network is shown them, and what they are in words."""
    first = next((layer for layer in net.modules() if isinstance(layer, nn.Conv2d | nn.Linear)), None)
    if folder is None:
        shape = (first.in_features,) if isinstance(first, nn.Linear) else (getattr(first, "in_channels", 3), size, size)
        images = torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))
        words = "random numbers of mean 0 and deviation 1, not data; --images FOLDER shows it pictures"
        return images, f"Images: {count} of {' x '.join(map(str, shape))}, {words}."
    images = some_pictures(folder, size, count).float() / 255
    if getattr(first, "in_channels", 3) == 1:
        images = images.mean(dim=1, keepdim=True)
    said = f"Images: {len(images)} of {folder}, {size} x {size}"
    if isinstance(net, Configured) and net.normalisation is not None:
        return net.normalise(images), f"{said}, normalised as those that the network was trained on."
    if images.shape[1] == 3:
        mean, std = (torch.tensor(x).view(3, 1, 1) for x in (IMAGENET_MEAN, IMAGENET_STD))
        return (images - mean) / std, f"{said}, normalised by ImageNet's mean and deviation, as nothing says by which."
    return (images - images.mean()) / images.std(), f"{said}, normalised by their own mean and deviation."


if __name__ == "__main__":
    sys.exit(main())
