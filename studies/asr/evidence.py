"""What the claims are judged by: results of trainings, and how arms and networks are compared over seeds.

Training makes one small JSON file per network, which is found again by its specification. Seeds are the units of every
claim about networks, never their images: arms are trained with at least three seeds each, and of networks that are
looked at there are at least two of each kind.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

import netbridge as nb
from netbridge.common.batches import channels_last
from netbridge.step_sizes import ASR
from netbridge.surgery.noise import NoisyNorm
from netbridge.tracing.gates import with_fresh_statistics
from netbridge.train import scoring
from studies.asr import design
from studies.asr.design import PLAIN, Run
from studies.lab import jobs, networks
from studies.lab.comparisons import deviation_cell, dunnett, interval_cell, welch
from studies.lab.exhibits import Exhibit
from studies.lab.measurements import Score, remove_training, score_of
from studies.lab.networks import ZOO
from studies.lab.page import Page
from studies.lab.statistics import LEVEL, Estimate, listing, mean_from_sums, mean_over_networks
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_each,
    of_interval,
    rule,
)

STUDY = "asr"
SHIPPED = Path(__file__).parents[1] / "shipped" / STUDY
ROOMS = ("netbridge/spectrum",)  # what its bound on perturbations is computed by
BOUND_IMAGES = 16  # test images that perturbations are followed on
START_IMAGES = 384  # training images at which gates are looked at: three batches, statistics for untrained networks
FOLLOWED = 256  # test images that gates and logits are followed on from epoch to epoch


# ---- Results: what a network scored, and what its gates were before training and after it ----


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result(Score):
    """What a network scored on the test set after its last epoch, and what its gates were before and after.

    blocks      per block a record, see `block_records`
    noisy       where the noise is random: (errors, loss) with noise on in the test as well; the other score is without
    bound       of ResNets without noise: log10 of Theorem 6.1's bound behind the last block, and the growth measured
    beyond      where constants were put in place of gates: points above the network with its gates, and their interval
    """

    study, tuples = STUDY, ("noisy", "bound", "beyond")

    blocks: list
    noisy: tuple[int, float] | None = None
    bound: tuple[float, float] | None = None
    beyond: tuple[float, float, float] | None = None

    @property
    def noisy_accuracy(self) -> float:
        """Per cent, with random noise in the test as well."""
        errors = self.test_errors if self.noisy is None else self.noisy[0]
        return 100.0 * (self.test_images - errors) / self.test_images

    @property
    def top5(self) -> float:
        """Per cent of the test images whose class is among the five largest logits; NaN where classes are few."""
        return 100.0 * self.log[-1].get("test_top5", math.nan) if self.log else math.nan


def find(run: Run, folders) -> Result | None:
    """The result of exactly this network in the first folder that has one."""
    return Result.find(run.stem, run.job.specification, run.job.recipe, folders)


def carry_out(run: Run, data, work: Path, destination: Path, device=None, keep: bool = False) -> Result:
    """Train one network, or take the shipped one, look at its gates and write down what it scored."""
    data = run.job.data_of(data)
    path = work / f"{run.stem}.safetensors"
    shipped = find_shipped(run)
    if shipped is not None:
        net, log = shipped
    else:
        net = jobs.train(run.job, data, path, STUDY, device, on_epoch=Observer(data) if run.observed else None)
        log = path.with_suffix(".jsonl")
    result = measure(run, net, data, log)
    result.write(destination / f"{run.stem}.json")
    if shipped is None and not keep:
        remove_training(path)
    return result


def find_shipped(run: Run) -> tuple[nb.Network, Path] | None:
    """The shipped network of exactly this job and its log; None where there is none."""
    job = run.job
    path = ZOO / job.dataset / f"{job.stem}.safetensors"
    if run.observed or job.start or job.noise or job.size or job.images or not path.is_file():
        return None
    log = path.with_suffix(".jsonl")
    if not jobs.same_recipe(json.loads(log.read_text().split("\n", 1)[0])["recipe"], job.recipe):
        return None
    return nb.load(path), log


def measure(run: Run, net, data, log: Path, beyond: tuple[float, float, float] | None = None) -> Result:
    """From the finished network and its log."""
    net, job = net.to("cpu"), run.job
    usual = job.network == "resnet" and not job.options and beyond is None
    shown = data.normalised(data.train_images[:START_IMAGES])
    score = score_of(net, data, job.specification, log, ROOMS)
    score["log"] = [{key: five_digits(value) for key, value in record.items()} for record in score["log"]]
    return Result(
        **score,
        blocks=block_records(job.untrained_network(len(data.names)), net, shown) if usual else [],
        noisy=noisy_score(net, data, run.seed),
        bound=bound_and_growth(net, data) if usual and not job.noise else None,
        beyond=beyond,
    )


def block_records(start, end, images) -> list[dict]:
    """Per block, each a pair (before training, after it) unless said otherwise.

    mean, std   of the mean gates of the channels: over the channels
    share       of the gates' variance that is channel; None where a gate is the same for all images
    alive       hidden units above zero for some image; `hidden` is how many there are
    origin      correlation over the channels between the mean gates before and after; one number or None
    psi         mean and standard deviation of ASR's vector after training, and its mean before; or None
    scale       mean and standard deviation of the last normalisation's scale after training
    """
    before = nb.gates(with_fresh_statistics(start, images), images)
    records = []
    for old, new, first, last in zip(before, nb.gates(end, images), start.blocks, end.blocks, strict=True):
        h = [gates.h.double().mean(0) for gates in (old, new)]
        weight = last.branch.last.weight.detach().double()
        record = {
            "mean": [five_digits(x.mean()) for x in h],
            "std": [five_digits(x.std(correction=0)) for x in h],
            "share": [five_digits(gates.share) for gates in (old, new)] if len(new.h) > 1 else None,
            "alive": [old.alive, new.alive],
            "hidden": new.hidden,
            "origin": five_digits(correlation(*h)),
            "psi": None,
            "scale": [five_digits(weight.mean()), five_digits(weight.std(correction=0))],
        }
        if isinstance(last.controller, ASR):
            psi = last.controller.psi.detach().double()
            values = (psi.mean(), psi.std(correction=0), first.controller.psi.detach().mean())
            record["psi"] = [five_digits(value) for value in values]
        records.append(record)
    return records


def correlation(x, y) -> float:
    """Of two vectors; nan where one of them is constant."""
    if min(x.std(), y.std()) < 1e-9:
        return math.nan
    return float(torch.corrcoef(torch.stack((x, y)))[0, 1])


def five_digits(value):
    """Five digits of a number, None for one that is no number; anything else as it is."""
    if isinstance(value, torch.Tensor):
        value = float(value)
    if isinstance(value, dict):
        return {key: five_digits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [five_digits(item) for item in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None


def bound_and_growth(net, data) -> tuple[float, float]:
    """log10 of the bound on a perturbation behind the last block, and its largest growth on the first test images."""
    bound = nb.perturbation_bound(net, data.normalised(data.test_images[:BOUND_IMAGES]))
    return five_digits(float(np.log10(bound.bound[-1]))), five_digits(float(bound.measured[-1]))


def noisy_score(net, data, seed: int) -> tuple[int, float] | None:
    """(errors, loss) on the test images with random noise on; None where the network has none."""
    norms = [module for module in net.modules() if isinstance(module, NoisyNorm) and module.deviation]
    if not norms:
        return None
    for norm in norms:
        norm.at_test = True
    torch.manual_seed(seed)
    score = scoring.evaluate(net, data)
    for norm in norms:
        norm.at_test = False
    return score["test_errors"], score["test_loss"]


class Observer:
    """Called after every epoch of a training; what it returns joins the log.

    data  the images of the training; the first test images are followed

    The record has, under "moved", how far the gates of every block, the scales of all normalisations and the logits
    went since the epoch before, each as mean absolute difference divided by the standard deviation of the same numbers;
    under "means" every block's mean gate of each channel, in thousandths; and under "spread" their standard deviation
    over the channels. Of the first epoch nothing is known of the one before. What it remembers of the last epoch is
    kept with the state of the training.
    """

    def __init__(self, data):
        self.images = data.normalised(data.test_images[:FOLLOWED])
        self.before: dict | None = None

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.before or {}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.before = dict(state) or None

    @torch.no_grad()
    def __call__(self, net, record) -> dict:
        now = {f"gate {number}": gate.h for number, gate in enumerate(nb.gates(net, self.images))}
        means = [h.mean(0) for h in now.values()]
        seen: dict[str, list] = {"spread": [float(mean.std(correction=0)) for mean in means]}
        seen["means"] = [(1000.0 * mean).round().int().tolist() for mean in means]
        now["scales"] = torch.cat([norm.weight.detach() for norm in net.modules() if isinstance(norm, nn.BatchNorm2d)])
        now["logits"] = net(self.images)
        before, self.before = self.before, now
        if before is None:
            return seen
        return seen | {"moved": {key: relative_change(before[key], now[key]) for key in now}}


def relative_change(before: torch.Tensor, after: torch.Tensor) -> float | None:
    """Mean absolute difference, divided by the standard deviation of the values after; None where that is 0."""
    spread = float(after.std(correction=0))
    return float((after - before).abs().mean()) / spread if spread else None


# ---- Finished networks, as the parts that train nothing look at them ----


def load_network(path: Path) -> nb.Network:
    """The network of a checkpoint, laid out as the processor likes it."""
    return channels_last(networks.read_subject(path).net)


def right_answers(net, data, images: int) -> np.ndarray:
    """Which of the first test images are classified correctly, as 0 and 1."""
    answers = []
    with torch.no_grad():
        for part in data.test_images[:images].split(250):
            shown = data.normalised(part).contiguous(memory_format=torch.channels_last)
            answers.append(net.eval()(shown).argmax(1))
    return (torch.cat(answers) == data.test_labels[:images]).double().numpy()


def mean_over_images(values) -> Estimate:
    """The mean with Student's interval over images."""
    return mean_from_sums(len(values), float(values.sum()), float((values**2).sum()))


