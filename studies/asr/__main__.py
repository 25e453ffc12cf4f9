"""ASR paper, every table and figure: attention as a learned constant, beside controls of our own (about 3 min).

Claims examined: a step size per channel, learnt through an attention module and folded into the weights, raises
accuracy at no cost, and the constants that attention turns into are priors of the data (Zhong, Huang, Wen, Qin and Lin,
ASR: Attention-alike Structural Re-parameterization, 2023). The networks are small and see one data set: what is said of
CIFAR-10 is not said of CIFAR-100 or STL-10. By default the study looks at shipped networks anew and shows the results
of trainings that come with the repository; `--train` makes what is missing.

Last result (ResNet-20, CIFAR-10, quick, 2026-11-19): of 26 claims two are supported, two contradicted, seven false of
some cases and one true of some, the rest open, one both, one depends on the reading, ten are undecided and two cannot
be asked here. Supported: under constant noise ASR lies above the plain network (+8.9 points [4.9, 12.8] on average
over five noises), and under random noise (+1.7 [0.5, 3.0]); above a constant half it lies by 0.5 [-2.8, +3.7] and -0.1
[-1.5, +1.2]. Contradicted: constants in place of gates cost 6.6 points on average over five modules [4.2, 9.0], not
28, and after an epoch of fine-tuning 2.0 [0.3, 3.7], not 15. SE's gates are stripes before training, and 0.75 of the
variance of its constants is explained by where they began. ASR gains on ACNet (+4.5 [1.7, 7.3]) and beside SRM (+0.42
[0.02, 0.81]); beside IE it loses 7.4 [6.0, 8.9], and three uses in place of one lose 3.4 [2.2, 4.5]. The first decay
leaves SRM's gates moving by 0.31 of their deviation [0.25, 0.38] in an epoch, SE's by 0.08 [0.01, 0.48]. Undecided
with three seeds are the gain over plain without noise (+0.8 [-0.1, +1.7] at the small scale), what the module does
beyond its controls, psi that is not learnt, psi that begins elsewhere, and transformers (-0.9 [-2.6, +0.7]). Which
rules and verdicts changed stands below each verdict and in docs/papers.md.
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
from studies.lab.networks import images_or_fallback
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
        f"What ASR claims, in its own order. {limits(plan)} Seeds and networks are the "
        "units of every verdict; its intervals hold together at 95 %: by Dunnett's comparisons with one arm, of the "
        "last epoch, where every arm has at least three seeds; by Student where networks are looked at, of which each "
        "kind needs two. Intervals of single networks are over images. Below each verdict stands its rule, when it was "
        "fixed, and how often it errs in made-up worlds. `--train` goes on where something is undecided or not run."
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
