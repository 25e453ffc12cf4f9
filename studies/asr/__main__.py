"""ASR paper, every table and figure: attention as a learned constant, beside controls of our own (about 3 min).

Claims examined: a step size per channel, learnt through an attention module and folded into the weights, raises
accuracy at no cost, and the constants that attention turns into are priors of the data (Zhong, Huang, Wen, Qin and Lin,
ASR: Attention-alike Structural Re-parameterization, 2023). The networks are small and see one data set: what is said of
CIFAR-10 is not said of CIFAR-100 or STL-10. By default the study looks at shipped networks anew and shows the results
of trainings that come with the repository; `--train` makes what is missing.

Last result (ResNet-20, CIFAR-10, quick, 2026-11-19): of 21 claims seven are contradicted, five true of some networks or
measures and not of others, nine undecided. SE's gates are stripes before training and remember the biases they were
drawn with; their means stand for SE and FCA (-0.6 to -1.3 points), not for SRM (-18 to -19), where an epoch of
fine-tuning leaves -4.6; at the first decay gates slow down 2.8 times less than all scales do (three networks); the
plain network looks at the centre most. With three seeds: under random noise of 0.2 ASR gains 1.4 points [0.3, 2.6],
with a larger variance and not a smaller one, and a constant half 1.1; undecided is whether ASR gains over plain (+0.8
[-0.0, +1.7] points at the small scale), does more than a constant half under constant noise, gains on RepVGG (+0.6
[-0.9, +2.1]; on ACNet +4.5 [2.4, 6.6]) or beyond a transformer without it (-0.9 [-2.6, +0.8]). Three uses in place of
one cost 3.4 points [2.2, 4.5]. Beside a live module ASR gains with SRM (+0.4 [0.2, 0.6]) and loses with SE (-0.9 [-1.6,
-0.2]) and IE (-7.4 [-8.3, -6.5]); constants psi that are not learnt lie within 0.3 points of a learnt one, in intervals
of 1.3, and psi that begin at 0.2 to 0.6 lie 0.6 to 1.3 points above the plain network, in intervals of 1.45. Other
sizes of noise have one seed each.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

import torch

import netbridge as nb
from studies.asr import gathering, sections, training
from studies.asr.design import TIERS, Tier
from studies.asr.findings import findings
from studies.asr.plan import Plan
from studies.lab import definitions
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.options import TrainingOptions, check_training, use_scale
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
SIZES = ((32, 32), (96, 4))  # pixels of CIFAR's and of STL's images, and how many at a time, that speed is measured at
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"images": 1000, "tested": 2000, "resamples": 200, "speed_depth": 56, "seconds": 45.0, "speeds": SIZES},
    "full": {
        "images": 1500,
        "tested": 10_000,
        "resamples": 1000,
        "speed_depth": 164,
        "seconds": 400.0,
        "speeds": SIZES,
    },
}
OURS = {"depth": 20, "recipe": "short", "seeds": (8,)}
PAPERS = {"depth": 164, "recipe": "paper", "seeds": (5,)}
SMOKE: dict[str, Any] = {"dataset": "digits", "own": True}
SMOKE_SIZES: dict[str, Any] = {
    "images": 64,
    "tested": 64,
    "resamples": 20,
    "speed_depth": 8,
    "seconds": 0.5,
    "speeds": ((8, 4),),
}


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
    full: bool = False
    """The paper's depth, recipes, backbones and number of seeds, all of it at one scale; give it a GPU. Its data are
    those of --dataset cifar100."""
    tier: tuple[Tier, ...] = tuple(TIERS)
    """Which networks: 1 controls, 2 small ones, 3 other backbones, 4 ASR beside a live module, 5 the ablations."""
    depth: int | None = None
    """Layers of the networks that are trained: 20, with --full 164."""
    recipe: str | None = None
    """How they are trained: short, with --full paper; see netbridge.recipes.RECIPES."""
    seeds: tuple[int, ...] = ()
    """One number: so many, from 0 on; several: these. Default 8, with --full 5; small parts take the first three."""
    resamples: int | None = None
    """How many resamples the bootstrap draws; the preset's by default."""
    only: tuple[str, ...] = ()
    """Only these rows of the tables and these modules, by their names there, such as plain half SRM."""
    checkpoint: tuple[Path, ...] = ()
    """Networks of your own, or folders of them, to look at in place of the shipped ones: .safetensors of this
    repository, or published weights of a known ResNet (.th, .pth, .pt)."""
    define: tuple[Path, ...] = ()
    """Python files that define controllers of your own: they are trained beside ASR's modules and on the backbones."""
    out: Path = Path("results/asr")
    """Where results, figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, **SMOKE)
    for path in arguments.define:
        definitions.run_file(path)
    arguments = fill_in_options(arguments)
    sizes = dict(SMOKE_SIZES if arguments.smoke else PRESETS[arguments.preset])
    sizes["resamples"] = arguments.resamples or sizes["resamples"]
    data, notice, arguments = images_or_fallback(STUDY, arguments, "shows networks trained on")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    parts = PARTS if "all" in arguments.part else arguments.part
    with plain_errors(STUDY):
        plan = Plan(arguments, {name for part in parts for name in TRAINED.get(part, ())})
        check_rows(plan)
    page = Page(
        STUDY,
        arguments,
        "ASR: attention as a learned constant, and its controls",
        f"ResNets on {data.name}. After Zhong, Huang, Wen, Qin and Lin, ASR: Attention-alike Structural "
        "Re-parameterization (2023).",
        notice,
    )
    if arguments.train or arguments.remeasure:
        training.train(plan, data, painted="style" in parts and 2 in arguments.tier)
    if arguments.smoke:
        training.smoke(plan, data)
    evidence = gathering.gather_evidence(parts, plan, data, sizes)

    page.heading("What these data say")
    page.words(
        f"What ASR claims, in its own order. {limits(plan)} Intervals: 95 %; over seeds "
        "by Dunnett's comparisons with one arm, of the last epoch, where every arm has at least three seeds; over "
        "images by the bootstrap or Student. The rules of the verdicts were fixed before the numbers, but for two "
        "that studies/asr/findings names; what has not been trained is undecided, and `--train` goes on."
    )
    page.findings(findings(evidence))
    page.words(page.name_older(stored_results(evidence)))
    sections.write_sections(page, evidence, sizes["speed_depth"], plan)
    page.numbers["counts"] = {f"{part} {column}".strip(): {arm: len(found) for arm, found in arms.items()}
                              for (part, column), arms in evidence.rows.items()}  # fmt: skip
    page.close()


def stored_results(evidence) -> list[dict]:
    """How each of the stored results was made that the evidence rests on; a network of two parts counts once."""
    rows = [result for arms in evidence.rows.values() for results in arms.values() for result in results]
    return list({json.dumps((one.specification, one.made)): one.made for one in (*rows, *evidence.painted)}.values())


def limits(plan: Plan) -> str:
    """What no number of this run can remove: one data set, and a scale that may not be the paper's."""
    words = f"Trained are {sections.of_scale(plan)}"
    if plan.arguments.full:
        words += ": the paper's depth, epochs and batches."
    else:
        words += f", and, at the small scale, {sections.of_small_scale(plan)}; the paper's scale is 164 layers and 164 "
        words += "epochs (`--full`)."
    return (
        f"{words} What is said of one data set is said of no other. Parts that look at finished networks (stripes, "
        "replacement, maps, spatial attention) look at those that come with the repository, or at `--checkpoint`."
    )


def check_rows(plan: Plan):
    """Every name that `--only` holds is a row or a module."""
    known = dict.fromkeys([run.arm for run in plan.everything()] + gathering.MODULES)
    for name in plan.arguments.only:
        if name not in known:
            raise ValueError(f"`--only` knows {', '.join(known)} in these parts; got {name!r}.")


def fill_in_options(arguments: Arguments) -> Arguments:
    """Every number given, and sensible."""
    arguments = use_scale(arguments, PAPERS if arguments.full else OURS)
    require_at_least(1, arguments, "images", "epochs", "threads", "depth", "resamples")
    return dataclasses.replace(arguments, seeds=check_training(arguments))


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
