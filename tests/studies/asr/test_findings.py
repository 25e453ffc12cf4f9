"""Every verdict of asr follows from its numbers, by the rule that the finding states."""

import re

import numpy as np
import pytest
import tyro

from studies.asr import __main__ as study
from studies.asr import design, findings
from studies.asr.design import BIAS, FAITHFUL, GAMMA, HALF, LAYER_SCALE, LITERAL, PLAIN
from studies.asr.findings import accuracy, attention_values, whole_networks
from studies.asr.findings.evidence import Evidence
from studies.lab.statistics import CONTRADICTED, PARTLY, SUPPORTED, UNDECIDED
from tests.studies.asr.made_up import block, bounds, evidence, maps, replaced, result, seeds_of, shares


def verdict(rule, e):
    return rule(e).verdict


@pytest.mark.parametrize("part", ["controls", "small"])
@pytest.mark.parametrize(
    ("asr", "literal", "wanted"),
    [
        (91.0, 91.0, SUPPORTED),
        (89.0, 89.0, CONTRADICTED),
        (91.0, 89.0, PARTLY),
        (91.0, 90.0, UNDECIDED),
        (91.0, None, SUPPORTED),
        (None, 91.0, UNDECIDED),
    ],
)
def test_a_gain_is_the_faithful_arms_and_the_literal_ones_where_it_is_known(part, asr, literal, wanted):
    e = evidence(part, **{PLAIN: 90.0, FAITHFUL: asr, LITERAL: literal})
    assert verdict(accuracy.gain, e) == wanted


def test_a_gain_is_asked_at_both_scales_where_both_are_known():
    up, down = ({PLAIN: 90.0, FAITHFUL: x, LITERAL: x} for x in (91.0, 89.0))
    e = Evidence(rows=evidence("controls", **up).rows | evidence("small", **down).rows)
    assert verdict(accuracy.gain, e) == PARTLY


def test_two_seeds_decide_nothing_however_far_apart():
    arms = {PLAIN: seeds_of(50.0, 2), FAITHFUL: seeds_of(90.0, 2), LITERAL: seeds_of(90.0, 2)}
    found = accuracy.gain(Evidence(rows={("controls", ""): arms}))
    assert found.verdict == UNDECIDED
    assert "n = 2 each" in found.words
    del arms[LITERAL]
    assert f"n = 2: {PLAIN}, {FAITHFUL}; n = 0: {LITERAL}" in accuracy.gain(Evidence(rows={("small", ""): arms})).words


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ((89.0, 89.0, 89.0), SUPPORTED),
        ((91.0, 91.0, 91.0), CONTRADICTED),
        ((89.0, 91.0, 90.0), PARTLY),
        ((89.0, 89.0, 90.0), UNDECIDED),
        ((89.0, 89.0, None), UNDECIDED),
    ],
)
def test_attention_must_beat_every_control(others, wanted):
    e = evidence("small", **{FAITHFUL: 90.0}, **dict(zip((HALF, GAMMA, BIAS), others, strict=True)))
    assert verdict(accuracy.attention, e) == wanted


def test_alive_units_stand_beside_the_accuracy():
    e = evidence("small", **{PLAIN: 90.0, FAITHFUL: 91.0, LITERAL: 91.0})
    assert f"Hidden units alive in {FAITHFUL}: 3 of 12 before training, 6 after it." in accuracy.gain(e).words


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        (((0.9, 0.8), (0.9, 0.8)), SUPPORTED),
        (((0.7, 0.8), (0.7, 0.8)), CONTRADICTED),
        (((0.9, 0.8), (0.7, 0.8)), PARTLY),
        (((0.9, 0.8), (0.8, 0.8)), UNDECIDED),
    ],
)
def test_approaching_is_share_after_minus_share_before(pairs, wanted):
    e = Evidence(shares=[shares(name, 0, *pair) for name, pair in zip(("SE", "ECA"), pairs, strict=True)])
    assert verdict(attention_values.approach, e) == wanted


def test_gates_that_start_constant_are_left_out_of_the_comparison():
    e = Evidence(shares=[shares("SE", 0, 0.9, 0.8), shares("SRM", 0, 0.1, np.nan)])
    found = attention_values.approach(e)
    assert found.verdict == SUPPORTED
    assert "SRM are exactly constant" in found.words


