"""Every verdict of asr follows from its numbers, by the rule that the finding states."""

import re

import numpy as np
import pytest
import torch
import tyro
from torch import nn

import netbridge as nb
from studies.asr import __main__ as study
from studies.asr import accuracy, attention_values, design, whole_networks
from studies.asr.design import BIAS, FAITHFUL, GAMMA, HALF, LAYER_SCALE, LITERAL, PLAIN
from studies.asr.evidence import Evidence, over_networks
from studies.lab import calibration
from studies.lab.exhibits import judge
from studies.lab.verdicts import (
    BY_READING,
    CONTRADICTED,
    FALSE_OF_SOME,
    NO_DIFFERENCE,
    NOT_ASKABLE,
    NOT_RUN,
    SPLIT,
    SUPPORTED,
    TRUE_OF_SOME,
    UNDECIDED,
)
from tests.studies.asr.made_up import block, bounds, evidence, maps, painted, replaced, result, seeds_of, shares

# Arms of made-up evidence have three seeds 0.1 points apart, so that intervals reach about 0.3 points to both sides.


def verdict(rule, e):
    return rule(e).verdict


@pytest.mark.parametrize("part", ["controls", "small"])
@pytest.mark.parametrize(
    ("asr", "literal", "wanted"),
    [
        (91.0, 91.0, SUPPORTED),
        (89.0, 89.0, CONTRADICTED),
        (91.0, 89.0, SPLIT),
        (91.0, 90.6, TRUE_OF_SOME),
        (91.0, 90.0, SPLIT),
        (90.0, 90.0, NO_DIFFERENCE),
        (91.0, None, SUPPORTED),
        (None, 91.0, UNDECIDED),
    ],
)
def test_a_gain_is_the_faithful_arms_and_the_literal_ones_where_it_is_known(part, asr, literal, wanted):
    e = evidence(part, **{PLAIN: 90.0, FAITHFUL: asr, LITERAL: literal})
    if wanted == TRUE_OF_SOME:  # an arm whose seeds scatter
        e.rows[part, ""][LITERAL] = seeds_of(90.6, spread=1.0)
        e.rows[part, ""][FAITHFUL] = seeds_of(95.0)
    assert verdict(accuracy.judge_gain, e) == wanted


def test_a_gain_is_asked_at_both_scales_where_both_are_known():
    up, down = ({PLAIN: 90.0, FAITHFUL: x, LITERAL: x} for x in (91.0, 89.0))
    e = Evidence(rows=evidence("controls", **up).rows | evidence("small", **down).rows)
    assert verdict(accuracy.judge_gain, e) == SPLIT


def test_intervals_of_two_scales_hold_together():
    """What one scale alone shows by a hair is open where it is one of two: the interval is wider."""
    near = {PLAIN: 90.0, FAITHFUL: 90.24}
    assert verdict(accuracy.judge_gain, evidence("small", **near)) == SUPPORTED
    both = Evidence(rows=evidence("controls", **near).rows | evidence("small", **near).rows)
    assert verdict(accuracy.judge_gain, both) == NO_DIFFERENCE


def test_two_seeds_decide_nothing_however_far_apart():
    arms = {PLAIN: seeds_of(50.0, 2), FAITHFUL: seeds_of(90.0, 2), LITERAL: seeds_of(90.0, 2)}
    found = accuracy.judge_gain(Evidence(rows={("controls", ""): arms}))
    assert found.verdict == UNDECIDED
    assert found.words.startswith("n = 2 seeds of each, and the rule judges from 3 on.")
    del arms[LITERAL]
    words = accuracy.judge_gain(Evidence(rows={("small", ""): arms})).words
    assert f"n = 2: {PLAIN}, {FAITHFUL}; n = 0: {LITERAL}" in words


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ((89.0, 89.0, 89.0), SUPPORTED),
        ((91.0, 91.0, 91.0), CONTRADICTED),
        ((90.0, 90.0, 90.0), NO_DIFFERENCE),
        ((89.0, 91.0, 90.0), SPLIT),
        ((89.0, 89.0, 90.0), SPLIT),
        ((89.0, 89.0, None), UNDECIDED),
    ],
)
def test_attention_must_beat_every_control(others, wanted):
    e = evidence("small", **{FAITHFUL: 90.0}, **dict(zip((HALF, GAMMA, BIAS), others, strict=True)))
    assert verdict(accuracy.judge_attention, e) == wanted


