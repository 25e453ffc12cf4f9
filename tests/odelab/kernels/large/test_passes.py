"""Passes over arrays: everything is there before it is read, and no buffer holds two arrays that are needed at once."""

import pytest

import odelab as ol
from odelab.graph.nodes import Node
from odelab.kernels.attempt import Asked
from odelab.kernels.large.array_attempt import Large, array_attempt
from odelab.kernels.large.array_graph import SUM
from odelab.kernels.large.passes import Plan

CASES = [
    Large(Asked(0, method, law, limited=limited, rows=True), projects, raises=False, autonomous=autonomous)
    for method in (*ol.METHODS.values(), ol.ROS2, ol.RODAS4)
    if hasattr(method, "tableau")
    for law in ((ol.LAWS["pi42"], None) if getattr(method, "embedded", True) else (None,))
    for limited, projects, autonomous in ((False, False, True), (True, True, False))
]


@pytest.fixture(params=CASES, ids=lambda large: f"{large.asked.method.name} {large.projects} {bool(large.asked.law)}")
def plan(request):
    attempt = array_attempt(request.param)
    written = {attempt.new.i: "new"}
    if attempt.latest is not None:
        written[attempt.latest.i] = "latest"
    outputs = [now for _, now in attempt.carried.values()] + [attempt.status, *attempt.row]
    return Plan(attempt.graph, outputs, written)


def test_what_a_pass_reads_is_in_memory(plan):
    written = {i for i in plan.graph.arrays if plan.graph.ops[i][0] == "in" and i not in plan.graph.actions}
    for one in plan.passes:
        assert set(one.loaded) <= written
        written |= set(one.stored)
        for action in one.actions:
            assert set(plan.arrays_given(action)) <= written
            written.add(action.result.i)


def test_every_action_is_done_once_and_behind_what_it_needs(plan):
    done = []
    for level, one in enumerate(plan.passes):
        for action in [*one.sums, *one.actions]:
            assert all(plan.level[node.i] <= level for node in action.given)
            done.append(action.result.i)
    assert len(done) == len(set(done))


def test_no_buffer_is_written_while_it_is_needed(plan):
    names, _ = plan.memory()
    last = {}
    for level, one in enumerate(plan.passes):
        for i in [*one.loaded, *one.stored, *(i for action in one.actions for i in plan.arrays_given(action))]:
            last[i] = level
    holds = {}
    for level, one in enumerate(plan.passes):
        made = [*one.stored, *(action.result.i for action in one.actions if action.result.i in plan.graph.arrays)]
        for i in made:
            held = holds.get(names[i])
            assert held is None or last.get(held, -1) < level, (plan.graph.ops[i], names[i])
            holds[names[i]] = i


def test_a_sum_is_formed_in_the_first_pass_that_can(plan):
    for level, one in enumerate(plan.passes):
        for action in one.sums:
            assert action.what == SUM
            assert plan.level[action.given[0].i] == level
            assert isinstance(action.result, Node)
