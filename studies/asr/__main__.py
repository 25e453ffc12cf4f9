"""ASR paper, every table and figure: attention as a learned constant, beside controls of our own (about 3 min).

Claims examined: a step size per channel, learnt through an attention module and folded into the weights, raises
accuracy at no cost, and the constants that attention turns into are priors of the data (Zhong, Huang, Wen, Qin and Lin,
ASR: Attention-alike Structural Re-parameterization, 2023). The networks are small and see one data set: what is said of
CIFAR-10 is not said of CIFAR-100 or STL-10. By default the study looks at shipped networks anew and shows the results
of trainings that come with the repository; `--train` makes what is missing.

Last result (ResNet-20, CIFAR-10, quick, 2026-11-20): of 26 claims two are supported, three contradicted, six false of
some cases, two true of some, the rest open, one both, one depends on the reading, nine are undecided and two cannot be
asked here. With eight seeds at the small scale ASR(SE) in the paper's units gains 1.24 points [0.36, 2.12] over plain;
a constant half gains 1.07 [0.23, 1.91], and what the module does beyond its three controls is undecided. Supported:
under constant noise ASR lies above the plain network (+8.9 points [4.9, 12.8] on average over five noises), and under
random noise (+1.7 [0.5, 3.0]); above a constant half it lies by 0.5 [-2.8, +3.7] and -0.1 [-1.5, +1.2]. Contradicted:
constants in place of gates cost 6.6 points on average over five modules [4.2, 9.0], not 28, and after an epoch of
fine-tuning 2.0 [0.3, 3.7], not 15; two uses in place of one lose 1.3 [0.3, 2.3], three 3.7 [2.7, 4.7]. SE's gates are
stripes before training, and 0.75 of the variance of its constants is explained by where they began. ASR gains on ACNet
(+4.5 [1.7, 7.3]) and beside SRM (+0.42 [0.02, 0.81]); beside IE it loses 7.4 [6.0, 8.9]. The first decay leaves SRM's
gates moving by 0.31 of their deviation [0.25, 0.38] in an epoch, SE's by 0.08 [0.01, 0.48]. Undecided with three seeds
are psi that is not learnt, psi that begins elsewhere, and transformers (-0.9 [-2.6, +0.7]). Which rules and verdicts
changed stands below each verdict and in docs/papers.md.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, Literal

import torch

import netbridge as nb
from studies.asr import accuracy, attention_values, design, evidence, whole_networks
from studies.asr.design import TIERS, Plan, Run, Tier
from studies.asr.evidence import SHIPPED, STUDY, Evidence
from studies.asr.whole_networks import Painting
from studies.lab import definitions, jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.exhibits import write
from studies.lab.networks import images_or_fallback
from studies.lab.options import TrainingOptions, check_training, use_scale, which_jobs
from studies.lab.page import Page
from studies.lab.report.terminal import show_progress

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
SMOKE_SIZES: dict[str, Any] = {"images": 64, "tested": 64, "resamples": 20, "speed_depth": 8, "seconds": 0.5}
SMOKE_SIZES |= {"speeds": ((8, 4),)}
SHIPPED_SEEDS = (0, 1)  # of the networks that are looked at
MODULES = [networks.controller_name(controller) for controller in design.LIVE]  # in them, with one number a channel
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


EXHIBITS = (  # in the order of the paper's claims
    accuracy.CONTROLS,
    accuracy.BARE,
    attention_values.STRIPES,
    attention_values.REPLACEMENT,
    attention_values.DYNAMICS,
    accuracy.NOISE,
    whole_networks.GROWTH,
    accuracy.USES,
    accuracy.FIXED,
    accuracy.STARTS,
    accuracy.BESIDE,
    accuracy.BACKBONES,
    whole_networks.SPEED,
    whole_networks.STYLE,
    whole_networks.MAPS,
    attention_values.POSITIONS,
)


# ---- Training what is missing: the queue of networks and paintings, which processes with one folder share ----


def folders(arguments: Arguments) -> tuple[Path, ...]:
    """Where results are looked for."""
    own = arguments.out / "runs"
    return (own,) if arguments.own else (own, SHIPPED)


def train(plan: Plan, data, painted: bool) -> None:
    """Train what is missing of the plan, and with `painted` the networks that repaint pictures."""
    arguments = plan.arguments
    own = arguments.out / "runs"
    destination = SHIPPED if arguments.ship else own

    def find(job: Run | Painting):
        if isinstance(job, Painting):
            return whole_networks.find_painted(job, folders(arguments))
        return evidence.find(job, folders(arguments))

    def carry_out(job: Run | Painting):
        if isinstance(job, Painting):
            result = whole_networks.paint(job, data)
            whole_networks.write_painted(result, destination / f"{job.stem}.json")
            return result
        how = attention_values.fine_tune if job.part == "finetuned" else evidence.carry_out
        return how(job, data, own, destination, arguments.device, arguments.keep)

    jobs.work_off(lambda: queue(plan, painted), jobs.finder(find, **which_jobs(arguments)), carry_out, own)


def queue(plan: Plan, painted: bool) -> list[Run | Painting]:
    """Everything to train in its order: the first style's networks stand among the claims, those of the others last."""
    runs: list[Run | Painting] = [*plan.queue()]
    if not painted:
        return runs
    paintings = whole_networks.plan_paintings(plan.arguments.seeds[: design.FEW])
    first = [painting for painting in paintings if painting.style == paintings[0].style]
    early = [run for run in plan.queue() if plan.turn(run)[0] < design.PAINTED]
    return early + first + runs[len(early) :] + [painting for painting in paintings if painting not in first]