@pytest.mark.parametrize(
    ("vectors", "wanted"),
    [
        ((89.0, 89.0, 89.0), SUPPORTED),
        ((90.0, 90.0, 90.0), NO_DIFFERENCE),
        ((89.0, 90.0, 90.0), BY_READING),
        ((89.0, 89.0, None), UNDECIDED),
    ],
)
def test_a_vector_without_a_module_is_read_in_three_ways(vectors, wanted):
    """Table 9 says neither where the vector begins nor whether a sigmoid follows."""
    *bare, sigmoid = vectors
    e = evidence("small", **{FAITHFUL: 90.0, BIAS: sigmoid})
    e.rows |= evidence("bare", design.SMALL_SCALE, **dict(zip(design.BARE, bare, strict=True))).rows
    assert verdict(accuracy.judge_module, e) == wanted


def test_alive_units_stand_beside_the_accuracy():
    e = evidence("small", **{PLAIN: 90.0, FAITHFUL: 91.0, LITERAL: 91.0})
    assert f"Hidden units alive in {FAITHFUL}: 3 of 12 before training, 6 after it." in accuracy.judge_gain(e).words


# Networks that are looked at


def networks(make, **values):
    """Two networks of every module."""
    return [make(name, seed, *given) for name, given in values.items() for seed in (0, 1)]


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        (((0.9, 0.8), (0.9, 0.8)), SUPPORTED),
        (((0.7, 0.8), (0.7, 0.8)), CONTRADICTED),
        (((0.9, 0.8), (0.7, 0.8)), SPLIT),
        (((0.9, 0.8), (0.8, 0.8)), TRUE_OF_SOME),
    ],
)
def test_approaching_is_share_after_minus_share_before(pairs, wanted):
    e = Evidence(shares=networks(shares, **dict(zip(("SE", "ECA"), pairs, strict=True))))
    assert verdict(attention_values.judge_approach, e) == wanted


def test_gates_that_start_constant_are_left_out_of_the_comparison():
    e = Evidence(shares=networks(shares, SE=(0.9, 0.8), SRM=(0.1, np.nan)))
    found = attention_values.judge_approach(e)
    assert found.verdict == SUPPORTED
    assert "SRM are exactly constant" in found.words


@pytest.mark.parametrize(
    ("values", "wanted"),
    [((0.95, 0.97), SUPPORTED), ((0.5, 0.6), CONTRADICTED), ((0.95, 0.5), SPLIT), ((0.95, 0.9), TRUE_OF_SOME)],
)
def test_stripes_are_a_share_of_nine_tenths_in_every_block(values, wanted):
    e = Evidence(shares=networks(shares, SE=values[:1], ECA=values[1:]))
    found = attention_values.judge_stripes(e)
    assert found.verdict == wanted
    assert f"Median over blocks: SE {values[0]:.2f}" in found.words


@pytest.mark.parametrize("rule", [attention_values.judge_stripes, attention_values.judge_approach])
def test_one_network_of_a_module_decides_nothing(rule):
    found = rule(Evidence(shares=[shares("SE"), shares("ECA", 0, 0.1)]))
    assert found.verdict == UNDECIDED
    assert found.words.startswith("n = 1 networks of each, and the rule judges from 2 on.")


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


@pytest.mark.parametrize(
    ("origins", "wanted"),
    [
        ({"SE": 0.9}, CONTRADICTED),
        ({"SE": 0.1}, SUPPORTED),
        ({"SE": 0.9, "ECA": 0.1}, SPLIT),
        ({"SE": 0.5**0.5}, UNDECIDED),
        ({"SE": np.nan}, NOT_RUN),
    ],
)
def test_constants_are_found_in_training_where_their_beginning_explains_less_than_half(origins, wanted):
    """Every module votes once: a share of the variance is above a half or below it."""
    e = Evidence(shares=[shares(name, seed, origin=origin) for name, origin in origins.items() for seed in (0, 1)])
    assert verdict(attention_values.judge_memory, e) == wanted


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


