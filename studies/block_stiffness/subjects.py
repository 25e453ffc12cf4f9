"""The networks a run looks at: shipped ones or somebody's own, checked by their accuracy."""

import numpy as np
import torch

import netbridge as nb
from studies.block_stiffness import measures
from studies.lab import networks
from studies.lab.command import plain_errors
from studies.lab.stiffness import prepare

STUDY = "block_stiffness"
PLAIN = {"cifar10": "cifar10/resnet20-constant-seed0", "digits": "digits/resnet32-width4-constant-seed0"}


def choose_networks(arguments, data) -> list[tuple]:
    """Networks, ready to be looked at, and what they are called."""
    if arguments.checkpoint:
        with plain_errors(STUDY):
            how = arguments.stem, normalisation_of(arguments)
            found = [networks.read_subject(path, *how) for path in networks.checkpoints(arguments.checkpoint)]
        return [(one.net.eval().to(arguments.device), one.source) for one in found]
    name = arguments.network or PLAIN[data.name]
    with plain_errors(STUDY):
        return [(nb.pretrained(name).eval().to(arguments.device), name)]


def normalisation_of(arguments) -> dict | None:
    """The mean and the deviation that the options say published weights were trained with; None where they do not."""
    if not (arguments.mean or arguments.std):
        return None
    for name in ("mean", "std"):
        values = getattr(arguments, name)
        if len(values) != 3 or not all(0 <= value <= 1 for value in values):
            raise ValueError(
                f"`--{name}` must be three numbers from 0 to 1, of red, green and blue, and stand beside "
                f"`--{'std' if name == 'mean' else 'mean'}`; got {list(values)}."
            )
    return {"mean": list(arguments.mean), "std": list(arguments.std)}


def check_accuracy(net, name, data, arguments) -> None:
    """Print what the network scores, and end the study where that is not what it is expected to score.

    With a wrong stem or a wrong normalisation the spectra would be those of another network, without any error message.
    """
    count = min(50 if arguments.smoke else 1000, len(data.test_images))
    share = float(measures.answers(net, data, np.arange(count))[1].mean())
    print(f"{name}: {100 * share:.1f} % of the first {count} test images are classified correctly.", flush=True)
    if arguments.expect is None:
        return
    wanted = arguments.expect / 100
    slack = 0.01 + 3.0 * np.sqrt(max(0.0, wanted * (1.0 - wanted)) / count)
    if abs(share - wanted) > slack:
        raise SystemExit(
            f"studies.{STUDY}: {name} classifies {100 * share:.1f} % of {count} test images correctly, `--expect` says "
            f"{arguments.expect:g} %. Try another `--stem`, or say by `--mean` and `--std` how images were normalised."
        )


def precision_rows(net, data, inner: list[str], work: dict) -> list[dict]:
    """All eigenvalues of the branches at the first test image in single and in double precision, and both ends alone.

    Only of blocks of which that takes seconds. Differences of the ends are relative to the spectral radius.
    """
    images = prepare(net, data, data.test_images[:1])
    sizes = {name: state[0].numel() for name, state in nb.block_states(net, images, inner).items()}
    blocks = [name for name in inner if sizes[name] <= 8192]
    if not blocks:
        return []
    work = {key: value for key, value in work.items() if key != "dtype"}
    single, double = (
        nb.block_survey(net, images, "residual", blocks, "full", dtype=dtype, **work)
        for dtype in (torch.float32, torch.float64)
    )
    ends = nb.block_survey(net, images, "residual", blocks, "extremes", **work)
    rows = []
    for name in blocks:
        one, two, end = (table[table["block"] == name][0] for table in (single, double, ends))
        radius = two["spectral_radius"]
        rows.append(
            {
                "block": net.block_names.index(name) + 1,
                "eigenvalues": int(two["n"]),
                "negative, double, %": 100 * float(two["negative"]),
                "single less double, points": 100 * float(one["negative"] - two["negative"]),
                "ends, single": float(max(abs(one[m] - two[m]) for m in ("max_re", "min_re")) / radius),
                "ends alone": float(max(abs(end[m] - two[m]) for m in ("max_re", "min_re")) / radius),
            }
        )
    return rows
