"""asr's report: tables and figures hold the numbers of the evidence, and what is missing is said."""

import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import tyro

import netbridge as nb
from netbridge import data as datasets
from studies.asr import __main__ as asr
from studies.asr import accuracy, attention_values, design, whole_networks
from studies.asr.design import FAITHFUL, HALF, PLAIN
from studies.asr.evidence import Evidence, result_rows
from studies.lab.exhibits import show, write
from studies.lab.networks import ZOO
from studies.lab.page import Page
from tests.studies import pages
from tests.studies.asr.made_up import (
    block,
    bounds,
    evidence,
    maps,
    painted,
    plan_of,
    replaced,
    result,
    seeds_of,
    shares,
)


def everything(plan) -> Evidence:
    """Evidence of which every part knows something."""
    rows = {}
    controls = {name: 90.0 + place for place, name in enumerate(design.CONTROLS)}
    rows |= evidence("small", **controls).rows | evidence("controls", **dict.fromkeys(design.CONTROLS, 89.0)).rows
    rows |= evidence("origin", **dict.fromkeys(design.ORIGIN, 88.0)).rows
    for name in design.NOISES:
        rows |= evidence("noise", name, **dict.fromkeys(design.NOISY, 60.0)).rows
    for name in design.BACKBONES:
        arms = design.ON_TRANSFORMERS if name == design.TRANSFORMER else design.ON_BACKBONES
        rows |= evidence("backbones", name, **dict.fromkeys(arms, 70.0)).rows
        for found in rows["backbones", name].values():
            for one in found:
                one.blocks.clear()
    for part in ("beside", "uses", "fixed", "starts", "bare"):
        arms = getattr(design, part.upper())
        rows |= evidence(part, **dict.fromkeys(arms, 80.0)).rows
        rows |= evidence(part, design.SMALL_SCALE, **dict.fromkeys(arms, 80.0)).rows
    rows["finetuned", ""] = {"SE": [result(beyond=(-1.5, -2.0, -1.0))]}
    moved = [{"epoch": k, "moved": {"gate 0": 1 / k, "scales": 1 / k, "logits": 1.0}} for k in range(2, 9)]
    for record in moved:
        record["means"] = [[100 * record["epoch"], 500]]
    rows["dynamics", ""] = {"SE, steps": [result(log=moved)], "SE, cosine": []}
    e = Evidence(rows=rows, plan=plan, speed_depth=164 if plan.arguments.full else 56)
    e.shares = [shares("SE", 0), shares("SE", 1), shares("SRM", 0, 0.1, np.nan, np.nan)]
    e.replaced = [replaced("SE"), replaced("SRM", change=-18.0, share=0.1)]
    e.bounds = [bounds(name, seed, 9.0 + seed) for name in ("plain", "ASR(SE)") for seed in (0, 1)]
    e.maps = [maps("plain", 0, 0.5), maps("SE", 0, 0.4)]
    e.spatial = [{"seed": 0, "share": [0.2, 0.8], "maps": [np.eye(8), np.eye(4)]}]
    e.painted = painted(whole_networks.INSTANCE, 1.0) + painted(whole_networks.WITH_ASR, 1.5)
    e.originals = np.zeros((6, 3, 8, 8), np.uint8)
    e.attention = [{"name": "ViT", "seed": 0, "share": [0.9, 0.3], "maps": [np.eye(16), np.eye(16)]}]
    names = ("plain", *whole_networks.SPEEDS, "ASR(SE) merged", "ASR(SE) folded")
    e.speeds = {size: dict.fromkeys(names, (0.9, (0.8, 1.0))) for size in ("32 x 32", "96 x 96")}
    e.merging = [
        {"backbone": "VGG", "gate": gate, "merged, float64": x, "folded, float64": fold}
        for gate, x, fold in (("a", 1e-16, "refused"), ("b", 3e-16, "refused"))
    ]
    e.shapes = accuracy.places_of_steps()
    return e


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The report on everything: its folder and the numbers of its record."""
    out = tmp_path_factory.mktemp("shown")
    page = Page("asr", asr.Arguments(out=out, dataset="digits"), "Title")
    write(page, asr.EXHIBITS, everything(plan_of(out, dataset="cifar10")))
    page.close()
    return out, json.loads((out / "record.json").read_text(), parse_constant=pytest.fail)["numbers"]


@pytest.mark.slow
def test_the_tables_hold_the_known_numbers(shown):
    out, _ = shown
    numbers = pages.check(out)
    assert {path.stem for path in out.glob("*.png")} == {
        "controls", "noise", "stripes", "shares", "origin", "replacement", "bounds", "gradcam", "spatial", "speed",
        "dynamics", "channels", "style", "style_losses", "attention",
    }  # fmt: skip
    small = {row["arm"]: row for row in numbers["controls_small"]}
    assert small[PLAIN]["accuracy (%)"] == "90.00"
    assert small[HALF]["above plain [95 %]"].startswith("+1.00 [")
    assert small[HALF]["deviation"] == "0.10"
    assert small[FAITHFUL]["hidden units alive, start -> end"] == "3 -> 6 of 12"
    assert {row["noise"] for row in numbers["noise"]} == set(design.NOISES)
    paper = "paper, ResNet-164, CIFAR-100: plain, ASR(SE), ASR(IE), ASR(SRM) (%)"
    assert "45.42, 68.81, 69.85, 69.57" in [row[paper] for row in numbers["noise"]]
    beside = {row["arm"]: row["paper, ResNet-164, CIFAR-100 (%)"] for row in numbers["beside"]}
    assert (beside["SE"], beside["SE + ASR(SE)"], beside["ASR(SPA)"]) == ("75.29", "77.32", "75.12")
    speed = {row["network"]: row["paper, ResNet-164: CIFAR-100, STL-10"] for row in numbers["speed"]}
    assert (speed["SE"], speed["ECA"]) == ("0.756, 0.678", "")  # 1469 of 1944 and 173 of 255 images a second
    assert [row["gates at their means, points [95 %]"][:6] for row in numbers["replaced"]] == ["-1.00 ", "-18.00"]
    assert [(row["arm"], row["content: running, batch"]) for row in numbers["style"]] == [
        (whole_networks.INSTANCE, "1.001, 1.001"), (whole_networks.WITH_ASR, "1.501, 1.501")
    ]  # fmt: skip
    assert numbers["finetuned"][0]["above the network with its gates, points [95 %]"] == "-1.50 [-2.00, -1.00]"
    assert numbers["merging"] == [
        {"backbone": "VGG", "gates": 2, "merged, float64": "3.0e-16", "folded, float64": "refused"}
    ]
    assert len(numbers["backbones"]) == 3 * len(design.BACKBONES) + 2
    assert {row["backbone"]: row["what h is"][:8] for row in numbers["places"]}["VGG"] == "a factor"
    undefined = [row for row in numbers["shares"] if row["module"] == "SRM"]
    assert {row["share, untrained"] for row in undefined} == {"undefined"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "plain", "backbone"),
    [("cifar100", "74.32", "RepVGG-A0, CIFAR-100: 68.80 -> 69.38"), ("stl10", "82.38", "RepVGG-A0, STL-10: 83.48 -> ")],
)
def test_at_the_papers_scale_the_page_speaks_of_the_papers_scale(tmp_path, dataset, plain, backbone):
    """Depth, epochs of the drops and printed accuracies are those of the networks that the page is about."""
    plan = plan_of(tmp_path, dataset=dataset, full=True, depth=None, epochs=None, images=None, seeds=(1,))
    page = Page("asr", asr.Arguments(out=tmp_path, dataset=dataset, full=True), "Title")
    page.words(asr.limits(plan))
    show(page, asr.EXHIBITS, everything(plan))
    page.close()
    report, numbers = (tmp_path / "report.md").read_text(), page.numbers
    assert "ResNet-164" in report
    assert "epochs 81 and 122" in report
    assert "reduction is 16" in report
    small = ("ResNet-20 at", "ResNet-20 on", "ResNet-20,", "CIFAR-10 in a made-up", "epochs 4 and 6")
    assert not [words for words in (*small, "10,000 training", "first 10,000", "reduction of 4") if words in report]
    usual = {"cifar100": "CIFAR-100", "stl10": "STL-10"}[dataset]
    controls = {row["arm"]: row for row in numbers["controls"]}
    assert controls[PLAIN][f"paper, ResNet-164, {usual} (%)"] == plain
    assert any(row["paper (%)"].startswith(backbone) for row in numbers["backbones"])
    assert not [row for row in numbers["controls"] if any("CIFAR-10 " in heading for heading in row)]


def test_marks_stand_where_the_numbers_are():
    e = evidence("small", **{PLAIN: 90.0, HALF: 92.0})
    drawing = accuracy.draw_controls({"small scale": e.accuracies("small")})
    dots = [line for line in drawing.axes[0].lines if line.get_marker() == "o"]
    drawn = sorted(round(float(x), 6) for line in dots for x in line.get_xdata())
    assert drawn == pytest.approx([-0.1, 0.0, 0.1, 1.9, 2.0, 2.1])
    drawing = accuracy.draw_noise(evidence("noise", "none", **{PLAIN: 60.0, HALF: 61.0}))
    heights = sorted(float(y) for line in drawing.axes[0].lines for y in line.get_ydata())
    assert heights == pytest.approx([59.9, 60.0, 60.1, 60.9, 61.0, 61.1])


def test_a_heat_map_has_a_row_per_channel_and_a_column_per_epoch():
    """Of the last block of each stage: here the second of 3 channels and the only one of 5."""
    epochs = [[[10 * epoch] * 3, [epoch] * 3, [epoch, 1, 2, 3, 4]] for epoch in range(4)]
    drawing = attention_values.draw_means({"SE, steps": epochs})
    maps = {axis.get_title(): axis.images[0].get_array() for axis in drawing.axes if axis.get_title()}
    assert {title: values.shape for title, values in maps.items()} == {
        "SE, steps, block 2": (3, 4), "SE, steps, block 3": (5, 4)
    }  # fmt: skip
    assert maps["SE, steps, block 3"][0].tolist() == pytest.approx([0.0, 0.001, 0.002, 0.003])


def test_the_stripes_are_those_of_the_median_block_and_of_the_worst():
    """Of five blocks with shares 0.9, 0.2, 0.5, 1.0 and 0.7 the fifth is the median one and the second the worst."""
    gates = [SimpleNamespace(h=torch.full((30, 70), k), pooled=torch.full((30, 70), -k)) for k in range(1, 6)]
    median, worst = attention_values.choose_stripes([0.9, 0.2, 0.5, 1.0, 0.7], gates, gates[::-1])
    assert [(one.which, one.block, one.share) for one in (median, worst)] == [("median", 5, 0.7), ("least", 2, 0.2)]
    assert {what: (x.shape, x[0, 0]) for what, x in worst.values.items()} == {
        "input, trained": ((20, 60), -2), "gate, trained": ((20, 60), 2), "gate, untrained": ((20, 60), 4)
    }  # fmt: skip
    (alone,) = attention_values.choose_stripes([0.5], gates[:1], [])
    assert set(alone.values) == {"input, trained", "gate, trained"}
    drawing = attention_values.draw_stripes([shares("SE"), shares("SRM")])
    labels = [axis.get_ylabel() for axis in drawing.axes if axis.get_ylabel()]
    assert labels[:2] == ["SE, median\nblock 2: 0.95", "SE, least\nblock 1: 0.95"]
    assert len(labels) == 4


def test_a_table_of_arms_that_have_no_seed_says_so():
    rows = accuracy.noise_rows(evidence("noise", "none", **{PLAIN: 60.0, HALF: None}))
    assert rows[0][f"{HALF} (%)"] == "n = 0"
    assert result_rows(Evidence(), "small", "", {}) == []


def test_an_arm_without_a_network_stands_below_its_table_with_the_command_that_trains_it(tmp_path):
    e = evidence("uses", **{"2 uses": 75.0, "3 uses": None, "ASR(IE), 2 uses": None})
    e.plan = plan_of(tmp_path, full=True, dataset="stl10", depth=None, epochs=None, images=None)
    words = accuracy.not_run(e, "uses", "")
    assert words.startswith("Not run: 3 uses; ASR(IE), 2 uses. `python -m studies.asr --full --dataset stl10 --train")
    asked = tyro.cli(asr.Arguments, args=shlex.split(words.split("`")[1])[3:])
    assert (asked.part, asked.only) == (("ablation",), ("3 uses", "ASR(IE), 2 uses"))
    assert accuracy.not_run(evidence("uses", **{"2 uses": 75.0}), "uses", "") == ""
    two = Evidence(rows=evidence("noise", "none", plain=None).rows | evidence("noise", "random 0.1", plain=None).rows)
    two.plan = e.plan
    assert accuracy.not_run(two, "noise", *design.NOISES).startswith("Not run (none; random 0.1): plain. ")


def test_the_top_5_of_table_14_stands_where_the_log_has_it():
    """Networks of more than twenty classes have it; the last epoch's counts."""
    log = [{"epoch": epoch, "test_top5": 0.9 + 0.02 * epoch} for epoch in (1, 2)]
    many = Evidence(rows={("uses", ""): {"2 uses": seeds_of(75.0, log=log), "3 uses": seeds_of(75.0)}})
    two, three = result_rows(many, "uses", "", {"paper": {"2 uses": 93.99}})
    assert (two["top-5 (%)"], two["paper"]) == ("94.00", "93.99")
    assert (three["top-5 (%)"], three["paper"]) == ("undefined", "")
    few = Evidence(rows={("uses", ""): {"2 uses": seeds_of(75.0)}})
    assert "top-5 (%)" not in result_rows(few, "uses", "", {})[0]


