"""asr's plan: what is trained, in which order, under which name; and that every arm is what its name says."""

import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge.train.stepping import make_optimizer
from studies.asr import __main__ as asr
from studies.asr import accuracy, design, whole_networks
from studies.asr.design import BIAS, FAITHFUL, GAMMA, HALF, LITERAL, PLAIN
from studies.asr.evidence import find_shipped
from studies.lab import definitions
from tests.studies.asr.made_up import plan_of

PARTS = [name for names in design.TIERS.values() for name in names]


def network(run, size=16):
    return run.job.untrained_network(10, size)


def arms_of(plan, part):
    return {run.arm: run for run in plan.part(part) if run.seed == 0}


def test_the_queue_goes_by_claims(tmp_path):
    """What a claim lacks at the small scale comes before anything of the large one, the pictures among it."""
    plan = plan_of(tmp_path, dataset="cifar10", seeds=(3,))
    queue = asr.queue(plan, painted=True)
    places = {one.stem: place for place, one in enumerate(queue)}
    assert len(places) == len(queue)
    paintings = [one for one in queue if isinstance(one, whole_networks.Painting)]
    assert {one.stem for one in paintings} == {one.stem for one in whole_networks.plan_paintings((0, 1, 2))}
    early = max(places[one.stem] for one in paintings if one.style == paintings[0].style)
    for part, arms in (("uses", design.DECIDING_USES), ("fixed", design.FIXED), ("beside", design.BESIDE)):
        small = [run for run in plan.part(part) if run.arm in arms and run.column == design.SMALL_SCALE]
        large = [run for run in plan.part(part) if run.column != design.SMALL_SCALE]
        assert max(places[run.stem] for run in small) < early < min(places[run.stem] for run in large)
    assert asr.queue(plan, painted=False) == plan.queue()


def test_ablations_are_asked_at_both_scales(tmp_path):
    plan = plan_of(tmp_path, dataset="cifar10")
    for part, arms in design.TWICE.items():
        sizes = {column: {run.job.size for run in plan.part(part) if run.column == column}
                 for column in ("", design.SMALL_SCALE)}  # fmt: skip
        assert sizes == {"": {None}, design.SMALL_SCALE: {16}}
        for column, more in (("", {}), (design.SMALL_SCALE, design.OF_OTHERS.get(part, {}))):
            assert {run.arm for run in plan.part(part) if run.column == column} == {*arms, *more}


def test_small_effects_have_more_seeds_at_the_small_scale_and_they_come_last(tmp_path):
    """The numbers of `design.NEEDED`, as far as seeds are asked for; other parts and the large scale have three."""
    plan = plan_of(tmp_path, dataset="cifar10", seeds=(20,))
    for part in ("noise", "backbones", *design.TWICE):
        seeds = {run.seed for run in plan.part(part) if part not in design.TWICE or run.column == design.SMALL_SCALE}
        assert len(seeds) == design.NEEDED.get(part, design.FEW)
    large = [run for part in design.TWICE for run in plan.part(part) if run.column != design.SMALL_SCALE]
    assert {run.seed for run in large} == set(range(design.FEW))
    late = [
        run.is_beside_the_claims or (run.seed >= design.FEW and run.part not in (*design.TIERS[1], "small"))
        for run in plan.queue()
    ]
    assert any(late)
    assert late == sorted(late)
    watched = {run.arm: [] for run in plan.part("dynamics")}
    for run in plan.part("dynamics"):
        watched[run.arm].append(run.seed)
    assert all(seeds == ([0, 1, 2] if arm in design.AT_THE_DROP else [0]) for arm, seeds in watched.items())


def test_rows_choose(tmp_path):
    plan = plan_of(tmp_path, only=(PLAIN, "2 uses"))
    assert {run.arm for run in plan.runs()} == {PLAIN, "2 uses"}
    assert {run.arm for run in plan.everything()} > {PLAIN, "2 uses", HALF}


