"""The ASR paper, whole: attention as a learned constant, against the controls it never met (about 3 min).

Claims examined: a step size per channel, learnt through an attention module and folded into the weights, raises
accuracy at no cost, and the constants that attention turns into are priors of the data (Zhong, Huang, Wen, Qin and Lin,
ASR: Attention-alike Structural Re-parameterization, 2023). One backbone, one data set, a small scale; CIFAR-10 stands
for CIFAR-100 and STL-10 nowhere. Default: shipped networks looked at anew, and the results of trainings that come with
the repository; `--train` makes what is missing.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import torch

import netbridge as nb
from studies.asr import design, figures, finetuning, measures, results, tables
from studies.asr.design import TIERS, Plan, Run
from studies.asr.findings import Evidence, findings
from studies.lab import jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.page import Page

STUDY = "asr"
PARTS = ("stripes", "replace", "theorem", "gradcam", "spatial", "speed", "merging", "trained")
PRESETS = {
    "quick": {"images": 1000, "tested": 2000, "resamples": 200, "speed_depth": 56, "seconds": 40.0},
    "full": {"images": 1500, "tested": 10_000, "resamples": 1000, "speed_depth": 164, "seconds": 300.0},
}
SMOKE = {"dataset": "digits", "own": True}
SMOKE_SIZES = {"images": 64, "tested": 64, "resamples": 20, "speed_depth": 8, "seconds": 1.0}
REPLACED = ("SE", "ECA", "IE", "SRM", "FCA")
MAP_IMAGES, SPATIAL_IMAGES = 500, 600


@dataclasses.dataclass
class Arguments:
    """Is attention a constant, what does a constant do, and what do the controls do?"""

    part: tuple[Literal["all", "stripes", "replace", "theorem", "gradcam", "spatial", "speed", "merging", "trained"], ...] = ("all",)  # fmt: skip # noqa: E501
    """Which parts; stripes are looked at before gates are replaced, trained is what trainings have left."""
    preset: Literal["quick", "full"] = "quick"
    """quick: 2,000 test images, speed of ResNet-56; full: all of them, more resamples, ResNet-164."""
    train: bool = False
    """First train what is missing; killed and started again, it goes on. Processes with one --out share the work."""
    tier: tuple[Literal[1, 2, 3, 4, 5], ...] = tuple(TIERS)
    """Which networks: 1 controls, 2 small ones, 3 other backbones, 4 ASR beside a live module, 5 the ablations."""
    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What to train on, and whose networks to look at."""
    fallback: Literal["digits"] | None = None
    """Take this instead where the data set cannot be had; without it, that is an error."""
    depth: int = 20
    """Layers of the networks that are trained."""
    recipe: str = "short"
    """How they are trained; see netbridge.recipes.RECIPES."""
    epochs: int | None = None
    """Other epochs than the recipe's."""
    seeds: tuple[int, ...] = (8,)
    """One number: so many, from 0 on; several: these. The small parts take the first three of them."""
    images: int | None = None
    """Train on the first so many images only."""
    own: bool = False
    """Leave the results that come with the repository aside."""
    ship: bool = False
    """Put new results where those of the repository are."""
    keep: bool = False
    """Keep the trained networks, not only what they scored."""
    device: str | None = None
    """cpu, cuda, mps, for trainings; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/asr")
    """Where results, figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    sizes = SMOKE_SIZES if arguments.smoke else PRESETS[arguments.preset]
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, **SMOKE)
    data, notice, arguments = images_or_fallback(STUDY, arguments, "shows networks trained on")
    if notice:
        print(f"{notice}\n", flush=True)
    arguments = settled(arguments)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    with plain_errors(STUDY):
        plan = Plan(arguments)
    if arguments.train:
        train(plan, data)
    if arguments.smoke:
        smoke_training(plan, data)

    parts = PARTS if "all" in arguments.part else arguments.part
    evidence = gathered(parts, arguments, data, sizes, smoke=arguments.smoke)
    rows = [] if "merging" not in parts else measures.merging()
    if "trained" in parts:
        evidence.rows = found_rows(plan, arguments)

    page = Page(
        STUDY,
        arguments,
        "ASR: attention as a learned constant, and its controls",
        f"ResNets on {data.name}. After Zhong, Huang, Wen, Qin and Lin, ASR: Attention-alike Structural "
        "Re-parameterization (2023).",
        notice,
    )
    page.heading("What these data say")
    page.words(
        "One kind of network, one data set and a short training: the paper's scale is 164 layers and 164 epochs, and "
        "CIFAR-10 stands for CIFAR-100 and STL-10 nowhere. Intervals: 95 %; over seeds by Dunnett's comparisons with "
        "one arm, of the last epoch, where every arm has at least three seeds; over images by the bootstrap or "
        "Student. The rules of the verdicts were fixed before the numbers."
    )
    page.findings(findings(evidence))
    tell(page, evidence, rows, sizes)
    page.numbers["counts"] = {f"{part} {column}".strip(): {arm: len(found) for arm, found in arms.items()}
                              for (part, column), arms in evidence.rows.items()}  # fmt: skip
    page.close()


