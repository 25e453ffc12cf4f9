"""Networks that the study trains itself: through training, of several depths, and beside ODE-nets (Figure 2).

Hudson, Najm and Sargsyan (Measuring Stiffness in Residual Neural Networks, 2023) find that stiffness tends to increase
as a result of training. Li and Papyan (Residual Alignment, NeurIPS 2023) find that the top singular values of a
residual branch's Jacobian scale as 1 / depth: the step of size 1 would then be the smaller, in units of the equation,
the deeper the network.

Of its ODE-nets the paper gives neither dimension, depth, solver nor number of points. Here: 64 points in the plane, a
field of one hidden layer of 32 tanh units, eight residual steps of 1/8 that share it, and the same field under dopri5.
On the digits a ResNet-14, and the same network whose stages are solved by dopri5, are trained in the same way. Each is
then run by dopri5 at tolerances from 1e-1 to 1e-6: an equation does not care how it is solved, a network trained for
one step per block may.
"""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torchdiffeq import odeint

import netbridge as nb
import odelab
from netbridge import data as datasets
from netbridge.spectrum.step_error import equal_steps
from netbridge.train import recipe, train
from odelab.plot import style
from studies.block_stiffness import printed
from studies.block_stiffness.evidence import LABELS, Evidence, Fit, keep_rows, write_rows
from studies.block_stiffness.measures import accuracy_of, first_images, inner_blocks
from studies.lab.exhibits import Exhibit
from studies.lab.figures import plain_ticks
from studies.lab.jobs import recipe_of
from studies.lab.page import Page
from studies.lab.statistics import Estimate, interval_text, mean_with_interval
from studies.lab.stiffness import prepare
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    enough,
    joint,
    of_interval,
    rule,
)

DEPTH, WIDTHS = 14, (4, 8, 16)


# ---- Through training ----

SLICE_ROWS = 150  # output units that slices look at
MEASURES = ("max_re", "min_re", "spectral_radius", "negative")


def rows_through_training(epochs: int, images: int, seed: int = 0) -> list[dict]:
    """A small network on the digits: a row per look and block, before training and after the epochs 1, 2, 4, ...

    epochs  of the recipe "digits", after the last of which is the last look
    images  test images at which the spectra of the branches are taken, balanced over labels
    """
    data = datasets.load("digits")
    torch.manual_seed(seed)
    net = nb.resnet(DEPTH, len(data.names), widths=WIDTHS)
    looks = {0, *(2**k for k in range(epochs.bit_length())), epochs}
    return train_and_look(net, data, recipe("digits", epochs=epochs), seed, looks, images)


def train_papers_geometry(
    data, seed: int, images: int, folder: Path, device: str | None, epochs: int | None = None, width: int = 16
):
    """A ResNet-18 of the paper's geometry, a quarter as wide, trained and looked at after every epoch.

    folder  where the unfinished training and the rows of its looks are kept, so that a stopped one goes on
    epochs  another number than the recipe's
    width   channels of the first stage
    """
    torch.manual_seed(seed)
    widths = tuple(width * 2**stage for stage in range(4))
    net = nb.resnet(18, len(data.names), in_channels=data.test_images.shape[1], stem="cifar-pooled", widths=widths)
    how = recipe_of("short", data.name, epochs=epochs)
    path = folder / f"resnet18-width{width}-{data.name}-{how.epochs}-seed{seed}.safetensors"
    return train_and_look(net, data, how, seed, set(range(how.epochs + 1)), images, path, device, slices=True)


def train_and_look(net, data, how, seed: int, looks: set[int], images: int, path=None, device="cpu", slices=False):
    """Train a network and look at its blocks before training and after the epochs of `looks`: a row per look and block.

    how     the recipe
    path    a file for the network; rows of looks are kept beside it, so that a stopped training goes on with them
    slices  also look at slices, and then at blocks that change the shape, too
    """
    chosen = first_images(data.test_labels.numpy(), images)
    net.normalisation = data.normalisation
    file = None if path is None else path.with_suffix(".looks.json")
    rows = keep_rows(file, list)

    def look(net, record):
        if record["epoch"] in looks and record["epoch"] not in {row["epoch"] for row in rows}:
            rows.extend(spectra_of(net, data, chosen, record["epoch"], slices))
            if file is not None:
                write_rows(file, rows)

    look(net, {"epoch": 0})
    train(net, data, how, seed, path, device=device, quiet=True, on_epoch=look)
    return rows