@pytest.mark.parametrize(
    ("values", "wanted"),
    [((0.95, 0.97), SUPPORTED), ((0.5, 0.6), CONTRADICTED), ((0.95, 0.5), PARTLY), ((0.95, 0.9), UNDECIDED)],
)
def test_stripes_are_a_share_of_nine_tenths_in_every_block(values, wanted):
    e = Evidence(shares=[shares(name, 0, value) for name, value in zip(("SE", "ECA"), values, strict=True)])
    assert verdict(attention_values.stripes, e) == wanted


@pytest.mark.parametrize(
    ("origin", "channels", "wanted"),
    [(0.8, 64, CONTRADICTED), (0.0, 64, SUPPORTED), (0.4, 16, UNDECIDED), (np.nan, 16, UNDECIDED)],
)
def test_priors_of_the_data_have_forgotten_the_first_biases(origin, channels, wanted):
    assert verdict(attention_values.embody, Evidence(shares=[shares(origin=origin, channels=channels)])) == wanted


def test_fishers_interval_by_hand():
    """atanh(0.5) = 0.5493; 1.96 / sqrt(28 - 3) = 0.392: tanh(0.1573), tanh(0.9413)."""
    assert attention_values.fisher_interval(0.5, 28) == pytest.approx((0.1560, 0.7358), abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [((-0.5, -1.0), SUPPORTED), ((-8.0, -9.0), CONTRADICTED), ((-0.5, -9.0), PARTLY), ((-0.5, -2.0), UNDECIDED)],
)
def test_constants_stand_in_at_two_points(changes, wanted):
    e = Evidence(replaced=[replaced(seed=seed, change=change) for seed, change in enumerate(changes)])
    assert verdict(attention_values.stand_in, e) == wanted


@pytest.mark.parametrize(
    ("changes", "wanted"), [((-28.0, -27.8), SUPPORTED), ((-1.0, -20.0), CONTRADICTED), ((-28.0, -1.0), PARTLY)]
)
def test_the_papers_28_lies_in_the_interval_or_not(changes, wanted):
    e = Evidence(replaced=[replaced(seed=seed, change=change) for seed, change in enumerate(changes)])
    assert verdict(attention_values.papers_loss, e) == wanted


@pytest.mark.parametrize(
    ("remains", "wanted"), [((-15.2, -14.8), SUPPORTED), ((-1.0, -2.0), CONTRADICTED), ((-15.0, -1.0), PARTLY)]
)
def test_the_papers_15_lies_in_the_interval_or_not(remains, wanted):
    found = [result(seed=seed, beyond=(value, value - 0.5, value + 0.5)) for seed, value in enumerate(remains)]
    assert verdict(attention_values.loss_after_finetuning, Evidence(rows={("finetuned", ""): {"SE": found}})) == wanted


def log_of(gates, scales):
    """Two epochs before and behind the drop, for two blocks."""
    drop = design.DYNAMICS["drops"][0]
    movements = zip((drop, drop + 1), zip(*gates, strict=True), scales, strict=True)
    return [
        {"epoch": epoch, "moved": {f"gate {k}": x for k, x in enumerate(moved)} | {"scales": scale, "logits": 1.0}}
        for epoch, moved, scale in movements
    ]


@pytest.mark.parametrize(
    ("gates", "scales", "wanted"),
    [
        (((1.0, 0.1), (1.0, 0.2)), (1.0, 0.5), SUPPORTED),
        (((1.0, 0.6), (1.0, 0.7)), (1.0, 0.5), CONTRADICTED),
        (((1.0, 0.1), (1.0, 0.7)), (1.0, 0.5), PARTLY),
    ],
)
def test_converging_is_slowing_down_more_than_everything_does(gates, scales, wanted):
    rows = {name: [result(log=log_of(gates, scales))] for name in design.AT_THE_DROP}
    assert verdict(attention_values.first_decay, Evidence(rows={("dynamics", ""): rows})) == wanted
    del rows["SRM, steps"]
    left = attention_values.first_decay(Evidence(rows={("dynamics", ""): rows}))
    assert left.verdict == UNDECIDED
    assert left.words.endswith("One seed each; n = 0: SRM, steps.")


