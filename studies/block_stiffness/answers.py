"""What stiffness goes with, image by image: right answers and loss (Tables 1, 4, 7), and what an attacker gains.

The question of Tables 1, 4 and 7 is asked with the paper's own some 3,400 images by slices alone, of which an image
costs a fifteenth of a second a block: about 36 minutes of one core for a ResNet-20. What is done is kept, and a stopped
run goes on. What they say comes with the study, a small file for each network.
"""

import copy
import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress
from scipy import stats

import netbridge as nb
from odelab.files import replacing
from odelab.plot import style
from studies.block_stiffness import blocks, networks, printed
from studies.block_stiffness.evidence import (
    CALLED,
    LABELS,
    Component,
    Evidence,
    Relation,
    correlation_interval,
    digest_of,
    of_most_images,
    partial_correlation,
    relate,
    relation,
    relation_rows,
    relations,
    today,
    with_holm,
)
from studies.block_stiffness.measures import (
    MEASURES,
    Measured,
    answer,
    device_of,
    first_images,
    inner_blocks,
    move_images,
    rows_of,
    shared_columns,
    stage_of,
    values_of_images,
)
from studies.lab.exhibits import Exhibit
from studies.lab.page import Page
from studies.lab.results import commit
from studies.lab.statistics import Estimate, listing
from studies.lab.stiffness import prepare
from studies.lab.verdicts import NOT_RUN, Finding, Verdict, Worlds, corrected, of_cases, of_interval, rule

CLAIMED = {"stiffness_index": 1, "negative": -1}  # signs of the correlation with accuracy that the paper's words claim
LOSS = {measure: -sign for measure, sign in CLAIMED.items()}
TURNED = {"stiffness_index": -1, "negative": 1, "spectral_radius": 1}  # signs with flipped answers, if stiffness did it
NORMS = ("log_norm", "largest_singular")
HELD = ("stiffness_index", "negative", "max_re", "min_re")
NEGLIGIBLE = 0.06  # a correlation: half of the smaller of Table 1's means over its last three blocks
WRONG = 0.07  # of the answers of the worlds


# ---- The rule, which accuracy, loss and adversarial examples share ----


def means_over_blocks(cases: Sequence[Relation]) -> dict[tuple[str, str], Estimate]:
    """By measure and target: the mean of the correlations within the blocks; all intervals hold together."""
    by_case: dict[tuple[str, str], list[Relation]] = {}
    for case in cases:
        by_case.setdefault((case.measure, case.target), []).append(case)
    return {
        name: correlation_interval([row.r for row in some], min(row.n for row in some), corrected(len(by_case)))
        for name, some in by_case.items()
    }


def judge_relations(related: Sequence[Relation], signs: Mapping[str, int]) -> tuple[Verdict, str]:
    """Rank correlations over the images within each block of the last stage, where the paper has its stiff blocks;
    their mean over these blocks, for each of the measures. Supported where all of these means certainly have the sign
    that the claim asks for, contradicted where all certainly have the other one or are certainly within 0.06 of 0;
    intervals hold together. It is judged in the reading with the most images, slices where readings have equally many:
    the paper's numbers are those of slices."""
    asked = [case for case in related if case.measure in signs]
    last = max((stage_of(case.block) for case in asked), default=0)
    reading, cases = of_most_images([case for case in asked if stage_of(case.block) == last])
    means = means_over_blocks(cases)
    if not means:
        return NOT_RUN, "n = 0: there are too few images for a correlation; `--preset full` looks at 100 and more."
    verdict = of_cases(of_interval(e, signs[measure], NEGLIGIBLE) for (measure, _), e in means.items())
    targets = {target for _, target in means}
    named = {
        CALLED.get(measure, measure) + (f" with {target}" if len(targets) > 1 else ""): e
        for (measure, target), e in means.items()
    }
    claimed = ", ".join(
        f"{CALLED.get(name, name)} {'above' if sign > 0 else 'below'} 0" for name, sign in signs.items()
    )
    n = min(e.n for e in means.values())
    words = (
        f"Means over the blocks of the last stage ({reading}, n = {n} images of one network): {listing(named)}. The "
        f"claim asks for {claimed}."
    )
    if targets <= {"accuracy", "loss"}:
        words += (
            " S is negative and a stiffer block has a more negative one, so the paper's own significant correlations "
            "of index and accuracy say the stiffer, the better."
        )
    return verdict, words