def replacements(*changes):
    """Two networks of one module after the other; the second seed loses 0.01 points more."""
    names = ("SE", "ECA", "SRM")
    return [
        replaced(name, seed, change - 0.01 * seed)
        for name, change in zip(names, changes, strict=False)
        for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [((-0.5, -1.0), SUPPORTED), ((-8.0, -9.0), CONTRADICTED), ((-0.5, -9.0), SPLIT), ((-0.5, -2.0), TRUE_OF_SOME)],
)
def test_constants_stand_in_at_two_points(changes, wanted):
    assert verdict(attention_values.judge_stand_in, Evidence(replaced=replacements(*changes))) == wanted


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ((-27.0,), SUPPORTED),
        ((-18.0, -36.0), SUPPORTED),
        ((-1.0, -20.0), CONTRADICTED),
        ((-23.0,), UNDECIDED),
        ((), NOT_RUN),
    ],
)
def test_about_28_is_what_the_modules_lose_on_average(changes, wanted):
    """An exact 27 passes, and so do modules that lose 18 and 36: the claim is of their average."""
    assert verdict(attention_values.judge_papers_loss, Evidence(replaced=replacements(*changes))) == wanted


@pytest.mark.parametrize(
    ("remains", "wanted"), [((-14.0,), SUPPORTED), ((-5.0, -25.0), SUPPORTED), ((-1.0, -2.0), CONTRADICTED)]
)
def test_about_15_is_what_fine_tuning_leaves_on_average(remains, wanted):
    rows = {
        name: [result(seed=seed, beyond=(x - 0.01 * seed, x - 0.5, x + 0.5)) for seed in (0, 1)]
        for name, x in zip(("SE", "SRM"), remains, strict=False)
    }
    assert verdict(attention_values.judge_rest, Evidence(rows={("finetuned", ""): rows})) == wanted


def test_a_mean_over_modules_takes_the_seeds_that_all_of_them_have():
    networks = [replaced("SE", 0), replaced("SE", 1, -1.5), replaced("SRM", 0, -19.0)]
    found = attention_values.judge_papers_loss(Evidence(replaced=networks))
    assert found.verdict == UNDECIDED
    assert "mean over 2 modules -10.0" in found.words


def log_of(before, behind, scales=(0.3, 0.06)):
    """The last epoch before the decay and the one behind it, of two blocks."""
    drop = design.DYNAMICS["drops"][0]
    return [
        {"epoch": drop + k, "moved": {"gate 0": gates, "gate 1": gates, "scales": scales[k], "logits": 1.0}}
        for k, gates in enumerate((before, behind))
    ]


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [
        ((0.05, 0.05, 0.05), SUPPORTED),
        ((0.2, 0.2, 0.3), CONTRADICTED),
        ((0.05, 0.2, 0.3), SPLIT),
        ((0.05, 0.1, 0.1), TRUE_OF_SOME),
    ],
)
def test_converged_are_gates_that_hardly_move_behind_the_decay(behind, wanted):
    """By module, and whatever the scales do: gates that stood stiller than scales before it still have converged."""
    rows = {
        name: [result(seed=seed, log=log_of(0.1, x * 1.02**seed)) for seed in range(3)]
        for name, x in zip(design.AT_THE_DROP, behind, strict=True)
    }
    found = attention_values.judge_first_decay(Evidence(rows={("dynamics", ""): rows}))
    assert found.verdict == wanted
    assert "which are no attention, go from 0.30 to 0.06" in found.words
    alone = {name: found[:1] for name, found in rows.items()}
    assert verdict(attention_values.judge_first_decay, Evidence(rows={("dynamics", ""): alone})) == UNDECIDED


@pytest.mark.parametrize(
    ("share", "wanted"), [([0.1, 0.2], SUPPORTED), ([0.8, 0.9], CONTRADICTED), ([0.1, 0.9], UNDECIDED)]
)
def test_spatial_attention(share, wanted):
    few = [{"name": "a", "seed": seed, "share": [x + 0.001 * seed for x in share], "maps": []} for seed in (0, 1)]
    for kind in ("spatial", "attention"):
        assert verdict(attention_values.judge_spatial, Evidence(**{kind: few})) == wanted
    alone = attention_values.judge_spatial(Evidence(spatial=few, attention=few[:1]))
    assert alone.verdict == wanted  # one transformer decides nothing
    assert "n = 1: transformers' attention" in alone.words


# Noise