@pytest.mark.parametrize(
    ("plain", "half", "wanted"),
    [(40.0, 60.0, SUPPORTED), (75.0, 75.0, CONTRADICTED), (40.0, 75.0, PARTLY), (40.0, 70.0, UNDECIDED)],
)
def test_regulating_noise_is_more_than_halving_does(plain, half, wanted):
    e = evidence("noise", "(0.8, 0.8)", **{PLAIN: plain, HALF: half, FAITHFUL: 70.0})
    assert verdict(accuracy.constant_noise, e) == wanted
    random = evidence("noise", "random 0.2", **{PLAIN: plain, HALF: half, FAITHFUL: 70.0})
    assert verdict(accuracy.constant_noise, random) == UNDECIDED


@pytest.mark.parametrize(
    ("gain", "spread", "wanted"),
    [
        (10.0, 0.1, SUPPORTED),
        (-25.0, 50.0, CONTRADICTED),
        (25.0, 50.0, PARTLY),
        (10.0, 1.0, UNDECIDED),
        (0.0, 1.0, UNDECIDED),
    ],
)
def test_regulating_random_noise_is_a_gain_and_a_smaller_variance(gain, spread, wanted):
    rows = {PLAIN: seeds_of(70.0, spread=0.1), FAITHFUL: seeds_of(70.0 + gain, spread=0.1 * spread)}
    found = accuracy.random_noise(Evidence(rows={("noise", "random 0.2"): rows}))
    assert found.verdict == wanted
    if spread == 1.0:
        assert "random 0.2 1.00 [0.03, 39.00]" in found.words  # F(2, 2) has its 97.5 % at 39


@pytest.mark.parametrize(
    ("logs", "wanted"),
    [((8.0, 8.0), SUPPORTED), ((10.0, 10.0), CONTRADICTED), ((8.0, 10.0), PARTLY), ((8.0, 9.0), UNDECIDED)],
)
def test_a_bound_explains_by_being_smaller(logs, wanted):
    means = dict(zip((PLAIN, FAITHFUL, LITERAL), (9.0, *logs), strict=True))
    rows = {
        arm: [result(seed=seed, bound=(mean + 0.01 * seed, 40.0)) for seed in range(3)] for arm, mean in means.items()
    }
    e = Evidence(rows={("small", ""): rows}, bounds=[bounds("plain", 0, 9.0)])
    found = accuracy.bound(e)
    assert found.verdict == wanted
    assert "plain (seed 0) 9.00, growth 36" in found.words


@pytest.mark.parametrize(
    ("two", "three", "wanted"),
    [(91.0, 91.0, SUPPORTED), (89.0, 89.0, CONTRADICTED), (91.0, 89.0, PARTLY), (91.0, None, UNDECIDED)],
)
def test_several_uses(two, three, wanted):
    e = evidence("controls", **{FAITHFUL: 90.0})
    e.rows |= evidence("uses", **{"2 uses": two, "3 uses": three}).rows
    assert verdict(accuracy.several_uses, e) == wanted


@pytest.mark.parametrize(("fixed", "wanted"), [(89.0, SUPPORTED), (91.0, CONTRADICTED), (90.0, UNDECIDED)])
def test_psi_that_is_not_learnt(fixed, wanted):
    e = evidence("fixed", **dict.fromkeys(design.FIXED, fixed))
    e.rows[("controls", "")] = {FAITHFUL: seeds_of(90.0, blocks=[block(psi=[0.13, 0.0, 0.1])])}
    found = accuracy.learnt_psi(e)
    assert found.verdict == wanted
    assert "moved by 0.0300" in found.words
    del e.rows[("fixed", "")][next(iter(design.FIXED))]
    assert verdict(accuracy.learnt_psi, e) == UNDECIDED