def test_a_controller_of_ones_own_joins_the_modules(tmp_path):
    """Only of the files that are given, whatever else has been defined in this process."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import netbridge as nb\n"
        "class Mine(nb.ChannelController, name='mine of asr'):\n    def head(self, statistic): return statistic\n"
        "class Headless(nb.Controller, name='headless'):\n    def forward(self, state, slope): return 0.5\n"
    )
    definitions.run_file(file)
    assert not [run for run in plan_of(tmp_path).runs() if "mine of asr" in run.arm]
    plan = plan_of(tmp_path, define=(file,))
    own = {"mine of asr", "ASR(mine of asr)", "mine of asr + ASR(mine of asr)", "headless"}
    beside = [run for run in plan.part("beside") if run.arm in own]
    assert {run.arm for run in beside} == own
    assert not [run for run in plan.runs() if "ASR(headless)" in run.arm]  # it has no head to feed a vector to
    for run in beside[: len(own)]:
        assert network(run)(torch.rand(2, 3, 16, 16)).shape == (2, 10)
    assert {run.column for run in plan.part("backbones") if run.arm == "ASR(mine of asr)"} == set(design.BACKBONES)


def test_noise_none_is_the_small_scale(tmp_path):
    """One network, two parts of the study, one file."""
    plan = plan_of(tmp_path, dataset="cifar10")
    beside = [run for run in plan.part("beside") if run.column == design.SMALL_SCALE]
    small = {(run.arm, run.seed): run.stem for run in (*plan.part("small"), *beside)}
    none = {(run.arm, run.seed): run.stem for run in plan.part("noise") if run.column == "none"}
    assert none.items() <= small.items()
    job = plan.part("small")[0].job
    assert (job.size, job.images, job.recipe.epochs) == (16, 128, 2)  # fewer were asked for
    job = plan_of(tmp_path, dataset="cifar10", images=None, epochs=None).part("small")[0].job
    assert (job.size, job.images, job.recipe.epochs) == (16, 10_000, 5)


@pytest.mark.parametrize("part", PARTS)
def test_every_planned_network_can_be_built_and_answers(tmp_path, part):
    for run in plan_of(tmp_path, seeds=(1,)).part(part):
        net = network(run).eval()
        assert net(torch.rand(2, 3, 16, 16)).shape == (2, 10), run.stem


def test_arms_are_what_their_names_say(tmp_path):
    arms = {name: network(run) for name, run in arms_of(plan_of(tmp_path), "controls").items()}
    x = torch.rand(4, 3, 16, 16)
    h = {name: [one.h for one in nb.gates(net.eval(), x)] for name, net in arms.items()}
    for k, block in enumerate(arms[GAMMA].blocks):
        assert float(h[PLAIN][k].min()) == float(h[PLAIN][k].max()) == 1.0
        assert float(h[HALF][k].min()) == float(h[HALF][k].max()) == 0.5
        assert float(h[BIAS][k].min()) == float(h[BIAS][k].max()) == 0.5
        assert bool((block.branch.bn2.weight == 0.5).all())
        assert bool((block.branch.bn1.weight == 1.0).all())
    assert [one.hidden for one in nb.gates(arms[FAITHFUL], x)] == [4, 8, 16]
    assert [one.hidden for one in nb.gates(arms[LITERAL], x)] == [1, 2, 4]
    # gamma = 0.5 is the same function as half, begun with the same weights
    assert torch.allclose(arms[GAMMA](x), arms[HALF](x), atol=1e-5)


@pytest.mark.parametrize(("depth", "norm"), [(8, "bn2"), (29, "bn3")])
def test_the_controls_of_basic_blocks_and_bottlenecks_are_those_that_their_names_say(tmp_path, depth, norm):
    """A scale that another normalisation follows would be divided away, and a head has the paper's hidden units."""
    plan = plan_of(tmp_path, depth=depth)
    arms = {name: network(run) for name, run in arms_of(plan, "controls").items()}
    x = torch.rand(2, 3, 16, 16)
    assert {block.branch.last for block in arms[GAMMA].blocks} == {getattr(b.branch, norm) for b in arms[GAMMA].blocks}
    for block in arms[GAMMA].blocks:
        scales = {name: set(m.weight.tolist()) for name, m in block.branch.named_children() if name.startswith("bn")}
        assert scales == {name: {0.5 if name == norm else 1.0} for name in scales}
    assert torch.allclose(arms[GAMMA].eval()(x), arms[HALF].eval()(x), atol=1e-5)
    for part, arm in (("controls", FAITHFUL), ("uses", "2 uses"), ("fixed", "psi = 0.1"), ("starts", "psi from 0.2")):
        run = next(run for run in plan.part(part) if run.arm == arm and run.column != design.SMALL_SCALE)
        assert {len(block.controller.heads[0].excite[0].bias) for block in network(run).blocks} == {4, 8, 16}
    stems = {run.stem for run in plan.part("controls") if run.seed == 0}
    assert len(stems) == len(arms)  # two arms of one network would be one arm counted twice