def worlds_of_images(target: str, signs: Mapping[str, int]):
    """Made-up images of a network's last three blocks, with the sizes of Table 1's last three."""
    sizes = printed.CORRELATIONS[18][-3:]

    def make(chance, effect: float, n: int) -> tuple:
        loss = chance.standard_normal(n)
        right = loss < stats.norm.ppf(1.0 - WRONG)
        # The correlation of a normal number with whether another one is below a quantile is this much smaller.
        factor = stats.norm.pdf(stats.norm.ppf(WRONG)) / np.sqrt(WRONG * (1.0 - WRONG))
        values, shrunk = (right.astype(float), factor) if target == "accuracy" else (loss, 1.0)
        made = []
        for block, of_block in enumerate(sizes):
            for measure, size in zip(CLAIMED, of_block[::2], strict=False):
                r = effect * signs[measure] * abs(size) / shrunk * (-1.0 if target == "accuracy" else 1.0)
                column = r * loss + np.sqrt(1.0 - r**2) * chance.standard_normal(n)
                made.append(relation(f"stages.2.blocks.{block}", "slices", measure, target, column, values))
        return tuple(row for row in made if row is not None), {name: signs[name] for name in CLAIMED}

    return make


def rule_on(target: str, what: str, where: str, signs: Mapping[str, int], n: int, now: int, was: str):
    """The rule on one target, with its own worlds."""
    effect = "the sizes of Table 1's last three blocks, 0.12 for S and 0.31 for percentages"
    worlds = Worlds(worlds_of_images(target, signs), n, "images", effect, now)
    fixed = (
        "after the data: with correlations over 20 and 100 images known, before those over 3,400. The last stage "
        "stands for the blocks that the paper calls stiff, where one block of any stage had been enough; by the old "
        f"rule the verdict was {was}"
    )
    claim = f"stiffness of a block goes with {what}"
    return rule(claim, where, fixed=fixed, negligible=NEGLIGIBLE, worlds=worlds, variant=target)(judge_relations)


SOME = "that it is true of some and false of others"
RULES = {
    "accuracy": rule_on("accuracy", "accuracy", "Tables 1, 4, 7", CLAIMED, 3400, 400, "undecided"),
    "loss": rule_on("loss", "loss", "Tables 1, 4, 7", LOSS, 3400, 400, SOME),
    "flips": rule_on("flips", "adversarial examples (FGSM)", "Section 1", TURNED, 400, 40, SOME),
}


# ---- Accuracy and loss: Tables 1, 4 and 7 ----


def targets_of(measured: Measured) -> dict[str, np.ndarray]:
    """Per image: was the answer right, and its loss."""
    return {"accuracy": measured.right.astype(float), "loss": measured.loss}


def judge_tables_1_4_7(evidence: Evidence) -> list[Finding]:
    return [
        RULES[target]([row for row in evidence.relations if row.target == target], signs)
        for target, signs in (("accuracy", CLAIMED), ("loss", LOSS))
    ]


def partial_relations(measured: Measured, targets: dict[str, np.ndarray], measures, readings, blocks) -> list[Relation]:
    """Correlations with something held: within labels, and beside the share of live outputs and NSI.

    Ranks less their label's mean, and what of the ranks is left of a linear fit to the ranks of `alive` and `nsi`; the
    target's name says which. Holm over all.
    """

    def each():
        for block, reading in itertools.product(blocks, readings):
            others, rows = (rows_of(measured, block, kind) for kind in ("error", reading))
            labels = values_of_images(measured, measured.labels, rows)
            held = {"within labels": (labels[:, None] == np.unique(labels)).astype(float)}
            place = np.searchsorted(others["image"], rows["image"]).clip(max=max(0, len(others) - 1))
            if len(others) and (others["image"][place] == rows["image"]).all():
                beside = [stats.rankdata(others[name][place]) for name in ("alive", "nsi")]
                held["beside activity and NSI"] = np.column_stack([np.ones(len(rows)), *beside])
            for (target, values), (how, columns) in itertools.product(targets.items(), held.items()):
                wanted = values_of_images(measured, values, rows)
                for measure in measures:
                    about = block, reading, measure, f"{target}, {how}"
                    yield partial_correlation(*about, rows[measure], wanted, columns)

    return with_holm(each())


