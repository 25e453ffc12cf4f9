"""step_control's training: nothing twice, nothing lost, and what is written down is what the network is and does."""

import dataclasses

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from studies import step_control as study
from studies.lab import jobs
from studies.lab.stiffness import prepare
from tests.studies.step_control.step_results import plan_of


@pytest.fixture(scope="module")
def few():
    data = datasets.load("digits")
    parts = {"train_images": 200, "train_labels": 200, "test_images": 100, "test_labels": 100}
    return dataclasses.replace(data, **{name: getattr(data, name)[:count] for name, count in parts.items()})


def comparable(plan):
    """All that is not a matter of the clock."""
    results = [plan.find(run) for run in plan.queue()]
    return [dataclasses.replace(one, made={}, log=[line | {"seconds": 0} for line in one.log]) for one in results]


def test_stopped_or_not_written_down_it_goes_on_and_leaves_no_weights(tmp_path, few):
    """Two networks of a few steps, the second on the blocks that were stiff in the first; whole ones are shipped."""
    options = {"seeds": (1,), "only": (study.STIFFEST,), "part": "ticket", "blocks": "every"}
    options["shipped"] = tmp_path / "shipped"
    whole, stopped = (
        plan_of(tmp_path / "whole", own=False, ship=True, **options),
        plan_of(tmp_path / "stopped", **options),
    )
    study.train(whole, few)
    plain, ticket = whole.queue()
    for run, epochs in ((plain, 1), (ticket, 2)):  # the other one was finished, and its result was not written
        path = stopped.own / f"{run.stem}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        jobs.train(run.job, few, path, study.STUDY, "cpu", stop_after=epochs)
    finished = path.stat().st_mtime_ns
    plan = plan_of(tmp_path / "stopped", keep=True, **options)
    study.train(plan, few)
    assert path.stat().st_mtime_ns == finished
    assert comparable(plan) == comparable(whole)
    nsi = whole.find(plain).nsi
    assert sorted(np.argsort(nsi)[-2:].tolist()) == ticket.acting == whole.queue()[1].acting
    assert {path.suffix for path in whole.own.iterdir()} == {".lock"}
    assert {path.stem for path in options["shipped"].glob("*.json")} == {plain.stem, ticket.stem}
    assert plan_of(tmp_path / "again", own=False, **options).find(plain) == whole.find(plain)
    assert plan_of(tmp_path / "again", **options).find(plain) is None  # `own` leaves what is shipped aside
    assert len(list(plan.own.glob("*.safetensors"))) == 2


def test_what_is_written_down_is_what_the_network_is_and_does(tmp_path, few):
    """Seed, blocks and images reach the training; errors, loss and stiffness are the finished network's own."""
    scale = study.Scale("digits", 14, plan_of(tmp_path).scale.recipe, 192)
    run, data = study.network_of(scale, "se", 1, on=[1, 3]), few
    result = study.carry_out(run, data, tmp_path, tmp_path, "cpu", keep=True)
    assert study.find(run, [tmp_path]) == result
    net = nb.load(tmp_path / f"{run.stem}.safetensors")
    names = [spec["name"] if isinstance(spec, dict) else spec for spec in net.config["controllers"]]
    assert names == ["constant", "se", "constant", "se", "constant", "constant"]
    some = run.job.data_of(data)
    torch.testing.assert_close(some.train_images, data.train_images[:192], rtol=0, atol=0)
    again = jobs.train(run.job, data, tmp_path / "again.safetensors", study.STUDY, "cpu")
    assert all(torch.equal(x, again.state_dict()[name]) for name, x in net.state_dict().items())
    assert (net.about["seed"], net.about["run"]["dataset"]["images"]) == (1, 192)

    net.eval()
    with torch.no_grad():
        scores = net(prepare(net, data, data.test_images))
    assert result.test_errors == int((scores.argmax(1) != data.test_labels).sum())
    loss = float(torch.nn.functional.cross_entropy(scores, data.test_labels))
    assert (result.test_loss, result.test_images) == (pytest.approx(loss, rel=1e-4), len(data.test_labels))
    expected = nb.trace(net, prepare(net, data, data.train_images), of="slope").nsi.mean(0)  # not of test images
    np.testing.assert_allclose(result.nsi, expected, rtol=1e-5)
    assert result.traced == len(data.train_images) < study.TRACED