def test_psi_stands_beside_what_decay_alone_would_make_of_it(tmp_path):
    run = next(run for run in plan_of(tmp_path).part("origin") if run.arm == design.DECAYED)
    found = seeds_of(90.0, 1, specification=run.job.specification, blocks=[block(psi=[0.03, 0.001, 0.1])])
    (row,) = accuracy.psi_rows(Evidence(rows={("origin", ""): {design.DECAYED: found}}))
    alone = 0.1 * accuracy.decay_alone(found[0].specification)
    assert (row["start"], row["end"], row["by decay alone"]) == ("0.1000", "0.0300", f"{alone:.4f}")
    assert alone < 0.1


@pytest.mark.slow
def test_networks_of_ones_own_take_the_place_of_shipped_ones(tmp_path, capsys):
    """A shipped network as if it were somebody's; how it began is known where its file says how it was trained."""
    shipped = ZOO / "digits" / "resnet32-width4-se-seed0.safetensors"
    net = nb.load(shipped)
    known, unknown = tmp_path / "known.safetensors", tmp_path / "unknown.safetensors"
    nb.save(net, known, net.about)
    nb.save(net, unknown, {})
    own = asr.Arguments(
        part=("replace",), dataset="digits", own=True, out=tmp_path / "out", checkpoint=(known, unknown), resamples=5
    )
    asr.main(own)
    record = json.loads((tmp_path / "out" / "record.json").read_text())["numbers"]
    rows = {row["seed"]: row for row in record["shares"]}
    assert set(rows) == {0, "unknown"}
    assert rows["unknown"]["share, untrained"] == rows["unknown"]["correlation of start and end"] == "undefined"
    assert rows[0]["share, untrained"] != "undefined"
    assert rows[0]["share, trained [95 %]"] == rows["unknown"]["share, trained [95 %]"]
    assert {row["module"] for row in record["replaced"]} == {"SE"}