def show_answers(page: Page, evidence: Evidence):
    measured, inner, targets = evidence.measured, evidence.inner, targets_of(evidence.measured)
    if not evidence.relations or not evidence.errors:
        page.words("There are too few images for correlations within blocks.")
        return
    page.table(
        "correlations",
        relation_rows(evidence.relations, evidence.blocks),
        "Measures against accuracy and loss, image by image within each block",
        "Spearman's correlation with its 95 % interval. Holm's correction is over the rows of one question.",
    )
    page.table(
        "correlations_held",
        relation_rows(partial_relations(measured, targets, HELD, ["residual"], inner), evidence.blocks),
        "The same within labels, and beside activity and NSI",
        "Correlations of ranks minus the mean rank of the label, and minus a linear fit to the ranks of the "
        "share of live outputs and of NSI.",
    )
    mapped = [
        *relations(measured, targets, MEASURES, ["residual"], inner),
        *error_relations(measured, MEASURES, inner),
        *error_relations(measured, MEASURES, inner, "nsi"),
    ]
    panels = {"accuracy": "right answer", "loss": "loss", "step_error": "Euler's error", "nsi": "NSI"}
    page.figure(
        draw_correlations(mapped, evidence, panels),
        "correlations",
        "Rank correlations of measures of the branch, image by image within each block. Framed: p < 0.05 after Holm's "
        "correction over all cells of a panel (the first two together). Grey: nothing to correlate, such as shares by "
        "sign where the ends of a spectrum alone are known.",
    )


def draw_correlations(related: Sequence[Relation], evidence: Evidence, titles: dict[str, str]):
    """Rank correlations within blocks, a panel per target; cells that hold after Holm's correction are framed."""
    from matplotlib.patches import Rectangle

    targets = [target for target in titles if any(row.target == target for row in related)]
    measures = [measure for measure in LABELS if any(row.measure == measure for row in related)]
    blocks = evidence.inner
    with style.figure(1, len(targets), height=0.9 + 0.24 * len(measures), sharey=True) as (drawing, axes):
        for axis, target in zip(axes[0], targets, strict=True):
            values = np.full((len(measures), len(blocks)), np.nan)
            for row in related:
                if row.target == target and row.reading in ("residual", "norms"):
                    y, x = measures.index(row.measure), blocks.index(row.block)
                    values[y, x] = row.r
                    if row.holm < 0.05:
                        frame = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.3)
                        axis.add_patch(frame)
            image = axis.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
            axis.set_facecolor("#EFEFEF")  # shows where nothing could be correlated
            axis.set_title(titles[target], loc="left")
            every = 1 + len(blocks) // 9
            numbers = [evidence.blocks.index(block) + 1 for block in blocks[::every]]
            axis.set_xticks(range(0, len(blocks), every), numbers)
            axis.set_yticks(range(len(measures)), [LABELS[measure] for measure in measures])
            axis.set_xlabel("block")
            axis.grid(False)
            axis.tick_params(length=0)
        drawing.colorbar(image, ax=list(axes[0]), label="Spearman", shrink=0.9, pad=0.01)
    return drawing


# ---- The same of slices alone, at the paper's number of images ----

IMAGES = 3400  # Table 1's correlations and p-values allow 2,945 to 3,897
PORTION = 50  # images between two entries in the cache: their states are held in memory
BESIDE = "beside live outputs"