# ---- Evidence, and arms and networks over their seeds ----

Groups = dict[str, list[float]]  # numbers by arm or by kind of network, one for each seed
World = Callable[
    [np.random.Generator, float, int], tuple["Evidence"]
]  # of an effect and a number of units, see `Worlds`
NETWORKS = "networks of each module"


@dataclasses.dataclass
class Evidence:
    """All that the claims are judged by, and that the exhibits show; a part that was not looked at is empty.

    rows         results by part of the study, column and arm: {(part, column): {arm: [Result]}}
    shares, replaced    of live modules, one entry per network, see `attention_values`
    spatial, attention  records of CBAM's spatial gates and of transformers, see `attention_values`
    bounds, maps  records of `whole_networks`
    painted      what networks that repaint pictures score, see `whole_networks.Painted`; `originals` are the pictures
    speeds       {size of the images: {name: (ratio to plain, quartiles)}}, of ResNets of `speed_depth` layers
    merging, shapes  rows about backbones: errors of merging, and what is a step in them
    plan         the `Plan` of the networks that were to be trained; the exhibits need it, the rules do not
    """

    rows: dict = dataclasses.field(default_factory=dict)
    shares: list = dataclasses.field(default_factory=list)
    replaced: list = dataclasses.field(default_factory=list)
    bounds: list = dataclasses.field(default_factory=list)
    maps: list = dataclasses.field(default_factory=list)
    spatial: list = dataclasses.field(default_factory=list)
    attention: list = dataclasses.field(default_factory=list)
    painted: list = dataclasses.field(default_factory=list)
    originals: np.ndarray | None = None
    speeds: dict = dataclasses.field(default_factory=dict)
    speed_depth: int = 0
    merging: list = dataclasses.field(default_factory=list)
    shapes: list = dataclasses.field(default_factory=list)
    plan: Any = None

    def results(self, part: str, column: str = "") -> dict[str, list]:
        """The results of a part and column, by arm: of each arm a list of `Result`."""
        return self.rows.get((part, column), {})

    def accuracies(self, part: str, column: str = "", noisy: bool = False) -> Groups:
        kind = "noisy_accuracy" if noisy else "accuracy"
        return {
            arm: [getattr(result, kind) for result in results] for arm, results in self.results(part, column).items()
        }

    def by_scale(self, part: str) -> dict[str, Groups]:
        """The accuracies of a part at both scales, with those of the controls of each scale."""
        return {
            design.LARGE_SCALE: self.accuracies("controls") | self.accuracies(part),
            design.SMALL_SCALE: self.accuracies("small") | self.accuracies(part, design.SMALL_SCALE),
        }

    def of_controls(self, arm: str) -> list[Result]:
        """The results of an arm of the controls, at both scales."""
        return [result for part in ("controls", "small") for result in self.results(part).get(arm, [])]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Estimates that decide a claim about several cases, such as arms at several scales or modules.

    beyond  the estimates that decide, by case; their intervals hold together
    words   what is known, the cases that do not decide among it
    among   the numbers behind every case, one for each seed
    fewest  how many of them each needs
    units   what they are
    """

    beyond: dict[str, Estimate]
    words: str
    among: Groups
    fewest: int
    units: str = "seeds"

    @property
    def lacking(self) -> str:
        """Why nothing is judged, as the beginning of a sentence; "" where something is."""
        some = any(map(len, self.among.values()))
        return enough(self.among, self.fewest, self.units) if some and not self.beyond else ""

    def verdict(self, sign: int = 1, negligible: float = 0.0, threshold: float = 0.0) -> Verdict:
        """The verdict on the claim that all cases lie above a threshold; with a sign of -1, below it."""
        if self.beyond:
            return of_each({case: e.less(threshold) for case, e in self.beyond.items()}, sign, negligible)
        return self.undecided

    def part(self, case: str, sign: int = 1, threshold: float = 0.0) -> Verdict:
        """The verdict on one case of a claim all of whose cases have to be true."""
        if case in self.beyond:
            return of_interval(self.beyond[case].less(threshold), sign)
        return UNDECIDED.because(f"too few {self.units}") if self.among.get(case) else NOT_RUN

    @property
    def undecided(self) -> Verdict:
        """The verdict where nothing is judged."""
        return UNDECIDED.because(f"too few {self.units}") if any(map(len, self.among.values())) else NOT_RUN


def over_seeds(
    control: str, groups: Groups, names, level: float = LEVEL, fewest: int = design.FEWEST_SEEDS
) -> dict[str, Estimate]:
    """Some arms against one: by Dunnett's intervals, which pool the deviations, and of a single arm by Welch's, which
    let the two differ; without intervals where an arm has too few seeds.
    """
    among = {name: groups.get(name, []) for name in (control, *names)}
    if not among[control]:
        return {}
    several = {name: values for name, values in among.items() if len(values) >= fewest}
    beyond = (welch if len(several) == 2 else dunnett)(control, several, level) if control in several else {}
    for name in names:
        if name not in beyond and among[name]:
            difference = float(np.mean(among[name]) - np.mean(among[control]))
            beyond[name] = Estimate(difference, np.nan, np.nan)
    return {name: beyond[name] for name in names if name in beyond}


def over_settings(
    control: str, settings: dict[str, Groups], names, also=(), fewest=design.FEWEST_SEEDS, form: str = "+.2f"
) -> Comparison:
    """`over_seeds` in every setting; those decide whose arms all have enough seeds.

    settings  {what it is called: {arm: accuracies}}
    names     the arms that decide
    also      arms that stand beside them, and decide where they have enough seeds
    fewest    how many seeds are enough
    form      of a number in words
    """
    arms = (control, *names)
    measured = {name: groups for name, groups in settings.items() if any(groups.get(arm) for arm in (*arms, *also))}
    deciding = [name for name, groups in measured.items() if fewest_seeds(groups, arms) >= fewest]
    beyond: dict[str, Estimate] = {}
    words = []
    for setting, groups in measured.items():
        above = over_seeds(control, groups, (*names, *also), corrected(len(deciding)), fewest)
        counts = count_seeds(groups, (*arms, *also))
        words.append(f"{setting}: {listing(above, form)} ({counts})" if above else f"{setting}: {counts}")
        if setting in deciding:
            beyond |= {f"{name}, {setting}": e for name, e in above.items() if len(groups[name]) >= fewest}
    if empty := [name for name in settings if name not in measured]:
        words.append(f"n = 0: {', '.join(empty)}")
    among = {f"{arm}, {name}": groups.get(arm, []) for name, groups in measured.items() for arm in arms}
    return Comparison(beyond, "; ".join(words), among, fewest)


def over_networks(kinds: Groups, form: str = "+.2f", least: float = -np.inf, most: float = np.inf) -> Comparison:
    """The mean of one number per network for every kind, by Student's intervals; those decide that have two networks.

    Every kind has its own deviation: those of modules differ by a factor of ten and more.

    kinds  numbers by kind, one for each network
    form   of a number in words
    least, most  what the mean can be; intervals end there
    """
    kinds = {name: values for name, values in kinds.items() if values}
    several = [name for name, values in kinds.items() if len(values) >= design.FEWEST_NETWORKS]
    means = {name: mean_over_seeds(values, corrected(len(several))) for name, values in kinds.items()}
    means = {name: dataclasses.replace(e, low=max(e.low, least), high=min(e.high, most)) for name, e in means.items()}
    words = f"{listing(means, form)} ({count_seeds(kinds, kinds)})" if kinds else "n = 0"
    deciding = {name: means[name] for name in several}
    return Comparison(deciding, words, kinds, design.FEWEST_NETWORKS, "networks")


def mean_over_seeds(values: list[float], level: float = LEVEL) -> Estimate:
    """The mean with Student's interval; without one where nothing varies, as two rounded numbers do by chance."""
    if np.ptp(values) > 0.0:
        return mean_over_networks(values, level)
    return Estimate(float(np.mean(values)), np.nan, np.nan, n=len(values))