def spectra_of(net, data, chosen, epoch: int, slices: bool = False) -> list[dict]:
    """The means over images of each branch, of the network as it is now, and its accuracy on all test images."""
    training = net.training
    accuracy = accuracy_of(net.eval(), data, len(data.test_images))
    net.train(training)
    images = prepare(net, data, data.test_images[chosen])
    table = nb.block_survey(net, images, ("residual", "error"), inner_blocks(net), values="full")
    cut = nb.block_survey(net, images, "slices", rows=SLICE_ROWS) if slices else table[:0]
    rows = []
    for number, name in enumerate(net.block_names, 1):
        spectra, errors = (table[(table["block"] == name) & (table["kind"] == kind)] for kind in ("residual", "error"))
        own = cut[cut["block"] == name]
        if not len(spectra) and not len(own):
            continue
        row = {"epoch": epoch, "accuracy, %": 100 * accuracy, "block": number}
        row |= {measure: float(np.mean(spectra[measure])) if len(spectra) else np.nan for measure in MEASURES}
        error = float(np.median(errors["step_error"])) if len(errors) else np.nan
        row["step_error"] = error if np.isfinite(error) else np.nan  # as a file of rows has it
        if slices:
            row |= {"%, slices": 100 * float(own["negative"].mean())}
            row |= {"S, slices": float(np.nanmean(own["stiffness_index"]))}
        rows.append(row)
    return rows


def show_training(page: Page, evidence: Evidence):
    rows = evidence.trained
    if not rows:
        return
    page.figure(
        draw_through_training(rows),
        "through_training",
        f"A ResNet-{DEPTH} on the digits, one seed, from its first weights on: ends of each branch's "
        f"spectrum and Euler's error, means over {evidence.looks} images.",
    )
    page.table("through_training", rows, "The same in numbers")


def show_geometry(page: Page, evidence: Evidence):
    rows = evidence.geometry
    if not rows:
        return
    page.table(
        "geometry",
        geometry_rows(rows),
        "Slices of a ResNet-18 of the paper's geometry, a quarter as wide, before and after training, beside Table 2",
    )
    page.figure(
        draw_through_training([row for row in rows if np.isfinite(row["max_re"])]),
        "geometry_through_training",
        "The same network through training: ends of each branch's spectrum and Euler's error, means over images.",
    )
    page.table("geometry_through_training", rows, "The same in numbers")


def geometry_rows(rows: Sequence[dict]) -> list[dict]:
    """Slices of a network with the blocks of ResNet-18, a row per block, before and after training, beside Table 2."""
    last = max(row["epoch"] for row in rows)
    table = []
    for number, (index, percent) in enumerate(zip(printed.INDEX[18], printed.PERCENT[18], strict=True), 1):
        row = {"block": number, "%, paper": percent, "S, paper": index}
        for epoch in (0, last):
            some = [look for look in rows if (look["epoch"], look["block"]) == (epoch, number)]
            for name in ("%, slices", "S, slices"):
                row[f"{name}, epoch {epoch}"] = float(np.mean([look[name] for look in some]))
        table.append(row)
    return table