@dataclasses.dataclass(frozen=True, eq=False)
class Slices:
    """What slices of a network's blocks are at N test images, and how it answers to these."""

    about: dict  # network, digest of its weights, data set, date, commit, images, rows of slices
    blocks: tuple[str, ...]  # their names
    images: np.ndarray  # numbers within the test set, (N,)
    labels: np.ndarray
    loss: np.ndarray
    right: np.ndarray
    stiffness_index: np.ndarray  # S, (N, blocks)
    negative: np.ndarray  # the share of negative real parts
    alive: np.ndarray  # the share of live outputs

    @property
    def columns(self) -> Iterator[tuple[int, str, str, np.ndarray]]:
        """(number, block, measure, values) of the paper's two measures in every block."""
        for (number, block), measure in itertools.product(enumerate(self.blocks), CLAIMED):
            yield number, block, measure, getattr(self, measure)[:, number]

    @property
    def targets(self) -> dict[str, np.ndarray]:
        return {"accuracy": self.right.astype(float), "loss": self.loss}

    def relations(self) -> list[Relation]:
        """Rank correlations of both measures with accuracy and loss over the images, within each block; Holm."""
        return with_holm(
            relation(block, "slices", measure, target, values, wanted)
            for _, block, measure, values in self.columns
            for target, wanted in self.targets.items()
        )

    def relations_held(self) -> list[Relation]:
        """The correlations of what is left of the ranks beside those of the share of live outputs; Holm over all."""

        def each():
            for number, block, measure, values in self.columns:
                held = np.column_stack([np.ones(len(values)), stats.rankdata(self.alive[:, number])])
                for target, wanted in self.targets.items():
                    yield partial_correlation(block, "slices", measure, f"{target}, {BESIDE}", values, wanted, held)

        return with_holm(each())

    def components(self) -> list[Component]:
        """How much of the variance of both measures within each block is between labels; Holm over all."""
        return with_holm(
            blocks.component(block, "slices", measure, values, self.labels)
            for _, block, measure, values in self.columns
        )

    def evidence(self) -> Evidence:
        """What the rules judge."""
        return Evidence(components=tuple(self.components()), relations=tuple(self.relations()))


def measure_slices(
    net, network: str, data, count: int, work: dict, rows: int = printed.SLICE_ROWS, portion: int = PORTION
) -> Slices:
    """Look at slices of all blocks at `count` test images, balanced over labels.

    network  what the network is called
    work     as `nb.block_survey` takes it; with a `cache` a stopped run goes on
    rows     output units that slices look at, of every image the same ones
    portion  images between two entries in the cache
    """
    labels = data.test_labels.numpy()
    chosen = first_images(labels, count, len(data.names))
    columns: dict[str, list[np.ndarray]] = {name: [] for name in (*CLAIMED, "alive")}
    with Progress(transient=True) as progress:
        task = progress.add_task("slices", total=len(chosen))
        for start in range(0, len(chosen), portion):
            images = prepare(net, data, data.test_images[chosen[start : start + portion]])
            table = nb.block_survey(net, images, "slices", rows=rows, **work)
            table = table[np.argsort(table["image"], kind="stable")].reshape(len(images), len(net.block_names))
            for name in CLAIMED:
                columns[name].append(table[name])
            columns["alive"].append(live_outputs(net, images))
            progress.advance(task, len(images))
    loss, right = answer(net, data, chosen)
    about = {
        "network": network, "digest": digest_of(net), "dataset": data.name, "date": today(), "commit": commit(),
        "images": len(chosen), "rows": rows,
    }  # fmt: skip
    arrays = {name: np.concatenate(values).astype(np.float32) for name, values in columns.items()}
    return Slices(about, tuple(net.block_names), chosen, labels[chosen], loss, right, **arrays)


def live_outputs(net, images: torch.Tensor) -> np.ndarray:
    """The share of outputs above zero of every block at every image, (images, blocks)."""
    states = nb.block_states(net, images)
    with torch.inference_mode():
        outputs = [net.get_submodule(name)(state) for name, state in states.items()]
    return np.stack([(output > 0).flatten(1).double().mean(1).cpu().numpy() for output in outputs], 1)


def path_of(folder: Path, network: str) -> Path:
    """Where the slices of a network are in a folder."""
    return folder / f"slices-{network.replace('/', '-')}.npz"