@pytest.mark.parametrize(
    ("plain", "half", "above_plain", "above_half"),
    [
        (40.0, 60.0, SUPPORTED, SUPPORTED),
        (75.0, 75.0, CONTRADICTED, CONTRADICTED),
        (40.0, 75.0, SUPPORTED, CONTRADICTED),
        (40.0, 70.0, SUPPORTED, NO_DIFFERENCE),
        (70.0, 70.0, UNDECIDED, NO_DIFFERENCE),
    ],
)
def test_regulating_constant_noise_and_doing_more_than_a_half_are_two_claims(plain, half, above_plain, above_half):
    e = evidence("noise", "(0.8, 0.8)", **{PLAIN: plain, HALF: half, FAITHFUL: 70.0})
    assert verdict(accuracy.judge_constant_noise, e) == above_plain
    assert verdict(accuracy.judge_more_than_half, e) == above_half
    random = evidence("noise", "random 0.2", **{PLAIN: plain, HALF: half, FAITHFUL: 70.0})
    assert verdict(accuracy.judge_constant_noise, random) == NOT_RUN


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


@pytest.mark.parametrize(
    ("gain", "spread", "gains", "steadier"),
    [
        (10.0, 1.0, SUPPORTED, UNDECIDED),
        (-25.0, 50.0, CONTRADICTED, CONTRADICTED),
        (25.0, 50.0, SUPPORTED, CONTRADICTED),
        (10.0, 0.02, SUPPORTED, SUPPORTED),
        (0.0, 1.0, NO_DIFFERENCE, UNDECIDED),
    ],
)
def test_regulating_random_noise_and_varying_less_are_two_claims(gain, spread, gains, steadier):
    rows = {PLAIN: seeds_of(70.0, spread=1.0 if spread < 1 else 0.1)}
    rows[FAITHFUL] = seeds_of(70.0 + gain, spread=0.1 * spread * (10.0 if spread < 1 else 1.0))
    e = Evidence(rows={("noise", "random 0.2"): rows})
    assert verdict(accuracy.judge_random_noise, e) == gains
    found = accuracy.judge_steadiness(e)
    assert found.verdict == steadier
    if spread == 1.0:
        assert "random 0.2 1 [0.026, 39]" in found.words  # F(2, 2) has its 97.5 % at 39


# Ablations and other networks


@pytest.mark.parametrize(
    ("logs", "wanted"),
    [((8.0, 8.0), SUPPORTED), ((10.0, 10.0), CONTRADICTED), ((8.0, 10.0), SPLIT), ((8.0, 9.0), TRUE_OF_SOME)],
)
def test_a_bound_explains_by_being_smaller(logs, wanted):
    means = dict(zip((PLAIN, FAITHFUL, LITERAL), (9.0, *logs), strict=True))
    rows = {
        arm: [result(seed=seed, bound=(mean + 0.01 * seed, 40.0)) for seed in range(3)] for arm, mean in means.items()
    }
    e = Evidence(rows={("small", ""): rows}, bounds=[bounds("plain", 0, 9.0)])
    found = whole_networks.judge_bound(e)
    assert found.verdict == wanted
    assert "plain (seed 0) 9.00, growth 36" in found.words


@pytest.mark.parametrize(
    ("two", "three", "wanted"),
    [
        (91.0, 91.0, SUPPORTED),
        (89.0, 89.0, CONTRADICTED),
        (91.0, 89.0, SPLIT),
        (90.0, 89.0, FALSE_OF_SOME),
        (91.0, None, UNDECIDED),
    ],
)
def test_several_uses(two, three, wanted):
    e = evidence("controls", **{FAITHFUL: 90.0})
    e.rows |= evidence("uses", **{"2 uses": two, "3 uses": three}).rows
    assert verdict(accuracy.judge_several_uses, e) == wanted


ABLATIONS = [("fixed", accuracy.judge_learnt_psi), ("starts", accuracy.judge_first_value)]


@pytest.mark.parametrize(("part", "rule"), ABLATIONS)
@pytest.mark.parametrize(
    ("mean", "spread", "wanted"),
    [(89.0, 0.1, SUPPORTED), (91.0, 0.1, CONTRADICTED), (90.0, 0.3, UNDECIDED), (90.0, 0.02, NO_DIFFERENCE)],
)
def test_what_psi_needs_has_a_margin(part, rule, mean, spread, wanted):
    """Half of what the paper prints is no difference; every arm of Tables 7 and 13 has its vote."""
    arms = getattr(design, part.upper())
    rows = {arm: seeds_of(mean, spread=spread) for arm in arms}
    blocks = [block(psi=[0.13, 0.0, 0.1])]
    e = Evidence(rows={(part, ""): rows, ("controls", ""): {FAITHFUL: seeds_of(90.0, spread=spread, blocks=blocks)}})
    found = rule(e)
    assert found.verdict == wanted
    assert part == "starts" or "moved by 0.0300" in found.words
    rows[next(iter(arms))] = seeds_of(94.0)
    assert verdict(rule, e) == (CONTRADICTED if mean == 91.0 else SPLIT if mean == 89.0 else verdict(rule, e))
    del rows[next(iter(arms))]
    assert verdict(rule, e) == UNDECIDED


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


