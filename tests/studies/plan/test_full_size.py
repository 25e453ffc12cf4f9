"""Every arm of every plan at the paper's scale, built at full size on the meta device: that it is what the paper says.

What is compared with are the papers' own tables of recipes, typed here once more from their text, so that a recipe of
netbridge that is changed by mistake is seen.
"""

import fnmatch
import functools

import pytest
import torch

import netbridge as nb
from netbridge.detect import Detector
from netbridge.step_sizes import ASR, SE
from netbridge.step_sizes.asr import itself
from studies import plan as study
from studies import step_control, tricks
from studies import table as tables
from studies.asr import __main__ as asr
from studies.asr import design
from studies.asr.design import Plan
from studies.lab.jobs import Job

# ASR, Tables 10 and 11, and StepNet, Table 6: epochs, drops, gamma, weight decay, rate, batch on CIFAR and on STL-10.
SGD, ADAMW = ("sgd", 0.9), ("adamw", 0.9)
PRINTED = {
    "paper": (164, SGD, "steps", (81, 122), 0.1, 1e-4, 0.1, 128),
    "paper-stl10": (164, SGD, "steps", (81, 122), 0.1, 1e-4, 0.1, 16),
    "paper-vgg": (164, SGD, "steps", (60, 120, 160), 0.2, 5e-4, 0.1, 128),
    "paper-repvgg": (164, SGD, "steps", (130,), 0.1, 1e-4, 0.1, 128),
    "paper-acnet": (164, SGD, "cosine", (), 0.333, 1e-4, 0.1, 128),
    "imagenet": (100, SGD, "steps", (30, 60, 90), 0.1, 1e-4, 0.1, 128),
    "imagenet-256": (120, SGD, "steps", (30, 60, 90), 0.1, 1e-4, 0.1, 256),
    "imagenet-vit": (300, ADAMW, "cosine", (), 0.1, 5e-2, 5e-4, 256),
}
NO_RECIPE = {"vit", "coco-1x"}  # of Table 7 and of Table 3 of the StepNet paper, which name none
DATA = ("cifar100", "stl10", "cifar10")
PIXELS = {"cifar10": 32, "cifar100": 32, "stl10": 96, "imagenet": 224}


def row_of(recipe) -> tuple:
    """What the papers print of a recipe."""
    optimizer = recipe.optimizer, recipe.momentum
    return (
        recipe.epochs, optimizer, recipe.schedule, recipe.drops, recipe.gamma, recipe.weight_decay, recipe.lr,
        recipe.batch,
    )  # fmt: skip


def papers_row(name: str, dataset: str) -> tuple:
    """The paper's row, with Appendix C's batch on STL-10."""
    row = PRINTED[name]
    return (*row[:-1], 16) if dataset == "stl10" else row


def count(net) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


@functools.cache
def cells() -> dict[str, study.Cell]:
    """One cell for every job of the plan of the papers' cells."""
    found: dict[str, study.Cell] = {}
    for cells_of_paper in study.SOURCES.values():
        for cell in cells_of_paper():
            if cell.job is not None:
                found.setdefault(study.key_of(cell), cell)
    return found


@functools.cache
def plan_of_asr(dataset: str) -> Plan:
    return Plan(asr.fill_in_options(asr.Arguments(full=True, dataset=dataset, seeds=(1,))))


def build(job: Job):
    with torch.device("meta"):
        return job.untrained_network(study.CLASSES[job.dataset], PIXELS[job.dataset])


TABLES = sorted({(cell.paper, cell.table) for cell in cells().values()})


@pytest.mark.slow  # three hundred networks
@pytest.mark.parametrize(("paper", "table"), TABLES)
def test_every_planned_cell_is_a_network_of_the_papers_sizes(paper, table):
    """It can be built, sees images of the data set's size, and has its classes."""
    for cell in [one for one in cells().values() if (one.paper, one.table) == (paper, table)]:
        net = cell.build()
        assert count(net) > 10**5, cell.network
        if isinstance(net, Detector):
            continue
        assert net.config["num_classes"] == cell.classes
        if isinstance(cell.job, Job):
            assert cell.size == PIXELS[cell.job.dataset], cell.network
            assert cell.job.images is None
            assert cell.classes == {"cifar10": 10, "cifar100": 100, "stl10": 10, "imagenet": 1000}[cell.job.dataset]


def test_every_planned_recipe_is_the_papers_row():
    """Field by field, whatever the recipe is called; Figure 8's tricks are the plain row with one change each."""
    seen = set()
    for cell in cells().values():
        if cell.recipe is None or cell.recipe.name in NO_RECIPE:
            continue
        job = cell.job
        name = "paper" if cell.table == "Fig. 8" else cell.recipe.name
        assert row_of(cell.recipe) == papers_row(name, job.dataset), cell.network
        assert cell.wanted is not None
        assert row_of(cell.wanted) == papers_row(name, job.dataset)
        told = {change.split()[0] for change in cell.changes}
        assert told <= ({"decay_gates"} if cell.table != "Fig. 8" else set(tricks.tricks(True)["all"]) | {"sam"})
        seen.add(name)
    assert seen == set(PRINTED)