def write_slices(slices: Slices, path: Path) -> None:
    arrays = {field.name: getattr(slices, field.name) for field in dataclasses.fields(slices)}
    arrays |= {"about": np.array(json.dumps(slices.about)), "blocks": np.array(slices.blocks)}
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_slices(path: Path) -> Slices:
    """What `write_slices` has written."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {field.name: file[field.name] for field in dataclasses.fields(Slices)}
    about, names = json.loads(str(arrays.pop("about"))), tuple(map(str, arrays.pop("blocks")))
    return Slices(about, names, **arrays)


def find_slices(network: str, digest: str, *folders: Path) -> Slices | None:
    """The slices of these very weights at the most images, in the folders; None where there are none."""
    there = [read_slices(path) for folder in folders if (path := path_of(folder, network)).is_file()]
    there = [slices for slices in there if slices.about["digest"] == digest]
    return max(there, key=lambda slices: slices.about["images"], default=None)


def show_slices(page: Page, slices: Slices):
    about = slices.about
    page.words(
        f"{about['images']:,} test images of {about['dataset']}, {about['rows']} output units of each block; "
        f"{about['date']}, commit {about['commit']}, {about['network']} (weights {about['digest']})."
    )
    page.table(
        "slices_alone",
        relation_rows(slices.relations(), slices.blocks),
        "S and percentage of slices against accuracy and loss, image by image within each block",
        "Spearman's correlation with its 95 % interval, and Holm's correction over the rows.",
    )
    page.table(
        "slices_alone_held",
        relation_rows(slices.relations_held(), slices.blocks),
        "The same beside live outputs",
        "Correlations of ranks minus a linear fit to the ranks of the share of live outputs: a dead output is a row of "
        "zeros in its slices.",
    )
    page.table(
        "slices_alone_labels",
        blocks.component_rows(slices.components(), slices.blocks),
        "How much of the variance within a block is between labels",
        "The variance component of labels over its sum with that of images; exact 95 % intervals, Holm's correction.",
    )


SLICES = (  # the exhibits of a run of slices alone, whose evidence is `Slices`
    Exhibit(
        "Slices alone (Tables 1, 4 and 7)",
        show_slices,
        lambda slices: [
            *blocks.judge_tables_3_6_9(slices.evidence()),
            *judge_tables_1_4_7(slices.evidence()),
        ],
    ),
)


# ---- How wrong a step is, image by image, and what that costs ----


def error_relations(measured: Measured, measures, blocks, target: str = "step_error") -> list[Relation]:
    """The measures of the branch against Euler's error (or "nsi") at the same images, within each block; Holm."""
    cases = itertools.product(blocks, dict.fromkeys([*measures, "nsi", "alive"]))
    return with_holm(relate(measured, block, measure, target) for block, measure in cases if measure != target)


def accuracy_by_flow(net, images: torch.Tensor, wanted: torch.Tensor, substeps: int = 16) -> dict[str, float]:
    """The share of right answers when one block at a time is its exact flow instead of its step; "" is the network.

    images    prepared for the network
    wanted    their labels
    substeps  of Runge and Kutta's method, which stand for the flow
    """
    images, wanted = images.to(device_of(net)), wanted.to(device_of(net))

    def score():
        with torch.inference_mode():
            return float((net(images).argmax(1) == wanted).double().mean())

    result = {"": score()}
    for name in inner_blocks(net):
        block = net.get_submodule(name)
        plain = copy.deepcopy(block)  # without the hook, which would call itself

        def flow(block, inputs, output, plain=plain):
            return block.project(torch.nan_to_num(nb.exact_flow(plain, inputs[0], substeps)))

        handle = block.register_forward_hook(flow)
        try:
            result[name] = score()
        finally:
            handle.remove()
    return result


def show_errors(page: Page, evidence: Evidence):
    measured, accuracies = evidence.measured, evidence.accuracies
    if evidence.errors:
        page.table(
            "predictors",
            relation_rows(evidence.errors, evidence.blocks),
            "Measures of the branch against Euler's error, image by image within each block",
            "The error is the distance of the block's one step from the exact flow of its branch over the same time, "
            "relative to the step.",
        )
        page.figure(
            draw_errors(measured, evidence.inner),
            "errors",
            "Euler's error of a block against measures of its branch. A point is an image, a colour a block.",
        )
    page.table(
        "flows",
        flow_rows(measured, accuracies),
        f"One block at a time replaced by its exact flow; the network as it is: {100 * accuracies['']:.1f} %",
        "The flow of u' = f(u) over the time 1 by Runge-Kutta steps. The network was trained with Euler's steps, so a "
        "loss of accuracy is no sign of stiffness; it shows, as accuracy, how far the step is from the flow.",
    )


def flow_rows(measured: Measured, accuracies: dict[str, float]) -> list[dict]:
    """A row per block: Euler's error, and the accuracy when the exact flow stands in the block's place."""
    rows = []
    for number, block in enumerate(measured.blocks, 1):
        if block not in accuracies:
            continue
        errors = rows_of(measured, block, "error")["step_error"]
        branch = rows_of(measured, block, "residual")
        rows.append({
            "block": number, "error of the step, median": float(np.median(errors)), "largest": float(errors.max()),
            "accuracy, %": 100 * accuracies[block],
            "less than the network's": 100 * (accuracies[""] - accuracies[block]),
            "max Re": float(branch["max_re"].mean()) if len(branch) else float("nan"),
            "min Re": float(branch["min_re"].mean()) if len(branch) else float("nan"),
        })  # fmt: skip
    return rows