def train_smoke(plan: Plan, data) -> None:
    """One network of a few layers, with noise, for one epoch on a few digits: the whole way of a result."""
    recipe = jobs.recipe_of("digits", "digits", epochs=1)
    job = jobs.Job("digits", "asr(se(reduction=4))", 0, recipe, 8, 4, images=128, noise=(0.8, 0.8, 0.1))
    run, own = Run("noise", design.FAITHFUL, job, "(0.8, 0.8)"), plan.arguments.out / "runs"
    if evidence.find(run, [own]) is None:
        evidence.carry_out(run, data, own, own, "cpu")


# ---- The evidence: results of trainings that are there, and what is measured anew on finished networks ----


def gather(parts, plan: Plan, data, sizes: dict[str, Any]) -> Evidence:
    """Everything that the parts ask for."""
    arguments, smoke = plan.arguments, plan.arguments.smoke
    e = Evidence(rows=results_by_arm(plan), plan=plan, speed_depth=sizes["speed_depth"])

    def subjects(*shipped: str) -> list[tuple[str, int | str, Path]]:
        """Name, seed and file of the networks to look at: the user's own, or shipped ones with these controllers."""
        if arguments.checkpoint:
            chosen = [identify(path) for path in networks.checkpoints(arguments.checkpoint)]
        else:
            seeds = SHIPPED_SEEDS[:1] if smoke else SHIPPED_SEEDS
            chosen = [identify(path) for name in shipped for path in shipped_files(data.name, name, seeds)]
        return [subject for subject in chosen if not arguments.only or subject[0] in arguments.only]

    if {"stripes", "replace"} & set(parts):
        for name, seed, path in subjects(*(design.LIVE[:1] if smoke else design.LIVE)):
            shares, gates = attention_values.measure_shares(name, seed, path, data, sizes["images"], sizes["resamples"])
            e.shares.append(shares)
            if "replace" in parts:
                e.replaced.append(attention_values.replace_gates(shares, gates, path, data, sizes["tested"]))
            show_progress(f"{name}, seed {seed}: looked at.")
    if "theorem" in parts:
        count = 4 if smoke else evidence.BOUND_IMAGES
        e.bounds = [whole_networks.measure_bound(*subject, data, count) for subject in subjects("constant", "asr-se")]
    if "gradcam" in parts:
        wanted, count = subjects(*("constant", "se", "srm")[: 2 if smoke else 3]), min(MAP_IMAGES, sizes["tested"])
        e.maps = [whole_networks.measure_class_maps(*subject, data, count) for subject in wanted]
    if "spatial" in parts:
        count = min(SPATIAL_IMAGES, sizes["tested"])
        wanted = [subject for subject in subjects("cbam") if subject[0] == "CBAM"]
        e.spatial = [attention_values.measure_spatial_gates(seed, path, data, count) for _, seed, path in wanted]
        transformers = (networks.ZOO / f"{data.name}-vit").glob("*-constant-seed*.safetensors")
        for path in [] if arguments.checkpoint else sorted(transformers):
            e.attention.append(attention_values.measure_attention("ViT", identify(path)[1], path, data, count))
    if "style" in parts:
        paintings = whole_networks.plan_paintings(arguments.seeds[: design.FEW])
        painted = (whole_networks.find_painted(painting, folders(arguments)) for painting in paintings)
        e.painted = [result for result in painted if result is not None]
        e.originals = data.test_images[: whole_networks.SHOWN].numpy()
    if "merging" in parts:
        e.merging = whole_networks.merging_errors(whole_networks.FEW_GATES if smoke else whole_networks.GATES)
    if "backbones" in parts:
        e.shapes = accuracy.places_of_steps(arguments.full)
    if "speed" in parts:
        seconds = sizes["seconds"] / len(sizes["speeds"])
        e.speeds = {
            f"{size} x {size}": whole_networks.measure_speeds(e.speed_depth, size, batch, seconds)
            for size, batch in sizes["speeds"]
        }
    return e