def train(plan: Plan, data):
    """Train what is missing of the plan; processes with the same `--out` share the work."""
    arguments = plan.arguments
    own = arguments.out / "runs"
    place = results.SHIPPED if arguments.ship else own

    def carry_out(run):
        how = finetuning.carry_out if run.part == "finetuned" else results.carry_out
        return how(run, data, own, place, arguments.device, arguments.keep)

    jobs.work_off(plan.queue, lambda run: results.find(run, folders(arguments)), carry_out, own)


def smoke_training(plan: Plan, data):
    """One network of a few layers, with noise, for one epoch on a few digits: the whole way of a result."""
    recipe = jobs.recipe_of("digits", "digits", epochs=1)
    job = jobs.Job("digits", "asr(se(reduction=4))", 0, recipe, 8, 4, images=128, noise=(0.8, 0.8, 0.1))
    run = Run("noise", design.FAITHFUL, job, "(0.8, 0.8)")
    own = plan.arguments.out / "runs"
    if results.find(run, [own]) is None:
        results.carry_out(run, data, own, own, "cpu")


def folders(arguments) -> tuple[Path, ...]:
    """Where results are looked for."""
    own = arguments.out / "runs"
    return (own,) if arguments.own else (own, results.SHIPPED)


def found_rows(plan: Plan, arguments) -> dict:
    """The results that are there: {(part, column): {arm: [Result]}}, arms without any included."""
    rows: dict = {}
    for run in plan.runs():
        arms = rows.setdefault((run.part, run.column), {})
        found = results.find(run, folders(arguments))
        arms.setdefault(run.arm, []).extend([] if found is None else [found])
    return rows


def gathered(parts, arguments, data, sizes, smoke: bool) -> Evidence:
    """Everything that is measured anew on shipped networks."""
    evidence, dataset = Evidence(), data.name
    seeds = (0,) if smoke else (0, 1)
    live = design.LIVE[:1] if smoke else design.LIVE
    if {"stripes", "replace"} & set(parts):
        for controller in live:
            for seed, path in measures.shipped(dataset, controller, seeds):
                name = networks.written(controller)
                found, after = measures.shares(name, seed, path, data, sizes["images"], sizes["resamples"])
                evidence.shares.append(found)
                if "replace" in parts and name in REPLACED:
                    evidence.replaced.append(measures.replaced(found, after, path, data, sizes["tested"]))
                print(f"{name}, seed {seed}: looked at.", flush=True)
    if "theorem" in parts:
        for name, controller in (("plain", "constant"), ("ASR(SE)", "asr-se")):
            for seed, path in measures.shipped(dataset, controller, seeds):
                evidence.bounds.append(measures.bounds(name, seed, path, data, 4 if smoke else results.BOUND_IMAGES))
    if "gradcam" in parts:
        count = min(MAP_IMAGES, sizes["tested"])
        for name, controller in (("plain", "constant"), ("SE", "se"), ("SRM", "srm"))[: 2 if smoke else 3]:
            for seed, path in measures.shipped(dataset, controller, seeds):
                evidence.maps.append(measures.maps(name, seed, path, data, count))
    if "spatial" in parts:
        for seed, path in measures.shipped(dataset, "cbam", seeds):
            evidence.spatial.append(measures.positions(seed, path, data, min(SPATIAL_IMAGES, sizes["tested"])))
    if "speed" in parts:
        size, batch = (8, 4) if smoke else (32, 32)
        evidence.speeds = measures.speeds(sizes["speed_depth"], size, batch, sizes["seconds"])
    return evidence