def draw_errors(measured: Measured, blocks, measures=("max_re", "min_re", "stiffness_index", "nsi")):
    """Euler's error of a block against measures of its branch; a point is an image, a colour a block."""
    with style.figure(1, len(measures), height=2.8, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(blocks):
                x, y = shared_columns(measured, block, measure, "step_error")
                colour = style.COLOURS[number % len(style.COLOURS)]
                label = str(measured.blocks.index(block) + 1) if axis is axes[0, -1] else None
                mark = "o^s"[number // len(style.COLOURS) % 3]
                axis.plot(np.abs(x), y, mark, markersize=2.5, alpha=0.6, color=colour, label=label)
            networks.label_errors(axis, measure)
        axes[0, 0].set_ylabel("Euler's error of the step")
        drawing.legend(title="block", loc="outside right center", markerscale=2)
    return drawing


# ---- Adversarial examples: Section 1 ----

MOVES = (1, 2)  # of images, in units of a pixel's 255 values


def robustness(net, data, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Per image, larger where it is the more easily answered otherwise.

    flips at 1/255, 2/255  1 where one step of that size along the sign of the loss's gradient (FGSM) changes the answer
    small margin           minus the distance of the largest logit from the second
    growth                 how many times larger the step of 1/255 is after the last block than before the first one,
                           both in the norm over the state
    """
    images = prepare(net, data, data.test_images[chosen]).to(device_of(net))
    labels = data.test_labels[chosen]
    result = {}
    for size in MOVES:
        there, logits = move_images(net, images, labels, size / 255)
        with torch.inference_mode():
            result[f"flips at {size}/255"] = (net(there).argmax(1) != logits.argmax(1)).cpu().numpy().astype(float)
        if size == MOVES[0]:
            result["growth"] = growth(net, images, there)
    best = logits.topk(2, 1).values
    result["small margin"] = (best[:, 1] - best[:, 0]).double().cpu().numpy()
    return result


def growth(net, images: torch.Tensor, there: torch.Tensor) -> np.ndarray:
    """The distance of two images' states after the last block, over that before the first block."""
    name, ends = net.block_names[-1], []
    with torch.inference_mode():
        for states in (nb.block_states(net, images), nb.block_states(net, there)):
            ends.append((states[net.block_names[0]], net.get_submodule(name)(states[name])))
    before, after = ((one - other).flatten(1).norm(dim=1) for one, other in zip(*ends, strict=True))
    return (after / before).double().cpu().numpy()


def judge_flips(evidence: Evidence) -> list[Finding]:
    return [RULES["flips"](evidence.turned, TURNED)]


def show_flips(page: Page, evidence: Evidence):
    norms = relations(evidence.measured, evidence.targets, NORMS, ["norms"], evidence.inner)
    related = [*evidence.turned, *norms]
    if not related:
        return
    page.table(
        "adversarial",
        relation_rows(related, evidence.blocks),
        "Measures of the branch against flipped answers, margins and the growth of a perturbation",
        "FGSM at 1/255 and 2/255; growth of the step of 1/255 from the state before the first block to that after the "
        "last one; minus the distance of the two largest logits. Log norm and largest singular value belong to the "
        "whole Jacobian of the branch. Holm's correction is over the measures of the paper and over the norms.",
    )
    panels = {"flips at 1/255": "flips, 1/255", "flips at 2/255": "flips, 2/255", "small margin": "small margin"}
    page.figure(
        draw_correlations(related, evidence, panels | {"growth": "growth"}),
        "adversarial",
        "Rank correlations with what an attacker gains, image by image within each block. Framed: p < 0.05 after "
        "Holm's correction. Grey: nothing to correlate.",
    )


EXHIBITS = (
    Exhibit("Accuracy and loss (Tables 1, 4 and 7)", show_answers, judge_tables_1_4_7),
    Exhibit("Adversarial examples (Section 1)", show_flips, judge_flips),
    Exhibit("How wrong a step is, and what that costs", show_errors),
)
