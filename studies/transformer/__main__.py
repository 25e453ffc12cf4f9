"""First paper, Appendix G: Table 7, stiffness and step sizes of ViTs, attention as a step (about 1 min).

Claims examined: StepNet raises the accuracy of a ViT (Table 7); a transformer's attention is an adaptive step size
below 1 (Eq. 32) that depends on the stiffness because its queries are a function of its values (Eq. 33); and the claims
of Figures 2, 6 and 9, which the paper makes for convolutional residual networks. Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023.

Last result (ViTs of 0.5 million parameters, CIFAR-10, six epochs, constant, SE, StepNet, one seed each, 1,000 images,
2026-11-19): 69.01, 69.10 and 69.33 %, which decides nothing; rows of the attention sum to 1; Eq. 33 holds for all heads
together (value maps of condition 416 to 33,720) and for no head alone; a larger NSI goes with smaller step sizes at 9
of SE's 11 counted steps, and with larger ones at 10 of StepNet's, which stay where they start, at 0.27.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import netbridge as nb
from netbridge import data as datasets
from studies.cifar_tns.figures import cloud_figure
from studies.cifar_tns.tables import gate_table
from studies.lab import definitions, jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import signed_cell
from studies.lab.networks import images_or_fallback
from studies.lab.options import TracingOptions, fill_in
from studies.lab.page import Page
from studies.lab.statistics import choices
from studies.lab.stiffness import measure_each
from studies.transformer import design, figures, tables
from studies.transformer.findings import findings
from studies.transformer.measures import classes_fit, study_network

STUDY = "transformer"
INDEX = "NSI is the branch before its gate over the state"
HOLLOW = "Hollow: the first step of its kind; the very first is never counted."


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Vision transformers whose attentions and MLPs are steps of the solver: figures, tables, conclusions."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 1,000 test images of the shipped networks; full: all of them; with --train five seeds by recipe vit."""
    train: bool = False
    """First train what is missing, then look at those networks; stopped and given again, it goes on. With --preset full
    every data set of Table 7 that can be had is trained on."""
    recipe: str | None = None
    """How to train: short (6 epochs on pictures that grow), or vit (40); the preset's by default."""
    epochs: int | None = None
    """Another number of epochs than the recipe's."""
    out: Path = Path("results/transformer")
    """Where figures, tables, report.html and record.json go, and trained networks."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, dataset="digits", controllers=("constant", "stepnet"), seeds=(0,), images=64, resamples=20
        )
    require_at_least(1, arguments, "epochs")
    for path in arguments.define:
        definitions.run_file(path)
    data, notice, arguments = images_or_fallback(STUDY, arguments, "shows transformers trained on", no_networks)
    arguments = fill_in_preset(arguments, len(data.test_images))
    folders = (train_networks(arguments, data),) if arguments.train else arguments.checkpoint
    subjects = choose_networks(networks.checkpoints(folders) or shipped_networks(data.name), arguments, data)
    page = Page(
        STUDY,
        arguments,
        f"Transformers as trajectories, on {data.name}",
        f"{len(subjects)} networks, {len({s.controller for s in subjects})} controllers, {arguments.images} test "
        "images. After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective "
        "(2023), Appendix G.",
        notice,
    )
    found = measure_networks(subjects, data, arguments)
    page.heading("What these data say")
    page.words(networks.scale_of(subjects, "of its ViT the paper states neither size nor recipe"))
    page.findings(findings(found))
    accuracy(page, found, data.name)
    depth(page, found)
    step_sizes(page, found)
    attention(page, found)
    page.close()


def accuracy(page, found, dataset):
    page.heading("Accuracy (Table 7)")
    about = found[0].subject.net.about
    page.words(
        f"The paper names neither the size of its ViT, nor how it was trained, nor where StepNet stands in it. These "
        f"networks have {found[0].subject.parameters / 1e6:.2f} million parameters and saw the training images "
        f"{about.get('epochs', 'an unknown number of')} times: their accuracies are not to be held against the "
        "paper's, only their differences. StepNet here sets the step size of every attention and of every MLP; a block "
        "without attention would have nothing left that mixes tokens."
    )
    page.table(
        "table7",
        tables.table7_rows(found, dataset),
        "Test accuracy beside the paper's",
        "Mean and standard deviation over seeds; gains over constant step sizes in points, intervals by Tukey-Kramer.",
    )
    if dataset in design.DATASETS:
        page.table(
            "missing",
            tables.missing_rows(dataset),
            "Rows of Table 7 that are not here",
            "Their data must be had first.",
        )
    page.table("networks", tables.network_rows(found), "Every network", printed=False)


def depth(page, found):
    page.heading("Stiffness along depth, and in all")
    page.figure(
        figures.depth_figure(found, "slope"),
        "nsi_depth_slope",
        f"NSI of attention and MLP steps along depth, mean over images. A dash pattern per seed; the band holds nine "
        f"images of ten for the first of them. {INDEX}. {HOLLOW}",
    )
    page.figure(
        figures.depth_figure(found, "increment"),
        "nsi_depth_increment",
        "The same by the other index, the change of the state over the state. Without a gate the two are one: a "
        "transformer's step has no final ReLU. A gate below 1 (StepNet's starts at 0.27 on every step) leaves the "
        "branch free to be larger: what only the slope shows may be no more than that.",
    )
    page.figure(
        figures.tns_figure(found),
        "tns",
        "Exact TNS of every network under eight readings, with 95 % intervals over images. Left: all steps as one "
        "stage; right: attentions compared with attentions, MLPs with MLPs.",
    )
    page.table("tns", tables.tns_rows(found), "TNS with 95 % intervals over images", printed=False)
    page.table("steps", tables.step_rows(found), "Every step", printed=False, told=False)


def step_sizes(page, found):
    page.heading("Step size and stiffness (Figure 9)")
    gated = [one for one in found if one.along]
    if not gated:
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")
        return
    page.figure(
        figures.step_size_figure(gated),
        "step_sizes",
        "The step size that a controller gives each step, averaged over features. Mean over images; the band holds "
        "nine images of ten.",
    )
    kept, table, _ = gate_table([one.found for one in gated], "slope")
    if not kept:
        page.words("No step size moves by a standard deviation of 0.01 over the images: nothing to correlate.")
        return
    names = [one.name for one in gated if one.found in kept]
    blocks = strongest(table[0])
    page.figure(
        cloud_figure(kept[0], "slope", blocks, table[0], "step"),
        "gate_cloud",
        f"Mean step size of an image against its NSI at {len(blocks)} steps, the three counted ones with the strongest "
        "correlation (Figure 9a). Odd steps are attentions, even ones MLPs.",
    )
    page.table(
        "gate",
        [
            {"network": name, **{f"{k + 1}": signed_cell(value) for k, value in enumerate(line)}}
            for name, line in zip(names, table, strict=True)
        ],
        "Spearman's correlation of step size and NSI over images, step by step",
    )
    page.figure(
        figures.along_figure(gated),
        "gate_along",
        "The correlation of step size and NSI along the counted steps of single images, a histogram over images "
        "(Figure 9b as worded). Over all steps the two kinds are mixed, whose step sizes and indices differ by nature.",
    )


def strongest(line) -> list[int]:
    """The three steps with the strongest correlations, in their order, the first step aside."""
    places = [k for k in range(1, len(line)) if line[k] == line[k]]
    return sorted(sorted(places, key=lambda k: -abs(line[k]))[:3])


def attention(page, found):
    page.heading("Attention as a step size (Eqs. 32 and 33)")
    page.figure(
        figures.attention_figure(found),
        "attention",
        f"What attention is, step by step, on {found[0].seen} test images. Above: the mean diagonal and the mean "
        "largest weight of a row; below: the condition number of the value map of all heads, and the relative error of "
        "the queries computed from the values by its inverse, beside ten rounding errors times that number.",
    )
    page.table("attention", tables.attention_rows(found), "Every attention step", printed=False)


def no_networks(arguments) -> str:
    """The message where a data set is there and no network trained on it; "" where there are networks."""
    if arguments.checkpoint or arguments.train or shipped_networks(arguments.dataset):
        return ""
    return f"no transformers trained on {arguments.dataset} come with this copy of the repository."


def shipped_networks(dataset: str) -> list[Path]:
    return sorted((networks.ZOO / f"{dataset}-vit").glob("*.safetensors"))


def fill_in_preset(arguments, available: int):
    """The options with everything filled in that the preset says; with --train its seeds and its recipe, too."""
    preset = design.PRESETS[arguments.preset]
    arguments, *_ = fill_in(arguments, preset, available, fewest=4)
    seeds = arguments.seeds or (preset["seeds"] if arguments.train else ())
    return dataclasses.replace(arguments, recipe=arguments.recipe or preset["recipe"], seeds=seeds)


def train_networks(arguments, data) -> Path:
    """The folder of the networks asked for, those of Table 7's other data sets trained beside them."""
    nb.tune_allocator()
    every = arguments.preset == "full" and data.name in design.DATASETS
    for name in (data.name, *(other for other in design.DATASETS if every and other != data.name)):
        try:
            images = data if name == data.name else datasets.load(name, arguments.data_root)
        except datasets.DataUnavailable:
            print(f"{name} cannot be had here; its rows of Table 7 are left out.", flush=True)
            continue
        with plain_errors(STUDY):
            wanted = design.queue(name, arguments)
        jobs.train_all(wanted, images, arguments.out / "networks" / name, STUDY, arguments.device)
    return arguments.out / "networks" / data.name


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    for one in subjects:
        if one.net.config.get("family") != "vit":
            raise SystemExit(f"{one.source} is no transformer; python -m studies.cifar_tns looks at residual networks.")
        if not classes_fit(one.net, data):
            raise SystemExit(
                f"{one.source} tells another number of classes apart than {data.name} has: choose its `--dataset`."
            )
        if one.net.config["blocks"][0] < 4:
            raise SystemExit(f"{one.source} has a single block, and first steps are not counted: take a deeper one.")
    return networks.select(subjects, arguments, data.name, "`--train` makes what is missing.")


def measure_networks(subjects, data, arguments):
    """Everything about every network."""
    draws = choices(arguments.images, arguments.resamples, seed=0)

    def look(one, progress):
        return study_network(one, data, arguments.images, arguments.device, draws, progress)

    return measure_each(subjects, arguments.images, look)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