def test_biases_of_se_start_at_zero_where_they_shall(tmp_path):
    arms = {name: network(run) for name, run in arms_of(plan_of(tmp_path), "small").items()}
    for live, centred in zip(arms["SE"].blocks, arms["SE, b2 = 0"].blocks, strict=True):
        assert bool((centred.controller.excite[2].bias == 0).all())
        assert not bool((live.controller.excite[2].bias == 0).any())
        assert torch.equal(live.controller.excite[0].weight, centred.controller.excite[0].weight)


def test_noise_is_in_every_normalisation(tmp_path):
    for run in plan_of(tmp_path, seeds=(1,)).part("noise"):
        norms = [module for module in network(run).modules() if isinstance(module, nn.BatchNorm2d)]
        noise = design.NOISES[run.column]
        if noise is None:
            assert not any(isinstance(norm, nb.NoisyNorm) for norm in norms)
        else:
            assert {(norm.scale, norm.shift, norm.deviation) for norm in norms} == {noise}


def test_psi_decays_only_where_its_arm_says_so(tmp_path):
    plan = plan_of(tmp_path)
    runs = {**arms_of(plan, "origin"), **arms_of(plan, "controls")}
    for name, decays in ((design.DECAYED, True), (LITERAL, False), (FAITHFUL, False)):
        net = network(runs[name])
        groups = make_optimizer(net, runs[name].job.recipe).param_groups
        decaying = {id(x) for group in groups if group["weight_decay"] > 0 for x in group["params"]}
        assert {id(block.controller.psi) in decaying for block in net.blocks} == {decays}
        assert id(net.blocks[0].branch.conv1.weight) in decaying
    assert runs[PLAIN].job.recipe == plan.recipe  # what decays not is not named where there is nothing to name


def test_the_shipped_networks_are_found_again_by_their_jobs(tmp_path):
    """Plain networks and ASR with a decaying psi are in the package; the arms of the study are not."""
    plan = plan_of(tmp_path, dataset="cifar10", depth=20, epochs=None, images=None)
    known = {(run.arm, run.seed) for part in ("controls", "origin") for run in plan.part(part) if find_shipped(run)}
    assert known == {(PLAIN, 0), (PLAIN, 1), ("SE", 0), ("SE", 1), (design.DECAYED, 0), (design.DECAYED, 1)}


def test_every_cell_of_the_papers_small_tables_has_an_arm(tmp_path):
    """Tables 3, 6, 7, 8 and 13: what is printed of a module can be asked; those beside SE are trained last."""
    plan = plan_of(tmp_path, dataset="cifar10", seeds=(4,))
    runs = {part: plan.part(part) for part in ("beside", "noise", "uses", "fixed", "starts", "backbones")}
    arms = {part: {run.arm for run in several} for part, several in runs.items()}
    usual = ("1 use", "psi from 0.1")  # the arms that the design calls ASR(SE), ASR(IE), ...
    for part in ("uses", "fixed", "starts"):
        assert {name for name in accuracy.printed(part, "cifar100") if not name.endswith(usual)} <= arms[part]
    assert {f"ASR({module})" for module in design.OTHERS} <= arms["beside"]
    columns = {(run.column, run.arm) for part in ("noise", "backbones") for run in runs[part]}
    assert columns >= {(name, f"ASR({module})") for name in design.TABLE_8 for module in ("IE", "SRM")}
    backbones = [name for name in design.TABLE_3 if name != "ResNet"]
    assert columns >= {(name, f"ASR({module})") for name in backbones for module in design.OTHERS}
    last = [run for several in runs.values() for run in several if run.is_beside_the_claims]
    assert {run.seed for run in last} == set(range(design.FEW))
    assert min(map(plan.turn, last)) > max(
        plan.turn(run) for run in runs["noise"] if run.column == "random 0.3" and run.seed < 3 and run not in last
    )