def results_by_arm(plan: Plan) -> dict:
    """The results that are there: {(part, column): {arm: [Result]}}, arms without any included."""
    rows: dict = {}
    for run in plan.runs():
        arms = rows.setdefault((run.part, run.column), {})
        result = evidence.find(run, folders(plan.arguments))
        arms.setdefault(run.arm, []).extend([] if result is None else [result])
    return rows


def shipped_files(dataset: str, controller: str, seeds) -> list[Path]:
    """Files of the shipped networks with a controller, which is the whole of the middle of their names."""
    name = re.compile(rf"[^-]+(-width\d+)?-{re.escape(controller)}-seed\d+")
    files = (path for seed in seeds for path in sorted((networks.ZOO / dataset).glob(f"*-seed{seed}.safetensors")))
    return [path for path in files if name.fullmatch(path.stem)]


def identify(path: Path) -> tuple[str, int | str, Path]:
    """Name, seed and file of a network; the file's name in place of a seed that is not known."""
    subject = networks.read_subject(path)
    name = "plain" if subject.controller == "constant" else subject.controller
    return name, path.stem if subject.seed is None else subject.seed, path


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
        train(plan, data, painted="style" in parts and 2 in arguments.tier)
    if arguments.smoke:
        train_smoke(plan, data)
    e = gather(parts, plan, data, sizes)

    page.heading("What these data say")
    page.words(
        f"What ASR claims, in its own order. {limits(plan)} Seeds and networks are the "
        "units of every verdict; its intervals hold together at 95 %: by Dunnett's comparisons with one arm, of the "
        "last epoch, where every arm has at least three seeds; by Student where networks are looked at, of which each "
        "kind needs two. Intervals of single networks are over images. Below each verdict stands its rule, when it was "
        "fixed, and how often it errs in made-up worlds. `--train` goes on where something is undecided or not run."
    )
    write(page, EXHIBITS, e, page.name_older(stored_results(e)))
    page.numbers["counts"] = {f"{part} {column}".strip(): {arm: len(results) for arm, results in arms.items()}
                              for (part, column), arms in e.rows.items()}  # fmt: skip
    page.close()


def stored_results(e: Evidence) -> list[dict]:
    """How each of the stored results was made that the evidence rests on; a network of two parts counts once."""
    rows = [result for arms in e.rows.values() for results in arms.values() for result in results]
    made = {json.dumps((result.specification, result.made)): result.made for result in (*rows, *e.painted)}
    return list(made.values())


def limits(plan: Plan) -> str:
    """What no number of this run can remove: one data set, and a scale that may not be the paper's."""
    words = f"Trained are {plan.large_scale}"
    if plan.arguments.full:
        words += ": the paper's depth, epochs and batches."
    else:
        words += f", and, at the small scale, {plan.small_scale}; the paper's scale is 164 layers and 164 "
        words += "epochs (`--full`)."
    return (
        f"{words} What is said of one data set is said of no other. Parts that look at finished networks (stripes, "
        "replacement, maps, spatial attention) look at those that come with the repository, or at `--checkpoint`."
    )


def check_rows(plan: Plan):
    """Every name that `--only` holds is a row or a module."""
    names = dict.fromkeys([run.arm for run in plan.everything()] + MODULES)
    for name in plan.arguments.only:
        if name not in names:
            raise ValueError(f"`--only` knows {', '.join(names)} in these parts; got {name!r}.")


def fill_in_options(arguments: Arguments) -> Arguments:
    """Every number given, and sensible."""
    arguments = use_scale(arguments, PAPERS if arguments.full else OURS)
    require_at_least(1, arguments, "images", "epochs", "threads", "depth", "resamples")
    return dataclasses.replace(arguments, seeds=check_training(arguments))


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
