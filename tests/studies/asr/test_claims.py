"""What the rules of asr take and leave out, scale by scale; test_calibration.py has the laws of all rules."""

import re

import numpy as np
import pytest
import torch
import tyro
from torch import nn

import netbridge as nb
from studies.asr import __main__ as study
from studies.asr import accuracy, attention_values, design, whole_networks
from studies.asr.design import FAITHFUL, PLAIN
from studies.asr.evidence import Evidence, over_networks
from studies.lab.exhibits import judge
from studies.lab.verdicts import (
    CONTRADICTED,
    NO_DIFFERENCE,
    NOT_ASKABLE,
    NOT_RUN,
    SPLIT,
    SUPPORTED,
    UNDECIDED,
)
from tests.studies.asr.made_up import block, evidence, replaced, result, seeds_of, shares

# Arms of made-up evidence have three seeds 0.1 points apart, so that intervals reach about 0.3 points to both sides.


def verdict(rule, e):
    return rule(e).verdict


def test_intervals_of_two_scales_hold_together():
    """What one scale alone shows by a hair is open where it is one of two: the interval is wider."""
    near = {PLAIN: 90.0, FAITHFUL: 90.24}
    assert verdict(accuracy.judge_gain, evidence("small", **near)) == SUPPORTED
    both = Evidence(rows=evidence("controls", **near).rows | evidence("small", **near).rows)
    assert verdict(accuracy.judge_gain, both) == NO_DIFFERENCE


# Networks that are looked at


def test_gates_that_start_constant_are_left_out_of_the_comparison():
    pairs = (("SE", (0.9, 0.8)), ("SRM", (0.1, np.nan)))
    e = Evidence(shares=[shares(name, seed, *given) for name, given in pairs for seed in (0, 1)])
    found = attention_values.judge_approach(e)
    assert found.verdict == SUPPORTED
    assert "SRM are exactly constant" in found.words


def test_modules_whose_networks_scatter_differently_are_no_null_that_a_rule_decides():
    """A deviation pooled over the modules decided in 17 % of these worlds, where no mean differs from 0."""
    chance, decided = np.random.default_rng(0), 0
    for _ in range(1000):
        kinds = {
            name: list(chance.normal(0.0, by, 3)) for name, by in zip("abcde", (1, 0.1, 0.2, 0.01, 1), strict=True)
        }
        decided += over_networks(kinds).verdict() != UNDECIDED
    assert decided <= 72  # the 99.9 % quantile of Binomial(1000, 5 %)


def test_two_networks_that_agree_by_rounding_have_no_interval():
    found = over_networks({"SE": [0.5, 0.5], "ECA": [0.1, 0.2]})
    assert np.isnan(found.beyond["SE"].low)
    assert np.isfinite(found.beyond["ECA"].low)


def test_the_beginning_is_asked_of_trained_arms_too():
    rows = {arm: [result(blocks=[block(origin=x + 0.001 * seed)]) for seed in range(3)] for arm, x in
            (("SE", 0.9), ("SE, b2 = 0", 0.2))}  # fmt: skip
    found = attention_values.judge_memory(Evidence(rows={("small", ""): rows}))
    assert found.verdict == SPLIT
    both = Evidence(rows={("origin", ""): {"SE": rows["SE"]}}, shares=[shares(origin=0.2), shares(seed=1, origin=0.2)])
    assert verdict(attention_values.judge_memory, both) == SUPPORTED  # the same networks do not count twice


def test_a_prior_of_the_data_cannot_be_told_from_a_memory():
    """Whatever the gates remember of their beginning, they may embody the data as well."""
    for origin in (0.0, 1.0):
        e = Evidence(shares=[shares(origin=origin), shares(seed=1, origin=origin)])
        assert verdict(attention_values.judge_priors, e) == NOT_ASKABLE


def test_a_mean_over_modules_takes_the_seeds_that_all_of_them_have():
    networks = [replaced("SE", 0), replaced("SE", 1, -1.5), replaced("SRM", 0, -19.0)]
    found = attention_values.judge_papers_loss(Evidence(replaced=networks))
    assert found.verdict == UNDECIDED
    assert "mean over 2 modules -10.0" in found.words


# Noise


def test_an_average_over_noises_has_one_number_of_every_seed_that_all_noises_have():
    """Under one noise plain networks scatter by 30 points, under three not at all; so their means scatter by 7.5."""
    rows = {("noise", "(0.8, 0.8)"): {PLAIN: seeds_of(40.0, spread=30.0), FAITHFUL: seeds_of(70.0, 4)}}
    for name in ("(0.5, 0.5)", "(0.8, 0.5)", "(0.5, 0.2)"):
        rows["noise", name] = {PLAIN: seeds_of(50.0, spread=0.0), FAITHFUL: seeds_of(60.0)}
    found = accuracy.judge_constant_noise(Evidence(rows=rows))
    assert "mean over 4 noises: ASR" in found.words
    assert re.search(r"\+1[45]\.\d\d \[-3\.\d\d, ", found.words)  # (30 + 3 * 10) / 4, and 4.3 * 7.5 / sqrt(3) around it
    assert "(0.8, 0.8): ASR" in found.words
    assert "(n = 3 each)" in found.words