@pytest.mark.parametrize(
    ("part", "rule", "better"),
    [("uses", accuracy.several_uses, SUPPORTED), ("fixed", accuracy.learnt_psi, CONTRADICTED)],
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
    assert verdict(rule, e) == PARTLY


@pytest.mark.parametrize("part", ["", design.SMALL_SCALE])
@pytest.mark.parametrize(("both", "wanted"), [(91.0, SUPPORTED), (89.0, CONTRADICTED), (None, UNDECIDED)])
def test_beside_a_live_module(both, wanted, part):
    modules = ("SE", "IE", "SRM", "SPA")
    arms = dict.fromkeys(modules, 90.0) | {f"{name} + ASR({name})": both for name in modules}
    assert verdict(accuracy.beside, evidence("beside", part, **arms)) == wanted
    del arms["SPA"]  # a scale that lacks one module decides nothing
    assert verdict(accuracy.beside, evidence("beside", part, **arms)) == UNDECIDED


@pytest.mark.parametrize(
    ("repvgg", "acnet", "wanted"), [(91.0, 91.0, SUPPORTED), (89.0, 89.0, CONTRADICTED), (91.0, 89.0, PARTLY)]
)
def test_other_reparameterisations_are_compared_with_themselves(repvgg, acnet, wanted):
    rows = {}
    for column, value in zip(design.SRP, (repvgg, acnet), strict=True):
        rows |= evidence("backbones", column, **{PLAIN: 90.0, FAITHFUL: value, HALF: 80.0}).rows
    assert verdict(accuracy.reparameterised_backbones, Evidence(rows=rows)) == wanted


@pytest.mark.parametrize(
    ("plain", "factor", "wanted"), [(89.0, 89.0, SUPPORTED), (91.0, 91.0, CONTRADICTED), (89.0, 91.0, PARTLY)]
)
def test_transformers_are_compared_with_layer_scale(plain, factor, wanted):
    means = {PLAIN: plain, LAYER_SCALE: factor, FAITHFUL: 90.0, HALF: 90.0}
    assert verdict(accuracy.transformers, evidence("backbones", design.TRANSFORMER, **means)) == wanted


@pytest.mark.parametrize(
    ("ratio", "width", "wanted"), [(0.5, 0.01, SUPPORTED), (0.9, 0.01, CONTRADICTED), (0.64, 0.1, UNDECIDED)]
)
def test_slower_by_36_per_cent(ratio, width, wanted):
    def at(speed):
        six = dict.fromkeys(("IE", "SRM", "CBAM", "SE", "DIA", "SPA"), (speed, (speed - width, speed + width)))
        return six | {"ASR(SE) merged": (1.0, None), "ASR(SE) folded": (1.1, None)}

    assert verdict(whole_networks.slower, Evidence(speeds={"32 x 32": at(ratio)})) == wanted
    both = Evidence(speeds={"32 x 32": at(ratio), "96 x 96": at(ratio)})
    assert verdict(whole_networks.slower, both) == wanted
    if wanted != UNDECIDED:  # the sizes of the images are cases
        both.speeds["96 x 96"] = at(0.9 if ratio == 0.5 else 0.5)
        assert verdict(whole_networks.slower, both) == PARTLY


@pytest.mark.parametrize(("se", "srm", "wanted"), [(0.6, 0.6, SUPPORTED), (0.4, 0.4, CONTRADICTED), (0.6, 0.4, PARTLY)])
def test_the_centre_is_attentions_where_plain_networks_have_less(se, srm, wanted):
    e = Evidence(maps=[maps("plain", 0, 0.5), maps("SE", 0, se), maps("SRM", 0, srm)])
    assert verdict(whole_networks.centre, e) == wanted


@pytest.mark.parametrize(
    ("share", "wanted"), [([0.1, 0.2], SUPPORTED), ([0.8, 0.9], CONTRADICTED), ([0.1, 0.9], PARTLY)]
)
def test_spatial_attention(share, wanted):
    one = [{"name": "a", "seed": 0, "share": share, "maps": []}]
    for kind in ("spatial", "attention"):
        assert verdict(attention_values.spatial, Evidence(**{kind: one})) == wanted
    mixed = Evidence(spatial=one, attention=[{"name": "ViT", "seed": 0, "share": [0.9], "maps": []}])
    assert verdict(attention_values.spatial, mixed) == (CONTRADICTED if wanted == CONTRADICTED else PARTLY)


def test_nothing_known_is_undecided_throughout():
    found = findings.findings(Evidence())
    assert {one.verdict for one in found} == {UNDECIDED}
    assert len({one.claim for one in found}) == len(found) >= 18


def test_what_is_undecided_names_a_command_that_the_study_knows():
    for one in findings.findings(Evidence()):
        options = re.search(r"`python -m studies\.asr (.+)` (trains what the plan still lacks|looks)\.$", one.words)
        given = tyro.cli(study.Arguments, args=options[1].split())
        assert given.part != ("all",)
        assert not given.train or all(name == "stripes" or name in (*study.TRAINED, "style") for name in given.part)
        assert given.train == (options[2] != "looks")
    slow = evidence(plain=90.0, **{FAITHFUL: 95.0})
    (decided, *_) = findings.findings(slow)
    assert decided.verdict == SUPPORTED
    assert "python -m" not in decided.words
