"""step_control: a result is known by all that determines it, nothing is trained twice, tickets are what they say."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from netbridge.train.recipes import Recipe, recipe
from studies import step_control as study
from studies.lab import jobs
from tests.studies.step_control.step_results import made_up, plan_of

SCALE = study.Scale("digits", 14, recipe("digits", epochs=2), 128)


# Tickets.


@settings(deadline=None)
@given(st.data())
def test_the_stiffest_are_no_less_stiff_than_any_other(data):
    nsi = data.draw(st.lists(st.floats(0, 10, allow_nan=False), min_size=2, max_size=20))
    among = data.draw(st.lists(st.sampled_from(range(len(nsi))), min_size=2, unique=True).map(sorted))
    few = data.draw(st.integers(1, len(among) - 1))
    stiffest = study.ticket(study.STIFFEST, nsi, among, few)
    least = study.ticket(study.LEAST, nsi, among, few)
    for chosen in (stiffest, least):
        assert len(set(chosen)) == few
        assert chosen == sorted(chosen)
        assert set(chosen) <= set(among)
    assert min(nsi[k] for k in stiffest) >= max(nsi[k] for k in among if k not in stiffest)
    assert max(nsi[k] for k in least) <= min(nsi[k] for k in among if k not in least)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6))
def test_random_tickets_are_those_of_the_seed_and_all_different(seed, few):
    most = math.comb(6, few)
    tickets = study.draw_blocks(list(range(6)), few, seed, most)
    assert sorted(tickets) == [list(blocks) for blocks in itertools.combinations(range(6), few)]  # each once
    for count in range(1, most):
        assert study.draw_blocks(list(range(6)), few, seed, count) == tickets[:count]
    with pytest.raises(ValueError, match=f"{most} different tickets"):
        study.draw_blocks(list(range(6)), few, seed, most + 1)


def test_random_blocks_are_spread_evenly():
    for one in range(3):  # of the first, second and third draw
        counts = np.bincount([k for seed in range(600) for k in study.draw_blocks(range(6), 2, seed, 3)[one]])
        assert stats.chisquare(counts).pvalue > 1e-3


def test_counted_blocks_leave_out_the_first_of_every_stage():
    assert study.candidates(SCALE, study.COUNTED) == [1, 3, 5]
    assert study.candidates(SCALE, study.EVERY) == [0, 1, 2, 3, 4, 5]
    deep = study.Scale("cifar10", 164, recipe("paper"))
    assert len(study.candidates(deep, study.EVERY)) == 54
    assert len(study.candidates(deep, study.COUNTED)) == 51


def test_placements_wait_for_the_plain_network_and_then_follow_its_stiffness(tmp_path):
    plan = plan_of(tmp_path, seeds=(1,))
    assert plan.ticket(study.EVERY, study.STIFFEST, 0) is None
    plain = plan.cell(study.PLAIN, 0)
    made_up(plain).write(plan.own / f"{plain.stem}.json")
    assert plan.ticket(study.EVERY, study.STIFFEST, 0).acting == [0, 2]
    assert plan.ticket(study.EVERY, study.LEAST, 0).acting == [1, 3]
    assert plan.ticket(study.COUNTED, study.STIFFEST, 0).acting == [5]
    assert plan.ticket(study.COUNTED, study.LEAST, 0).acting == [1]
    assert plan.ticket(study.EVERY, study.ALL, 0).acting == [0, 1, 2, 3, 4, 5]


def test_table_4_trains_what_its_rows_are_named_after(tmp_path):
    plan = plan_of(tmp_path)
    options = {
        "plain": "constant",
        "SE": "se",
        "F(x_t)": {"name": "stepnet", "inputs": "now"},
        "F(x_{t+1})": {"name": "stepnet", "inputs": "next"},
        "F(x_{t+1} - x_t)": {"name": "stepnet", "inputs": "difference"},
        "F(x_{t+1}, x_t)": "stepnet",
        **{f"Adaptor {letter}": {"name": "stepnet", "adaptor": letter} for letter in "abcd"},
    }
    assert {name: plan.cell(name, 0).controller for name in study.CELLS} == options


def test_draws_of_one_seed_are_different_networks_and_count_once(tmp_path):
    plan = plan_of(tmp_path, draws=5, blocks="every")
    for seed in (0, 1):
        planned = plan.tickets(study.EVERY, study.RANDOM, seed)
        assert len({run.stem for run in planned}) == 5
        assert planned[0].stem == plan_of(tmp_path, blocks="every").tickets(study.EVERY, study.RANDOM, seed)[0].stem
        for place, run in enumerate(planned):
            made_up(run, 50 + 10 * seed + place).write(plan.own / f"{run.stem}.json")
    row = plan.placements(study.EVERY)[study.RANDOM]
    assert len(row.results) == 10
    assert row.accuracies == pytest.approx([89.6, 87.6])  # of 500: 52 and 62 errors in the mean
    assert row.mean == pytest.approx(88.6)


def test_all_counted_blocks_are_table_4s_stepnet_and_none_is_the_plain_network(tmp_path):
    plan = plan_of(tmp_path)
    assert plan.ticket(study.COUNTED, study.ALL, 0).stem == plan.cell(study.OURS, 0).stem
    assert plan.ticket(study.EVERY, study.NONE, 0).stem == plan.cell(study.PLAIN, 0).stem


# What identifies a result.

CHANGES = {
    "dataset": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, dataset="cifar10")),
    "images": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, images=None)),
    "epochs": lambda run: dataclasses.replace(run, scale=dataclasses.replace(run.scale, recipe=recipe("digits"))),
    "rate": lambda run: dataclasses.replace(
        run, scale=dataclasses.replace(run.scale, recipe=recipe("digits", epochs=2, lr=0.3))
    ),
    "depth": lambda run: study.network_of(dataclasses.replace(run.scale, depth=20), "stepnet", run.seed),
    "seed": lambda run: dataclasses.replace(run, seed=1),
    "controller": lambda run: study.network_of(run.scale, "se", run.seed, on=run.acting),
    "options": lambda run: study.network_of(run.scale, {"name": "stepnet", "inputs": "now"}, run.seed),
    "blocks": lambda run: study.network_of(run.scale, "stepnet", run.seed, on=[1, 3]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_result_changes_its_name(change):
    run = study.network_of(SCALE, "stepnet", 0)
    other = CHANGES[change](run)
    assert other.specification != run.specification
    assert other.stem != run.stem


def test_what_changes_no_result_changes_no_name():
    run = study.network_of(SCALE, "stepnet", 0)
    looked = dataclasses.replace(SCALE.recipe, evaluate_every=1, architectures="these")
    assert dataclasses.replace(run, scale=dataclasses.replace(SCALE, recipe=looked)).stem == run.stem
    assert study.network_of(SCALE, {"name": "stepnet", "inputs": "both"}, 0, on=[1, 3, 5]).stem == run.stem


def test_a_field_that_joins_the_recipes_leaves_old_results_theirs():
    @dataclasses.dataclass(frozen=True)
    class Later(Recipe):
        warmth: float = 0.0

    old = SCALE.recipe
    later = Later(**{field.name: getattr(old, field.name) for field in dataclasses.fields(old)})
    assert jobs.same_recipe(json.loads(json.dumps(old.as_json())), later)
    assert not jobs.same_recipe({**old.as_json(), "lr": 9.0}, later)
