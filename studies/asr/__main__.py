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
from studies.asr import design, finetuning, measures, results, style, told
from studies.asr.design import TIERS, Plan, Run
from studies.asr.findings import Evidence, findings
from studies.lab import jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.options import TrainingOptions, check_training
from studies.lab.page import Page

STUDY = "asr"
TRAINED = {  # parts that look at trainings, and those parts of the design that they look at
    "controls": ("controls", "origin", "small"),
    "noise": ("noise", "small"),
    "theorem": ("controls", "small"),
    "replace": ("finetuned",),
    "dynamics": ("dynamics",),
    "backbones": ("backbones",),
    "beside": ("beside", "controls", "small"),
    "ablation": ("uses", "fixed", "starts", "bare", "controls", "small"),
}
PARTS = (*TRAINED, "stripes", "gradcam", "spatial", "style", "speed", "merging")
PRESETS = {
    "quick": {"images": 1000, "tested": 2000, "resamples": 200, "speed_depth": 56, "seconds": 40.0},
    "full": {"images": 1500, "tested": 10_000, "resamples": 1000, "speed_depth": 164, "seconds": 300.0},
}
SMOKE = {"dataset": "digits", "own": True}
SMOKE_SIZES = {"images": 64, "tested": 64, "resamples": 20, "speed_depth": 8, "seconds": 0.5}
REPLACED = ("SE", "ECA", "IE", "SRM", "FCA")
MAP_IMAGES, SPATIAL_IMAGES = 500, 600


Part = Literal[
    "all", "controls", "noise", "theorem", "replace", "dynamics", "backbones", "beside", "ablation", "stripes",
    "gradcam", "spatial", "style", "speed", "merging",
]  # fmt: skip


@dataclasses.dataclass
class Arguments(TrainingOptions):
    """Is attention a constant, what does a constant do, and what do the controls do?"""

    part: tuple[Part, ...] = ("all",)
    """Which parts of the paper; with --train, what is trained, too."""
    preset: Literal["quick", "full"] = "quick"
    """quick: 2,000 test images, speed of ResNet-56; full: all of them, more resamples, ResNet-164."""
    tier: tuple[Literal[1, 2, 3, 4, 5], ...] = tuple(TIERS)
    """Which networks: 1 controls, 2 small ones, 3 other backbones, 4 ASR beside a live module, 5 the ablations."""
    depth: int = 20
    """Layers of the networks that are trained."""
    recipe: str = "short"
    """How they are trained; see netbridge.recipes.RECIPES."""
    seeds: tuple[int, ...] = (8,)
    """One number: so many, from 0 on; several: these. The small parts take the first three of them."""
    out: Path = Path("results/asr")
    """Where results, figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    sizes = SMOKE_SIZES if arguments.smoke else PRESETS[arguments.preset]
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, **SMOKE)
    data, notice, arguments = images_or_fallback(STUDY, arguments, "shows networks trained on")
    arguments = settled(arguments)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    parts = PARTS if "all" in arguments.part else arguments.part
    with plain_errors(STUDY):
        plan = Plan(arguments, {name for part in parts for name in TRAINED.get(part, ())})
    page = Page(
        STUDY,
        arguments,
        "ASR: attention as a learned constant, and its controls",
        f"ResNets on {data.name}. After Zhong, Huang, Wen, Qin and Lin, ASR: Attention-alike Structural "
        "Re-parameterization (2023).",
        notice,
    )
    if arguments.train:
        train(plan, data, painted="style" in parts and 2 in arguments.tier)
    if arguments.smoke:
        smoke_training(plan, data)

    evidence = gathered(parts, arguments, data, sizes, smoke=arguments.smoke)
    evidence.rows = found_rows(plan, arguments)

    page.heading("What these data say")
    page.words(
        "What ASR claims, in its own order. Small networks, one data set and a short training: the paper's scale is "
        "164 layers and 164 epochs, and CIFAR-10 stands for CIFAR-100 and STL-10 nowhere. Intervals: 95 %; over seeds "
        "by Dunnett's comparisons with one arm, of the last epoch, where every arm has at least three seeds; over "
        "images by the bootstrap or Student. The rules of the verdicts were fixed before the numbers; what has not "
        "been trained is undecided, and `--train` goes on."
    )
    page.findings(findings(evidence))
    told.tell(page, evidence, sizes)
    page.numbers["counts"] = {f"{part} {column}".strip(): {arm: len(found) for arm, found in arms.items()}
                              for (part, column), arms in evidence.rows.items()}  # fmt: skip
    page.close()


def train(plan: Plan, data, painted: bool):
    """Train what is missing of the plan; processes with the same `--out` share the work."""
    arguments = plan.arguments
    own = arguments.out / "runs"
    place = results.SHIPPED if arguments.ship else own

    def find(one):
        return (
            style.find(one, folders(arguments))
            if isinstance(one, style.Painting)
            else results.find(one, folders(arguments))
        )

    def carry_out(one):
        if isinstance(one, style.Painting):
            found = style.paint(one, data)
            style.write(found, place / f"{one.stem}.json")
            return found
        how = finetuning.carry_out if one.part == "finetuned" else results.carry_out
        return how(one, data, own, place, arguments.device, arguments.keep)

    jobs.work_off(lambda: queue(plan, painted), find, carry_out, own)


def queue(plan: Plan, painted: bool) -> list:
    """Everything to train in its order: the first style's networks stand among the claims, those of the others last."""
    runs = plan.queue()
    if not painted:
        return runs
    paintings = style.planned(plan.arguments.seeds[: design.FEW])
    first = [one for one in paintings if one.style == paintings[0].style]
    early = [run for run in runs if plan.turn(run)[0] < design.PAINTED]
    return early + first + runs[len(early) :] + [one for one in paintings if one not in first]


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
    if "style" in parts:
        wanted = style.planned(arguments.seeds[: design.FEW])
        evidence.painted = [found for one in wanted if (found := style.find(one, folders(arguments)))]
    if "merging" in parts:
        evidence.merging = measures.merging()
    if "backbones" in parts:
        evidence.shapes = measures.shapes()
    if "speed" in parts:
        size, batch = (8, 4) if smoke else (32, 32)
        evidence.speeds = measures.speeds(sizes["speed_depth"], size, batch, sizes["seconds"])
    return evidence


def settled(arguments: Arguments) -> Arguments:
    """Every number given, and sensible."""
    require_at_least(1, arguments, "images", "epochs", "threads")
    return dataclasses.replace(arguments, seeds=check_training(arguments))


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