@pytest.mark.parametrize("dataset", DATA)
def test_every_arm_of_asr_trains_by_the_papers_row_for_its_network(dataset):
    backbone = {"RepVGG": "paper-repvgg", "ACNet": "paper-acnet", "VGG": "paper-vgg", "MobileNetV1": "paper-vgg",
                "ShuffleNetV2": "paper-vgg", "MobileNetV2": "paper-vgg"}  # fmt: skip
    for run in plan_of_asr(dataset).everything():
        if run.part in ("finetuned", "dynamics") or run.column == design.TRANSFORMER:
            continue  # an epoch of fine-tuning, schedules that are varied, and a transformer of the project's own
        assert row_of(run.job.recipe) == papers_row(backbone.get(run.column, "paper"), dataset), run.stem
        assert (run.job.size, run.job.images) == (None, None)
        assert run.job.recipe.decay_gates == ("asr(" not in run.job.label or run.arm == design.DECAYED)


@functools.cache
def arms_of_asr() -> list[tuple]:
    """(part, arm, column, job) of every arm of `asr --full` on CIFAR-100, one seed."""
    runs = [run for run in plan_of_asr("cifar100").everything() if run.part != "finetuned"]
    return [(run.part, run.arm, run.column, run.job) for run in runs if run.seed == 0]


@pytest.mark.slow
@pytest.mark.parametrize("part", sorted({part for part, *_ in arms_of_asr()}))
def test_every_arm_of_asr_is_built_at_the_papers_size(part):
    """Heads have the paper's hidden units, constants that start elsewhere are the last norm of their branch."""
    for _, arm, column, job in [one for one in arms_of_asr() if one[0] == part]:
        net = build(job)
        assert net.config["num_classes"] == 100
        names = dict(net.named_parameters())
        for pattern, _ in job.start:
            matching = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
            if arm == design.GAMMA:
                last = [id(block.branch.last.weight) for block in net.blocks]
                assert [id(names[name]) for name in matching] == last
                assert {block.branch.last for block in net.blocks} == {block.branch.bn3 for block in net.blocks}
            assert len(matching) == len(net.blocks)
        if part == "backbones" or "ResNet-56" in (arm + column):
            continue
        assert job.depth == 164
        assert {block.branch.last.num_features for block in net.blocks} == {64, 128, 256}
        heads = [head for head in net.modules() if isinstance(head, SE)]
        if arm in (design.FAITHFUL, design.DECAYED, "SE", *design.USES, *design.FIXED, *design.STARTS) and heads:
            hidden = {head.excite[0].out_features for head in heads}
            assert hidden == {4, 8, 16}, (arm, hidden)


def test_uses_fixed_vectors_and_first_values_are_those_of_the_tables():
    """Tables 6, 7 and 13: how often, what is learnt, and where psi starts."""
    arms = {arm: job for _, arm, _, job in arms_of_asr()}
    for arm, uses in (("2 uses", 2), ("3 uses", 3), ("4 uses", 4), (design.FAITHFUL, 1)):
        controllers = [itself(block.controller) for block in build(arms[arm]).blocks]
        assert all(isinstance(one, ASR) and len(one.heads) == len(one.psi) == uses for one in controllers)
    for arm in design.FIXED:
        net = build(arms[arm])
        assert not [name for name, _ in net.named_parameters() if name.endswith("psi")]
        assert [name for name, _ in net.named_buffers() if name.endswith("psi")]
    assert {arm: arms[arm].label for arm in design.STARTS} == {
        f"psi from {tenth / 10}": f"asr(se, init={tenth / 10})" for tenth in range(2, 7)
    }


@pytest.mark.slow
def test_parameters_are_those_that_the_papers_print():
    """Table 1 of either paper, and Table 2 of the ASR paper, where millions are written without their rest."""
    first = [cell for cell in cells().values() if cell.table == "1" and isinstance(cell.job, Job)]
    known = {(cell.job.label, cell.job.dataset): cell for cell in first}
    for (label, dataset), cell in known.items():
        printed = tables.PARAMETERS[label][dataset == "cifar100"]
        assert count(cell.build()) / 1e6 == pytest.approx(printed, abs=0.01), (label, dataset)
    assert {label for label, _ in known} >= {"constant", "se", "cbam", "eca", "sem", "srm", "fca", "iebn", "stepnet"}
    networks = {"ResNet34": 22, "ResNet50": 26, "ResNet101": 45, "ViT-S": 22, "ViT-B": 86}
    second = [cell for cell in cells().values() if (cell.paper, cell.table) == ("ASR", "2")]
    plain = [cell for cell in second if cell.job.label == "constant"]
    for cell in plain:
        millions = count(cell.build()) / 1e6
        assert networks[cell.row] in (int(millions), round(millions)), (cell.row, millions)
    assert {cell.row for cell in plain} == set(networks)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", DATA)
def test_the_ablation_of_stepnet_has_the_papers_networks(dataset):
    arguments = step_control.fill_in_options(step_control.Arguments(full=True, dataset=dataset, seeds=(1,)))
    plan = step_control.Plan(arguments)
    for row in step_control.CELLS:
        job = plan.cell(row, 0).job
        assert (job.depth, job.width, job.size, job.images) == (164, 16, None, None)
        assert row_of(job.recipe) == papers_row("paper", dataset)
        net = build(job)
        assert sum(net.config["blocks"]) == 54
        if row == step_control.OURS:
            classes = 100 if dataset == "cifar100" else 10
            assert count(net) == count(nb.resnet(164, classes, "stepnet"))
    assert plan.few(step_control.EVERY) == 5


@pytest.mark.slow
@pytest.mark.parametrize("dataset", DATA)
def test_the_tricks_have_the_papers_networks_and_their_data_sets_images(dataset):
    for job in tricks.queue(True, dataset, 1):
        assert (job.depth, job.width, job.size, job.images) == (164, 16, PIXELS[dataset], None)
        assert row_of(job.recipe) == papers_row("paper", dataset)
        assert count(build(job)) == count(nb.resnet(164, study.CLASSES[dataset]))
