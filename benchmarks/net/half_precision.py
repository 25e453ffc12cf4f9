"""What half precision on disk does to networks: `python -m benchmarks.net.half_precision [--folder NAME] [--images N]`.

Shipped networks are measured as they are and with their large weights rounded, as `nb.save(half=True)` rounds them, to
float16 or to bfloat16: errors on all test images, and NSI of every block and TNS on the first of them. Every number of
the table of docs/training.md is printed by this command.
"""

import argparse
import copy

import numpy as np
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.checkpoint import large_weights
from netbridge.pretrained_networks import ZOO
from netbridge.train import scoring
from studies.lab.results import plain_table
from studies.lab.stiffness import KINDS, READINGS, image_stiffness, trace_both

ROUNDINGS = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def rounded(net: nb.Network, dtype: torch.dtype) -> nb.Network:
    """A copy of the network with its large weights rounded to `dtype`; float16 is what a halved file gives back."""
    copied = copy.deepcopy(net)
    weights = dict(copied.named_parameters())
    with torch.no_grad():
        for name in large_weights(copied):
            weights[name].copy_(weights[name].to(dtype))
    return copied


def look(net: nb.Network, data, images: int) -> dict:
    """Errors on all test images, and the records of a trace of the first `images` ones."""
    return scoring.evaluate(net, data) | {"records": trace_both(net, data, images, "cpu")}


def changes(whole: dict, halved: dict) -> dict[str, float]:
    """By how much the rounding has changed what was measured; relative, but for the number of errors."""
    found = {"errors": halved["test_errors"] - whole["test_errors"], "loss": relative(whole, halved, "test_loss")}
    for of in KINDS:
        before, after = whole["records"][of], halved["records"][of]
        a, b = before.nsi, after.nsi
        found[f"NSI {of}, mean of a block"] = float(np.nanmax(np.abs(b.mean(0) / a.mean(0) - 1)))
        found[f"NSI {of}, one image"] = float(np.nanmax(np.abs(b / a - 1)))
    tns = [[image_stiffness(one["records"][of], mu).mean() for one in (whole, halved)] for of, mu in READINGS]
    found["TNS, four readings"] = float(np.max([abs(after / before - 1) for before, after in tns]))
    return found


def relative(whole: dict, halved: dict, name: str) -> float:
    return abs(halved[name] / whole[name] - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--folder", default="cifar10", help="of the shipped networks (cifar10)")
    parser.add_argument("--images", type=int, default=1000, help="that are traced (1000)")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (1)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    paths = sorted((ZOO / options.folder).glob("*.safetensors"))
    data = datasets.load(options.folder.split("-")[0])
    rows: dict[str, list[dict]] = {name: [] for name in ROUNDINGS}
    for path in paths:
        net = nb.load(path)
        whole = look(net, data, options.images)
        print(f"{path.stem}: {whole['test_errors']} errors, {net.about['test_errors']} in its header", flush=True)
        for name, dtype in ROUNDINGS.items():
            rows[name].append(changes(whole, look(rounded(net, dtype), data, options.images)))
            print(
                f"  {name}: " + ", ".join(f"{what} {value:.3g}" for what, value in rows[name][-1].items()), flush=True
            )
    table = []
    for name, found in rows.items():
        errors = np.array([one["errors"] for one in found])
        row = {"rounded to": name, "errors, most": int(np.abs(errors).max()), "errors, mean": errors.mean()}
        row |= {what: max(one[what] for one in found) for what in found[0] if what != "errors"}
        table.append(row)
    print(f"\n{len(paths)} networks of {options.folder}: largest changes of any\n{plain_table(table)}")


if __name__ == "__main__":
    main()