@pytest.mark.parametrize("part", ["", design.SMALL_SCALE])
@pytest.mark.parametrize(("both", "wanted"), [(91.0, SUPPORTED), (89.0, CONTRADICTED), (None, UNDECIDED)])
def test_beside_a_live_module(both, wanted, part):
    modules = ("SE", "IE", "SRM", "SPA")
    arms = dict.fromkeys(modules, 90.0) | {f"{name} + ASR({name})": both for name in modules}
    assert verdict(accuracy.judge_beside, evidence("beside", part, **arms)) == wanted
    del arms["SPA"]  # a scale that lacks one module decides nothing
    assert verdict(accuracy.judge_beside, evidence("beside", part, **arms)) == UNDECIDED


@pytest.mark.parametrize(
    ("repvgg", "acnet", "wanted"), [(91.0, 91.0, SUPPORTED), (89.0, 89.0, CONTRADICTED), (91.0, 89.0, SPLIT)]
)
def test_other_reparameterisations_are_compared_with_themselves(repvgg, acnet, wanted):
    rows = {}
    for column, value in zip(design.SRP, (repvgg, acnet), strict=True):
        rows |= evidence("backbones", column, **{PLAIN: 90.0, FAITHFUL: value, HALF: 80.0}).rows
    assert verdict(accuracy.judge_other_methods, Evidence(rows=rows)) == wanted


@pytest.mark.parametrize(("plain", "wanted"), [(89.0, SUPPORTED), (91.0, CONTRADICTED), (90.0, NO_DIFFERENCE)])
@pytest.mark.parametrize("factor", [89.0, 91.0])
def test_transformers_are_compared_with_plain_ones_and_layer_scale_only_stands_beside(plain, factor, wanted):
    means = {PLAIN: plain, LAYER_SCALE: factor, FAITHFUL: 90.0, HALF: 90.0}
    found = accuracy.judge_transformers(evidence("backbones", design.TRANSFORMER, **means))
    assert found.verdict == wanted
    assert "says nothing about attention" in found.words
    assert f"ASR lies {90.0 - factor:+.2f}" in found.words


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


@pytest.mark.parametrize(("se", "srm", "wanted"), [(0.6, 0.6, SUPPORTED), (0.4, 0.4, CONTRADICTED), (0.6, 0.4, SPLIT)])
def test_the_centre_is_attentions_where_plain_networks_have_less(se, srm, wanted):
    e = Evidence(maps=networks(maps, plain=(0.5,), SE=(se,), SRM=(srm,)))
    assert verdict(whole_networks.judge_centre, e) == wanted
    alone = whole_networks.judge_centre(Evidence(maps=[maps("plain", 0, 0.5), maps("SE", 0, se)]))
    assert alone.verdict == UNDECIDED


@pytest.mark.parametrize(
    ("loss", "seeds", "wanted"),
    [(1.02, 3, SUPPORTED), (1.5, 3, CONTRADICTED), (0.5, 3, CONTRADICTED), (1.1, 3, UNDECIDED), (1.02, 2, UNDECIDED)],
)
def test_alike_is_within_a_tenth(loss, seeds, wanted):
    e = Evidence(painted=painted(whole_networks.INSTANCE, 1.0) + painted(whole_networks.WITH_ASR, loss, seeds))
    assert whole_networks.judge_paintings(e).verdict == wanted


def test_nothing_known_is_not_run_throughout():
    found = judge(study.EXHIBITS, Evidence())
    assert {one.verdict for one in found} == {NOT_RUN, NOT_ASKABLE}
    assert len({one.claim for one in found}) == len(found) >= 24


def test_every_rule_says_when_it_was_fixed():
    for one in calibration.rules("asr").values():
        assert re.match("before the data|after the data: ", one.fixed)
        assert one.worlds or one.exempt
        assert one.text.endswith(".")


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