def test_constants_one_after_the_other_are_the_constants_where_nothing_varies():
    images = torch.rand(6, 3, 16, 16)
    net = nb.resnet(8, controller=nb.asr("se", spread=1.0)).eval()
    found = attention_values.mean_gates_in_turn(net, images)
    for one, wanted in zip(found, nb.gates(net, images), strict=True):
        torch.testing.assert_close(one, wanted.h[0])
    live = nb.resnet(8, controller="srm").eval()
    for each in live.blocks:
        torch.nn.init.normal_(each.controller.weight)
    first, *_ = attention_values.mean_gates_in_turn(live, images)
    torch.testing.assert_close(first, nb.gates(live, images)[0].h.mean(0))


# The numbers that were seen before the study was built, and must come out of it.


@pytest.fixture(scope="module")
def cifar():
    if not (datasets.default_root() / "cifar10").is_dir():
        pytest.skip("CIFAR-10 is not in the cache of this machine.")
    return datasets.load("cifar10")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "log"), [("constant", 0, 9.02), ("constant", 1, 8.96), ("asr-se", 0, 9.76), ("asr-se", 1, 9.55)]
)
def test_bounds_of_shipped_networks(cifar, name, seed, log):
    found = whole_networks.measure_bound(name, seed, ZOO / "cifar10" / f"resnet20-{name}-seed{seed}.safetensors", cifar)
    assert found["bound"][-1] == pytest.approx(log, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["se", "srm"])
def test_shares_and_replacements_of_shipped_networks(cifar, name, seed):
    path = ZOO / "cifar10" / f"resnet20-{name}-seed{seed}.safetensors"
    found, after = attention_values.measure_shares(name, seed, path, cifar, 600, 20)
    change = attention_values.replace_gates(found, after, path, cifar, 2000).change.value
    if name == "se":
        assert min(found.untrained) > 0.9
        assert min(found.origin) > 0.5
        assert -3.0 < change < 1.0
    else:
        assert max(one.value for one in found.share) < 0.5
        assert change < -10.0


@pytest.mark.slow
def test_class_maps_of_the_shipped_plain_network_look_at_the_centre(cifar):
    found = whole_networks.measure_class_maps(
        "plain", 0, ZOO / "cifar10" / "resnet20-constant-seed0.safetensors", cifar, 300
    )
    assert found["mass"].low > 0.4
    assert 0.25 < found["shift"] < found["cells"] == 1.5