def draw_through_training(rows: Sequence[dict], measures=("max_re", "min_re", "step_error")):
    """Each branch's measures against the epochs of its network's training; the first point is before training."""
    with style.figure(1, len(measures), height=2.5) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(dict.fromkeys(row["block"] for row in rows)):
                some = [row for row in rows if row["block"] == block]
                x, y = ([row[name] for row in some] for name in ("epoch", measure))
                axis.plot(x, y, "o-", color=style.COLOURS[number], markersize=3, label=f"{block}")
            axis.set_xscale("symlog", base=2, linthresh=1.0)
            ticks = sorted({row["epoch"] for row in rows})
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.set(xlabel="epoch", title=LABELS[measure])
        axes[0, 1].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, -1].set_yscale("log")
        plain_ticks(axes[0, -1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, title="block", loc="outside right center")
    return drawing


# ---- Deeper networks ----

DEPTHS = (14, 20, 32, 44, 56)


def rows_of_depths(folder: Path, epochs: int) -> list[dict]:
    """A row per depth; minutes, so that rows and networks are kept in the folder."""
    rows = []
    for depth in DEPTHS:
        path = folder / f"depth{depth}-{epochs}-seed0.safetensors"
        made = functools.partial(row_of_depth, depth, epochs, 10, 0, path)
        rows += keep_rows(path.with_suffix(".json"), lambda made=made: [made()])
    return rows


def row_of_depth(depth: int, epochs: int, images: int, seed: int, path=None) -> dict:
    """Train one network, or go on with the one in `path`, and summarise the branches of its blocks.

    depth   layers, 6 n + 2
    epochs  of the recipe "digits"
    images  test images that are looked at, balanced over labels
    """
    data = datasets.load("digits")
    torch.manual_seed(seed)
    net = nb.resnet(depth, len(data.names), widths=WIDTHS)
    train(net, data, recipe("digits", epochs=epochs), seed, path, device="cpu", quiet=True)
    seen = prepare(net, data, data.test_images[first_images(data.test_labels.numpy(), images)])
    blocks = inner_blocks(net)
    spectra = nb.block_survey(net, seen, "residual", blocks, "full")
    both = nb.block_survey(net, seen, ("norms", "error"), blocks)
    wrong, norms = (both[both["kind"] == kind] for kind in ("error", "norms"))
    return {
        "layers": depth, "seed": seed, "blocks": len(blocks),
        "accuracy, %": 100 * accuracy_of(net, data, len(data.test_images)),
        "sigma, median": float(np.median(norms["largest_singular"])),
        "sigma, largest": float(norms["largest_singular"].max()),
        "rho, median": float(np.median(spectra["spectral_radius"])), "min Re, lowest": float(spectra["min_re"].min()),
        "blocks beyond -2, %": 100 * float((spectra["min_re"] < -2.0).mean()),
        "NSI, median": float(np.median(wrong["nsi"])), "error, median": float(np.median(wrong["step_error"])),
    }  # fmt: skip


def exponent(rows: Sequence[dict], measure: str) -> float:
    """The power of the number of blocks with which a measure changes, by least squares of logarithms."""
    x, y = (np.log([row[name] for row in rows]) for name in ("blocks", measure))
    return float(np.polyfit(x, y, 1)[0])


def show_depths(page: Page, evidence: Evidence):
    rows = evidence.depths
    if not rows:
        return
    powers = [exponent(rows, measure) for measure in ("sigma, median", "rho, median")]
    page.words(
        f"From {rows[0]['blocks']} to {rows[-1]['blocks']} blocks the median largest singular "
        f"value changes as the number of blocks to the power {powers[0]:.2f}, the median spectral radius to "
        f"{powers[1]:.2f}; -1 would be steps that become smaller as there are more of them."
    )
    page.table(
        "depths",
        rows,
        "Branches of networks of 14 to 56 layers on the digits",
        "Li and Papyan (NeurIPS 2023) find that largest singular values of branches fall as 1 / depth.",
    )
    page.figure(
        draw_depths(rows),
        "depths",
        "Median over blocks and images of a branch's largest singular value and spectral radius, against the number of "
        "blocks that keep the shape. Dashed: as 1 / blocks, through the first point.",
    )


def draw_depths(rows: Sequence[dict]):
    """Medians of two measures against the number of blocks, with the law 1 / blocks through the first point."""
    from matplotlib.ticker import NullLocator

    with style.figure(height=2.6) as (drawing, axes):
        axis = axes[0, 0]
        blocks = np.array([row["blocks"] for row in rows])
        looks = (("sigma, median", "o", "largest singular value"), ("rho, median", "s", "spectral radius"))
        for measure, mark, name in looks:
            values = np.array([row[measure] for row in rows])
            (line,) = axis.plot(blocks, values, f"{mark}-", markersize=4, label=name)
            axis.plot(blocks, values[0] * blocks[0] / blocks, "--", color=line.get_color(), linewidth=0.9)
        axis.plot([], [], "--", color="#666666", linewidth=0.9, label="1 / blocks, through the first")
        axis.set(xscale="log", yscale="log", xlabel="blocks that keep the shape", ylabel="median over branches")
        plain_ticks(axis.yaxis)
        axis.set_xticks(blocks, [str(block) for block in blocks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.legend()
    return drawing


# ---- Figure 2: a ResNet and an ODE-net that are fitted to the same points ----

POINTS, HIDDEN, STEPS = 64, 32, 8
LINE = 2.5, 41  # the predictions are drawn from -2.5 to 2.5, at so many points
SCALES = (1.0, 2.0, 4.0, 8.0)  # of the field, for the distance against h rho
TOLERANCE = 1e-5
LENGTHS = (5, 30, 300, 1500)  # rounds of the fits after which they are compared: the paper gives none
FEWEST_SEEDS, FEWEST_LENGTHS = 3, 2
APART = 0.1  # of the outputs' size: predictions nearer than that are the same
SOLVER = "dopri5"


class Field(nn.Module):
    """The right-hand side f(u) of both networks; counts its evaluations."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2)).double()
        self.evaluations = 0

    def forward(self, t, u):
        self.evaluations += 1
        return self.layers(u)


def residual_steps(field, u):
    """Eight Euler steps, by the loop that every other network of this laboratory runs through."""
    return equal_steps(lambda u: field(0.0, u), u, odelab.EULER, STEPS)


def flow(field, u):
    return odeint(field, u, torch.tensor([0.0, 1.0], dtype=u.dtype), rtol=TOLERANCE, atol=TOLERANCE, method=SOLVER)[1]


def fit_both(seed: int, rounds: int) -> list[Fit]:
    """Fit a residual network and an ODE-net to the same random points, and set each beside the other's scheme.

    Returns what there is after `rounds` rounds, and after those of LENGTHS that are fewer.
    """
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn((2, POINTS, 2), generator=generator, dtype=torch.float64)
    pairs = []
    for scheme in (residual_steps, flow):
        torch.manual_seed(seed)
        field = Field()
        pairs.append((scheme, field, torch.optim.Adam(field.parameters(), lr=0.02)))
    fits = []
    for done in range(1, rounds + 1):
        losses = [train_once(*pair, x, y) for pair in pairs]
        if done == rounds or done in LENGTHS:
            fits.append(compare_fits(done, seed, losses, [field for _, field, _ in pairs], x))
    return fits


def train_once(scheme, field, optimiser, x, y) -> float:
    """One step of a fit; returns the mean squared error before it."""
    optimiser.zero_grad()
    loss = (scheme(field, x) - y).square().mean()
    loss.backward()
    optimiser.step()
    return float(loss.detach())


def compare_fits(rounds: int, seed: int, losses: list[float], fields: list[Field], x) -> Fit:
    """Both fitted fields, each under its own scheme and under the other's."""
    residual, continuous = fields
    with torch.no_grad():
        predictions = residual_steps(residual, x), flow(continuous, x)
        continuous.evaluations = 0
        exact, evaluations = flow(continuous, x), continuous.evaluations
        return Fit(
            rounds,
            seed,
            loss_resnet=losses[0],
            loss_ode=losses[1],
            between_fits=distance(*predictions),
            residual_to_flow=distance(predictions[0], flow(residual, x)),
            flow_to_residual=distance(exact, residual_steps(continuous, x)),
            evaluations=evaluations,
            scales=tuple(scaled_distance(residual, x, factor) for factor in SCALES),
            curves=() if seed else predict_along_line(residual, continuous),
        )


def predict_along_line(residual: Field, continuous: Field) -> tuple[tuple[float, ...], ...]:
    """(x, both outputs of the residual network, both of the ODE-net) where the first input is x and the second is 0."""
    end, count = LINE
    x = torch.linspace(-end, end, count, dtype=torch.float64)[:, None]
    points = torch.cat((x, torch.zeros_like(x)), dim=1)
    rows = torch.cat((x, residual_steps(residual, points), flow(continuous, points)), dim=1)
    return tuple(tuple(round(value, 4) for value in row) for row in rows.tolist())


def scaled_distance(field, x, factor: float) -> tuple[float, float]:
    """(h rho at the points, distance of residual steps and flow) of `factor` times the field."""

    def scaled_field(t, u):
        return factor * field(t, u)

    jacobians = torch.func.vmap(torch.func.jacrev(lambda u: factor * field.layers(u)))(x)
    rho = np.mean([odelab.spectrum(J).spectral_radius for J in jacobians])
    return float(rho) / STEPS, distance(residual_steps(scaled_field, x), flow(scaled_field, x))


def distance(one, other) -> float:
    return float((one - other).square().sum(1).mean().sqrt())


def worlds_of_fits(chance, effect: float, n: int) -> tuple:
    """Fits of n seeds at every length: a tenth of the outputs apart, or a thirtieth."""
    apart = APART * np.exp(-1.1 * effect + 0.4 * chance.standard_normal((len(LENGTHS), n)))
    fits = [
        Fit(rounds, seed, 0.7, 0.7, float(apart[length, seed]), 0.0, 0.0, 50.0, ())
        for length, rounds in enumerate(LENGTHS)
        for seed in range(n)
    ]
    return fits, ()


@rule(
    "ResNets correspond to ODE-nets",
    "Figure 2",
    fixed="after the data: with 2 seeds of 300 rounds and 5 of 1,500 known, because the verdict follows the length of "
    "the fit, of which the paper says nothing; by the old rule it was supported after 5 rounds, undecided after 300 "
    "and contradicted after 1,500",
    fewest=FEWEST_SEEDS,
    negligible=APART,
    worlds=Worlds(
        worlds_of_fits, 8, "seeds", "predictions that are 0.03 apart at every length (without an effect: 0.1 apart)", 5
    ),
)
def judge_fits(fits: Sequence[Fit], solved: Sequence[dict]) -> tuple[Verdict, str]:
    """How far the predictions of both are apart at outputs of size 1, after fits of several lengths, which are readings
    of a paper that names none. At each length: supported where the geometric mean over seeds is certainly below 0.1,
    contradicted where it is certainly above; intervals hold together. Lengths that differ in their verdict make it one
    about the optimisation, and one length alone decides nothing."""
    by_length: dict[int, list[Fit]] = {}
    for fit in sorted(fits, key=lambda fit: fit.rounds):
        by_length.setdefault(fit.rounds, []).append(fit)
    if not by_length:
        return NOT_RUN, "n = 0: nothing was fitted; `--ode-net` fits both."
    few = enough({f"{rounds} rounds": some for rounds, some in by_length.items()}, FEWEST_SEEDS)
    few = few or enough({"the fits": list(by_length)}, FEWEST_LENGTHS, "lengths")
    level = corrected(len(by_length))
    logs = {rounds: mean_with_interval([np.log(fit.between_fits) for fit in some], level)
            for rounds, some in by_length.items()}  # fmt: skip
    verdict = joint([of_interval(e.less(float(np.log(APART))), sign=-1) for e in logs.values()])
    listed = "; ".join(
        f"after {rounds:,} rounds {interval_text(Estimate(*np.exp([e.value, e.low, e.high])), '.2f')} (n = {e.n} seeds)"
        for rounds, e in logs.items()
    )
    words = f"Predictions apart, at outputs of size about 1: {listed}."
    scaled = [pair for fit in fits for pair in fit.scales]
    if scaled:
        h_rho, far = max(scaled)
        words += (
            " The same field under both schemes agrees as long as h rho is small: at "
            f"{h_rho:.1f} it is {far:.2f} apart."
        )
    return (UNDECIDED if few else verdict), few + words + on_the_digits(solved)


def on_the_digits(solved: Sequence[dict]) -> str:
    """A sentence about networks on the digits that are run by another scheme than the one they were trained with."""
    parts = []
    for trained in dict.fromkeys(row["trained by"] for row in solved):
        some = [row for row in solved if row["trained by"] == trained]
        own, other = (
            np.mean([row["accuracy, %"] for row in some if (row["run by"] == trained) is wanted])
            for wanted in (True, False)
        )
        parts.append(f"trained by {trained} {own:.0f} % as they were trained and {other:.0f} % under the other scheme")
    return f" Networks on the digits have an accuracy of: {'; '.join(parts)}." if parts else ""


def judge_figure_2(evidence: Evidence) -> list[Finding]:
    fits = {(fit.rounds, fit.seed): fit for fit in (*evidence.earlier, *evidence.fits)}
    return [judge_fits(list(fits.values()), evidence.solved)]


def show_figure_2(page: Page, evidence: Evidence):
    fits = evidence.fits
    if drawn := [fit for fit in fits if fit.curves]:
        page.figure(
            draw_predictions(drawn),
            "predictions",
            "Figure 2: what the ResNet (solid) and the ODE-net (dashed) make of points (x, 0), after as many rounds of "
            f"fitting to {POINTS} random points as stand above each panel; the first seed.",
        )
    if fits:
        longest = max(fit.rounds for fit in fits)
        page.table(
            "ode_net",
            map(fit_row, fits),
            "Fits to random points",
            "64 points in the plane, a field of 32 tanh units, eight steps against dopri5 at 1e-5; the paper states "
            "none of these numbers.",
        )
        page.figure(
            draw_scales([fit for fit in fits if fit.rounds == longest]),
            "ode_net",
            f"How far eight residual steps and the exact flow of the same field are apart after {longest} rounds, when "
            "the field is scaled up. "
            "The dotted line is Euler's limit, h rho = 2.",
        )
    if evidence.solved:
        page.table(
            "tolerances",
            evidence.solved,
            "A ResNet-14 and an ODE-net on the digits, run by Euler's steps and by dopri5 at several tolerances",
            "Evaluations of a branch for each block that keeps the shape; Euler takes one.",
        )
        page.figure(
            draw_tolerances(evidence.solved),
            "tolerances",
            "Accuracy and evaluations, run by Euler's steps and by dopri5 at several tolerances. A line is a network.",
        )


def fit_row(fit: Fit) -> dict:
    names = ("rounds", "seed", "loss, ResNet", "loss, ODE-net", "predictions apart", "ResNet to its own flow",
             "ODE-net to its own steps", "evaluations, ODE-net")  # fmt: skip
    return dict(zip(names, dataclasses.astuple(fit), strict=False))


def draw_predictions(fits: Sequence[Fit]):
    """Both outputs of both fitted networks over x, a panel for every length of the fit."""
    with style.figure(1, len(fits), height=2.4, sharey=True) as (drawing, axes):
        for axis, fit in zip(axes[0], fits, strict=True):
            x, *outputs = np.transpose(fit.curves)
            for number, values in enumerate(outputs):
                look = {"color": style.COLOURS[number % 2], "linestyle": "-" if number < 2 else "--"}
                axis.plot(x, values, label=f"{'ResNet' if number < 2 else 'ODE-net'}, output {number % 2 + 1}", **look)
            axis.set(title=f"{fit.rounds:,} rounds: {fit.between_fits:.2f} apart", xlabel="x")
        axes[0, 0].set_ylabel("prediction")
        axes[0, 0].legend(fontsize=6)
    return drawing


def draw_scales(fits: Sequence[Fit]):
    """How far residual steps and the exact flow of one field are apart, against h rho."""
    with style.figure(height=2.6) as (drawing, axes):
        for fit in fits:
            x, y = np.transpose(fit.scales)
            axes[0, 0].plot(x, y, "o-", markersize=3, label=f"seed {fit.seed}")
        axes[0, 0].axvline(2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="h rho", ylabel="ResNet to the flow of its own field")
        plain_ticks(axes[0, 0].xaxis, axes[0, 0].yaxis)
        axes[0, 0].legend()
    return drawing


# ---- The same on the digits, run by another scheme than the one they were trained with ----

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TRAINED_AT = 1e-2  # relative and absolute, as everywhere here


def rows_of_seeds(folder, epochs: int, seeds: int = 2) -> list[dict]:
    """The rows of several seeds; minutes, so that rows and networks are kept in the folder."""
    rows = []
    for seed in range(seeds):
        made = functools.partial(tolerance_rows, seed, epochs, 300, folder)
        rows += keep_rows(folder / f"tolerances-{epochs}-seed{seed}.json", made)
    return rows


def tolerance_rows(seed: int, epochs: int, images: int, folder=None) -> list[dict]:
    """A row per network (trained with Euler's steps, trained as an ODE-net) and tolerance, and one for Euler's steps.

    epochs  of the recipe "digits"
    images  test images that are answered
    folder  where the networks are kept, so that a stopped training goes on
    """
    data = datasets.load("digits")
    images = min(images, len(data.test_images))
    rows = []
    for trained_by, solver in (("Euler", None), (SOLVER, SOLVER)):
        torch.manual_seed(seed)
        net = nb.resnet(DEPTH, len(data.names), widths=WIDTHS, solver=solver, tolerance=TRAINED_AT)
        path = None if folder is None else folder / f"ode-{trained_by}-{epochs}-seed{seed}.safetensors"
        train(net, data, recipe("digits", epochs=epochs), seed, path, device="cpu", quiet=True)
        rho = h_rho(net, data)
        for tolerance in (None, *TOLERANCES):
            run = under_solver(net, tolerance)
            branches = [block.branch for block in run.blocks if not block.opens]
            calls: list[int] = []
            for branch in branches:
                branch.register_forward_hook(lambda *_, calls=calls: calls.append(1))
            accuracy = accuracy_of(run, data, images)
            rows.append({
                "trained by": trained_by, "seed": seed, "run by": "Euler" if tolerance is None else SOLVER,
                "tolerance": float("nan") if tolerance is None else tolerance, "accuracy, %": 100 * accuracy,
                "evaluations a block": len(calls) / max(1, images // 128) / len(branches), "h rho, median": rho,
            })  # fmt: skip
    return rows


def under_solver(net, tolerance: float | None):
    """The same weights under dopri5 at a tolerance, or under Euler's steps."""
    solver = None if tolerance is None else SOLVER
    other = nb.resnet(DEPTH, net.config["num_classes"], widths=WIDTHS, solver=solver, tolerance=tolerance or TRAINED_AT)
    other.load_state_dict(net.state_dict())
    other.normalisation = net.normalisation
    return other.eval()


def h_rho(net, data, images: int = 10) -> float:
    """The median spectral radius of the branches, at the states of Euler's steps."""
    euler = under_solver(net, None)
    seen = prepare(euler, data, data.test_images[first_images(data.test_labels.numpy(), images)])
    table = nb.block_survey(euler, seen, "residual", inner_blocks(euler), "full")
    return float(np.median(table["spectral_radius"]))


def draw_tolerances(rows: Sequence[dict]):
    """Accuracy and evaluations a block against the tolerance of dopri5, for networks trained in two ways."""
    from matplotlib.lines import Line2D

    solvers = ["Euler", *sorted({row["tolerance"] for row in rows if row["run by"] != "Euler"}, reverse=True)]
    ticks = ["Euler", *(f"{tolerance:.0e}".replace("e-0", "e-") for tolerance in solvers[1:])]
    looks = dict(zip(sorted({row["seed"] for row in rows}), ("o-", "s--", "D:", "^-."), strict=False))
    with style.figure(1, 2, height=2.8) as (drawing, axes):
        for measure, axis in zip(("accuracy, %", "evaluations a block"), axes[0], strict=True):
            for trained, colour in zip(dict.fromkeys(row["trained by"] for row in rows), style.COLOURS, strict=False):
                for seed, look in looks.items():
                    some = [row for row in rows if row["trained by"] == trained and row["seed"] == seed]
                    solved = [row for row in some if row["run by"] != "Euler"]
                    x, y = [solvers.index(row["tolerance"]) for row in solved], [row[measure] for row in solved]
                    label = f"trained by {trained}" if seed == min(looks) else None
                    axis.plot(x, y, look, color=colour, markersize=3.5, label=label)
                    y = [row[measure] for row in some if row["run by"] == "Euler"]
                    axis.plot([0] * len(y), y, look[0], color=colour, markersize=4.5)
            axis.axvline(0.5, color="#CCCCCC", linewidth=0.8)
            axis.set_xticks(range(len(solvers)), ticks)
            axis.set(xlabel="run by Euler, or by dopri5 of this tolerance", ylabel=measure)
        axes[0, 1].set_yscale("log")
        plain_ticks(axes[0, 1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        handles += [Line2D([], [], color="#666666", linestyle=look[1:], marker=look[0]) for look in looks.values()]
        names += [f"seed {seed}" for seed in looks]
        drawing.legend(handles, names, loc="outside lower center", ncols=len(names))
    return drawing


EXHIBITS = (
    Exhibit("ResNet and ODE-net (Figure 2)", show_figure_2, judge_figure_2),
    Exhibit("Through training", show_training),
    Exhibit("", show_geometry),
    Exhibit("Deeper networks", show_depths),
)