def fewest_seeds(groups: Groups, names) -> int:
    return min(len(groups.get(name, [])) for name in names)


def count_seeds(groups: Groups, names) -> str:
    """How many seeds every arm has, in words: arms with as many seeds stand together."""
    counts: dict[int, list[str]] = {}
    for name in names:
        counts.setdefault(len(groups.get(name, [])), []).append(name)
    if len(counts) == 1:
        return f"n = {next(iter(counts))} each"
    return "; ".join(f"n = {count}: {', '.join(arms)}" for count, arms in sorted(counts.items(), reverse=True))


def exponential_text(e: Estimate, form: str = ".2f") -> str:
    """A positive number with its interval, of which the logarithm is known."""
    if not np.isfinite(e.value):
        return "undefined"
    value, low, high = np.exp([e.value, e.low, e.high])
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if np.isfinite(low) else f"{value:{form}}"


def number_text(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "undefined"


def group_by_name(records) -> dict[str, list]:
    """The records of networks by the name of their module."""
    groups: dict[str, list] = {}
    for record in records:
        groups.setdefault(record.name, []).append(record)
    return groups


def exhibit(heading: str, show: Callable[[Page, Evidence], None], rules: Mapping[str, tuple[Rule, ...]]) -> Exhibit:
    """An exhibit whose open claims name the command that finds more.

    heading, show  as `Exhibit` takes them
    rules          what is judged, by the options of the study that show more of it
    """

    def judge(e: Evidence) -> Iterable[Finding]:
        for options, several in rules.items():
            does = "trains what the plan still lacks" if "--train" in options else "looks"
            for finding in (judged(e) for judged in several):
                words = f"{finding.words} `python -m studies.{STUDY} {options}` {does}."
                yield dataclasses.replace(finding, words=words) if finding.verdict in (UNDECIDED, NOT_RUN) else finding

    return Exhibit(heading, show, judge)


def seeds_rule(
    claim: str,
    where: str,
    fixed: str,
    world: World,
    planted: str,
    needed: int = design.FEW,
    present: int = design.FEW,
    negligible: float | None = None,
):
    """A rule about arms, whose units are seeds.

    claim, where, fixed, negligible  as `Rule` has them
    world, planted  makes up evidence, and what it plants with an effect
    needed          how many seeds find that
    present         how many there are
    """
    worlds = Worlds(world, needed, "seeds", planted, now=None if needed == present else present)
    return rule(claim, where, fixed=fixed, fewest=design.FEWEST_SEEDS, negligible=negligible, worlds=worlds)


def networks_rule(
    claim: str,
    where: str,
    fixed: str,
    world: World,
    planted: str,
    units: str = NETWORKS,
    now: int | None = 2,
    negligible: float | None = None,
    wanted: int = design.FEW,
):
    """A rule about trained networks, which are its units; of most kinds there are two at present."""
    worlds = Worlds(world, wanted, units, planted, now=now)
    return rule(claim, where, fixed=fixed, fewest=design.FEWEST_NETWORKS, negligible=negligible, worlds=worlds)


# ---- Rows of tables that several exhibits have ----


def arm_cells(name: str, accuracies: list[float]) -> dict:
    """An arm with its score over the seeds."""
    mean, deviation = f"{np.mean(accuracies):.2f}", deviation_cell(accuracies, "one seed")
    return {"arm": name, "n": len(accuracies), "accuracy (%)": mean, "deviation": deviation}


def living_cells(results: list[Result]) -> dict:
    """Hidden units of all blocks and seeds, and where the gates' means stand before and after."""
    blocks = [block for result in results for block in result.blocks]
    if not blocks:
        return {}
    start, end, total = living_units(blocks)
    means = [f"{np.mean([block['mean'][k] for block in blocks]):.3f}" for k in (0, 1)]
    return {
        "hidden units alive, start -> end": f"{start} -> {end} of {total}" if total else "no head",
        "mean gate, start -> end": " -> ".join(means),
    }


def living_units(blocks: list[dict]) -> tuple[int, ...]:
    """How many hidden units of some blocks are alive before training and after it, and how many there are."""
    return tuple(map(sum, zip(*((*block["alive"], block["hidden"]) for block in blocks), strict=True)))


def result_rows(e: Evidence, part: str, column: str, printed: Mapping[str, Mapping[str, float]]) -> list[dict]:
    """Every arm of a part with its seeds, its score, what lives in its heads, and the paper's numbers.

    printed  columns of the paper: accuracies by arm
    """
    results, groups = e.results(part, column), e.accuracies(part, column)
    if PLAIN not in groups:
        near = "small" if column == design.SMALL_SCALE else "controls"
        groups = groups | {PLAIN: e.accuracies(near).get(PLAIN, [])}
    beyond = over_seeds(PLAIN, groups, [name for name in results if name != PLAIN])
    many = any(np.isfinite(result.top5) for of_arm in results.values() for result in of_arm)  # classes
    rows = []
    for name, of_arm in results.items():
        if of_arm:
            row = arm_cells(name, groups[name])
            row["test loss"] = f"{np.mean([result.test_loss for result in of_arm]):.4f}"
            row[f"above {PLAIN} [95 %]"] = interval_cell(beyond, name)
            row |= living_cells(of_arm)
            if many:
                row["top-5 (%)"] = number_text(float(np.mean([result.top5 for result in of_arm])))
            row |= {title: f"{by_arm[name]:.2f}" if name in by_arm else "" for title, by_arm in printed.items()}
            rows.append(row)
    return rows


# ---- Made-up worlds for the rules: seeds and networks drawn at random, without an effect or with the paper's ----
#
# Without an effect arms differ by chance alone; where a claim is about a threshold, networks lie on it, which is where
# a rule errs most. Deviations are about those of the networks that were trained.


def draw_arms(chance, effect: float, n: int, gains: Mapping[str, float], deviation: float) -> dict[str, list]:
    """Results of arms: of each as many accuracies as seeds, around 60 and what its gain adds."""
    return {
        arm: [
            SimpleNamespace(seed=seed, accuracy=x, blocks=[])
            for seed, x in enumerate(chance.normal(60.0 + effect * gain, deviation, n))
        ]
        for arm, gain in gains.items()
    }