# Ablations and other networks


@pytest.mark.parametrize(
    ("part", "rule", "better"),
    [("uses", accuracy.judge_several_uses, SUPPORTED), ("fixed", accuracy.judge_learnt_psi, CONTRADICTED)],
)
def test_ablations_are_decided_by_the_scale_that_has_its_seeds(part, rule, better):
    """At both scales an arm meets ASR of its own scale; where only the small one is known, that decides."""
    names = {"uses": design.DECIDING_USES, "fixed": tuple(design.FIXED)}[part]
    rows = evidence("controls", **{FAITHFUL: 90.0}).rows | evidence("small", **{FAITHFUL: 50.0}).rows
    rows |= evidence(part, design.SMALL_SCALE, **dict.fromkeys(names, 51.0)).rows
    e = Evidence(rows=rows)
    assert verdict(rule, e) == better
    e.rows |= evidence(part, **dict.fromkeys(names, 91.0)).rows
    assert verdict(rule, e) == better
    e.rows |= evidence(part, **dict.fromkeys(names, 89.0)).rows
    assert verdict(rule, e) == SPLIT


@pytest.mark.parametrize(("arm", "symmetric"), [(FAITHFUL, True), (design.DRAWN_HEAD, False)])
def test_the_head_of_a_transformer_as_the_paper_initialises_it_stays_symmetric(arm, symmetric):
    """Why a comparison with LayerScale says nothing of attention: all hidden units are one, whatever is learnt."""
    torch.manual_seed(0)
    controller = design.ON_TRANSFORMERS[arm].controller_with(4)
    net = nb.vit(16, 4, 16, 2, 2, controller=controller).double()  # steps of a head are below float32's digits
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(8, 3, 16, 16).double()), torch.arange(8)).backward()
        optimizer.step()
    for place in net.blocks:
        first = place.controller.heads[0].excite[0].weight
        assert len(first) > 1
        moved = (first - design.FIRST_FACTOR).abs().max()
        assert bool((first - first[:1]).abs().max() < 1e-3 * moved) is symmetric


# Whole networks


@pytest.mark.parametrize("ratio", [0.5, 0.9])
def test_the_speed_of_a_gpu_cannot_be_asked_of_a_processor(ratio):
    six = dict.fromkeys(whole_networks.PAPERS_SIX, (ratio, (ratio - 0.01, ratio + 0.01)))
    six |= {"ASR(SE) merged": (1.0, None), "ASR(SE) folded": (1.1, None)}
    found = whole_networks.judge_speed(Evidence(speeds={"32 x 32": six}))
    assert found.verdict == NOT_ASKABLE
    assert f"{100 * (1 - ratio):.0f} % of the plain speed on average" in found.words


def test_nothing_known_is_not_run_throughout():
    found = judge(study.EXHIBITS, Evidence())
    assert {one.verdict for one in found} == {NOT_RUN, NOT_ASKABLE}
    assert len({one.claim for one in found}) == len(found) >= 24


def test_what_is_open_names_a_command_that_the_study_knows():
    for one in judge(study.EXHIBITS, Evidence()):
        if one.verdict == NOT_ASKABLE:
            continue
        options = re.search(r"`python -m studies\.asr (.+)` (trains what the plan still lacks|looks)\.$", one.words)
        given = tyro.cli(study.Arguments, args=options[1].split())
        assert given.part != ("all",)
        assert not given.train or all(name == "stripes" or name in (*study.TRAINED, "style") for name in given.part)
        assert given.train == (options[2] != "looks")
    slow = evidence(plain=90.0, **{FAITHFUL: 95.0})
    (decided, *_) = judge(study.EXHIBITS, slow)
    assert decided.verdict == SUPPORTED
    assert "python -m" not in decided.words


def test_transformers_do_not_decide_for_spatial_gates():
    """The claim is about both; two transformers with one CBAM said supported until 2026-11-20."""
    low = [{"share": [0.10]}, {"share": [0.12]}, {"share": [0.11]}]
    high = [{"share": [0.90]}, {"share": [0.92]}, {"share": [0.91]}]
    judge = attention_values.judge_spatial
    assert judge(Evidence(attention=low, spatial=low[:1])).verdict == UNDECIDED
    assert judge(Evidence(attention=low)).verdict == UNDECIDED
    assert judge(Evidence(attention=low, spatial=high)).verdict == CONTRADICTED
    assert judge(Evidence(attention=low, spatial=low)).verdict == SUPPORTED