def tell(page, e: Evidence, merging: list[dict], sizes):
    """The evidence, part by part."""
    if any(e.accuracies("controls").values()):
        page.heading("ASR and its controls")
        if e.accuracies("controls").get(design.PLAIN):
            page.figure(
                figures.controls_figure(e),
                "controls",
                "Every arm above the mean of the plain networks. Small marks are single seeds of the last epoch.",
            )
        page.table("controls", tables.result_rows(e, "controls"), "Controls")
        page.table("origin", tables.result_rows(e, "origin"), "Live SE, its biases at 0, and psi decayed")
        page.table("psi", tables.psi_rows(e), "What becomes of psi", printed=False)
    if noisy := tables.noise_rows(e):
        page.heading("Noise in the normalisations (Table 8)")
        page.words(
            f"ResNet-20 at {design.SMALL} x {design.SMALL} pixels, {design.SMALL_EPOCHS} epochs. Constant noise (a, b) "
            "is a batch normalisation whose scale starts at a and whose shift starts at b: the same functions, begun "
            "elsewhere. Random noise of standard deviation s is drawn per batch and channel."
        )
        page.figure(figures.noise_figure(e), "noise", "Test accuracy by noise and arm, every seed a mark.")
        page.table("noise", noisy, "Table 8")
    if e.shares:
        page.heading("Stripes: are attention values constants? (Figures 2, 22 to 28)")
        page.words(
            "The share of the gates' variance that is the channel's: the variance over channels of the mean gates, "
            "over that plus the mean over channels of the variance over images. 1 means perfect stripes. Deviations "
            "are never compared with those of the input: a sigmoid divides them by four at least."
        )
        page.figure(
            figures.stripes_figure(e.shares),
            "stripes",
            "Twenty images by channels of the first block of the last stage. From the left: the mean of the slope over "
            "the map, the gates, and the gates of the same network before training.",
        )
        page.figure(
            figures.shares_figure(e.shares),
            "shares",
            "Share of the gates' variance that is the channel's, by block. Dotted: before training; nothing is drawn "
            "where untrained gates are exactly constant.",
        )
        if any(one.origin for one in e.shares):
            page.figure(
                figures.origin_figure(e.shares),
                "origin",
                "The mean gate of every channel before training and after it. On the grey line it has not moved.",
            )
        page.table("shares", tables.share_rows(e.shares), "Share by block", printed=False)
    if e.replaced:
        page.heading("Gates replaced by their means (Section 6)")
        page.figure(
            figures.replacement_figure(e.replaced),
            "replacement",
            "Points of test accuracy that are gained when every gate becomes its mean over training images. Open "
            "marks: with the statistics of the normalisations taken anew.",
        )
        page.table("replaced", tables.replaced_rows(e.replaced), "Replacement")
    if e.bounds:
        page.heading("Theorem 6.1")
        page.figure(figures.bounds_figure(e.bounds), "bounds", "The bound on a perturbation, and its largest growth.")
        page.table("bounds", tables.bound_rows(e.bounds), "Bound and growth")
    if e.maps:
        page.heading("Class activation maps (Figure 4)")
        page.words("Behind an average over the map and a linear layer, Grad-CAM is CAM: one forward pass.")
        page.figure(
            figures.maps_figure(e.maps), "gradcam", "Mean maps, of the pictures straight and rolled by 6 pixels."
        )
        page.table("gradcam", tables.map_rows(e.maps), "Mass of the maps")
    if e.spatial:
        page.heading("Spatial attention (Figure 29)")
        page.figure(
            figures.spatial_figure(e.spatial),
            "spatial",
            "The mean spatial gate of CBAM by block, and the share of its variance that is the position's.",
        )
        page.table("spatial", tables.spatial_rows(e.spatial), "CBAM's spatial gates", printed=False)
    if e.speeds:
        page.heading("Speed and merging (Table 1, Figure 3)")
        page.figure(
            figures.speed_figure(e.speeds),
            "speed",
            f"Speed of a ResNet-{sizes['speed_depth']}, one thread, over the plain network's in the same round.",
        )
        page.table("speed", tables.speed_rows(e.speeds), "Speed")
    page.table(
        "merging", merging, "Merged and folded against unmerged, error relative to the largest logit", printed=False
    )
    if any(e.rows.get(("dynamics", ""), {}).values()):
        page.heading("What converges when (Figures 2c, 11 to 18)")
        page.figure(
            figures.dynamics_figure(e),
            "dynamics",
            "How far gates, scales of normalisations and logits move from one epoch to the next, relative to their own "
            "spread. The rate drops after epochs 4 and 6 where it drops.",
        )
    for part, title in (
        ("beside", "ASR alone and beside a live module (Tables 3 and 4)"),
        ("uses", "Several uses, and constants of the same size (Tables 6 and 14)"),
        ("fixed", "psi that is not learnt (Table 7)"),
        ("starts", "Where psi starts (Table 13)"),
        ("bare", "A vector without a module (Table 9)"),
    ):
        page.table(part, tables.result_rows(e, part), title)


def settled(arguments: Arguments) -> Arguments:
    """Every number given, and sensible."""
    seeds = arguments.seeds
    seeds = tuple(range(seeds[0])) if len(seeds) == 1 else tuple(dict.fromkeys(seeds))
    if not seeds or min(seeds) < 0:
        raise SystemExit(f"`--seeds` is a number of seeds, or several of them from 0 on; got {arguments.seeds}.")
    require_at_least(1, arguments, "images", "epochs", "threads")
    if arguments.own and arguments.ship:
        raise SystemExit("`--own` leaves the results of the repository aside and `--ship` adds to them: choose one.")
    return dataclasses.replace(arguments, seeds=seeds)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
