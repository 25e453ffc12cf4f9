"""Jobs of which measurements are kept: made once, found again, the same from an executor, and true to the network."""

import concurrent.futures
import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from netbridge import data as datasets
from netbridge.train import recipe
from studies import step_control
from studies.asr import evidence
from studies.lab import measurements
from studies.lab.jobs import Job
from studies.lab.results import is_current
from studies.lab.stiffness import READINGS
from tests.studies.asr.made_up import plan_of, result
from tests.studies.step_control.step_results import made_up
from tests.studies.step_control.step_results import plan_of as steps_of

HOW = recipe("digits", epochs=1, evaluate_every=100)


def job_of(seed, **changes):
    return Job("digits", "se", seed, HOW, 14, 4, images=64, **changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    work = tmp_path_factory.mktemp("runs")
    assert measurements.work_off([job_of(0), job_of(1)], work, ()) == []
    return work


def test_what_is_kept(made):
    found = measurements.find(job_of(0), (made,))
    assert sorted(path.suffix for path in made.iterdir()) == [".lock", ".lock", ".npz", ".npz"]
    assert found.arrays["nsi_slope"].shape == (500, 6)
    assert found.numbers["test_accuracy"] == pytest.approx(found.arrays["correct"].mean())
    assert found.numbers["test_loss"] == pytest.approx(found.arrays["loss"].mean(), rel=1e-2)
    assert np.allclose(found.arrays["nsi_slope"].mean(0), found.numbers["nsi_slope"]["mean"], rtol=1e-2)
    for place, (of, mu) in enumerate(READINGS):
        assert (found.tns((of, mu)) is None) == (mu == "sample")  # one counted block a stage has no mean to differ from
        if mu == "dataset":
            assert found.arrays["tns"][place].mean() == pytest.approx(found.tns((of, mu)), rel=1e-2)


@pytest.fixture(params=["measurement", "score of step_control", "score of asr"])
def store(request, made, tmp_path):
    """Two jobs, the path of a job's result, and the functions that write and find one."""
    if request.param == "measurement":
        found = measurements.find(job_of(0), (made,))
        write, find = (lambda job, path: measurements.write(found, path)), measurements.find
        return (job_of(0), job_of(7)), (lambda job: tmp_path / f"{job.stem}.npz"), write, find
    if request.param == "score of asr":
        planned, write, find = plan_of(tmp_path).part("controls")[:2], result, evidence.find
    else:
        scale = steps_of(tmp_path).scale
        planned, write, find = [step_control.network_of(scale, "se", k) for k in (0, 1)], made_up, step_control.find
    return planned, (lambda job: tmp_path / f"{job.stem}.json"), (lambda job, path: write(job).write(path)), find


def test_a_result_of_another_job_is_refused_and_a_damaged_one_is_named(store, tmp_path):
    (job, other), place, write, find = store
    folders = (tmp_path / "nothing", tmp_path)
    assert find(job, folders) is None
    path = write(job, place(job))
    assert find(job, folders) is not None
    path.rename(place(other))
    with pytest.raises(SystemExit, match="another network"):
        find(other, folders)
    whole = place(other).read_bytes()
    for damaged in (
        whole[:100],
        b"PK",
        b"[]" if path.suffix == ".npz" else whole.replace(b"specification", b"specified"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(SystemExit, match=f"{path.name}: damaged"):
            find(job, folders)


def aged(made, place, seed):
    """A measurement as other code left it, in the folder `place`."""
    found = measurements.find(job_of(seed), (made,))
    found.numbers["made"] = {"seconds": 1.0, "measured_by": "0" * 12}
    measurements.write(found, place / f"{job_of(seed).stem}.npz")
    return found


def test_what_older_code_measured_is_served_until_it_is_measured_again(made, tmp_path):
    work, shipped = tmp_path / "work", tmp_path / "shipped"
    older = aged(made, shipped, 0)
    wanted, folders = [job_of(0), job_of(1)], (work, shipped)
    assert measurements.find(job_of(0), folders).made == older.made
    assert measurements.work_off([job_of(0)], work, (shipped,)) == []
    assert not list(work.glob("*.npz"))
    measurements.work_off(wanted, work, (shipped,), missing=False, older=True)
    assert [path.stem for path in work.glob("*.npz")] == [job_of(0).stem]  # and what is missing is left alone
    again = measurements.find(job_of(0), folders)
    assert is_current(again.made)
    assert {**again.numbers, "made": 0, "log": 0} == {**older.numbers, "made": 0, "log": 0}
    aged(made, work, 0)  # one of today goes before an older one, whichever folder is looked at first
    measurements.write(again, shipped / f"{job_of(0).stem}.npz")
    assert is_current(measurements.find(job_of(0), folders).made)


def test_an_executor_makes_the_same(made, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        measurements.work_off_on(executor, [job_of(1)], tmp_path, (), say=lambda line: None)
    here, there = (measurements.find(job_of(1), (folder,)) for folder in (made, tmp_path))
    aside = ("made", "log")
    assert {k: v for k, v in here.numbers.items() if k not in aside} == {
        k: v for k, v in there.numbers.items() if k not in aside
    }
    assert all(np.array_equal(here.arrays[name], there.arrays[name], equal_nan=True) for name in here.arrays)


def test_names_depend_on_all_that_matters():
    job = job_of(0, size=8)
    others = [
        dataclasses.replace(job, **change) for change in ({"seed": 1}, {"width": 8}, {"images": 65}, {"on": (1,)})
    ]
    others.append(dataclasses.replace(job, recipe=dataclasses.replace(HOW, lr=0.05)))
    assert len({one.stem for one in (job, *others)}) == 6


def test_sharpness_of_a_loss_that_is_known():
    """One weight w, logits (w, 0): the way up goes by radius |w|, and the network stays as it is."""

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return torch.stack([self.weight.expand(len(x)), torch.zeros(len(x))], 1)

    net, data = Line(), datasets.load("digits")
    data = dataclasses.replace(data, train_labels=torch.ones_like(data.train_labels))
    loss = [float(F.cross_entropy(torch.tensor([[w, 0.0]]), torch.tensor([1]))) for w in (2.0, 3.0)]
    assert measurements.sharpness(net, data, "cpu", radius=0.5) == pytest.approx(loss[1] - loss[0], rel=1e-5)
    assert net.weight.item() == 2.0
    assert net.weight.grad is None


def test_rounding_keeps_its_digits():
    values = np.random.default_rng(0).lognormal(size=1000)
    for bits in (4, 6):
        assert np.abs(measurements.round_bits(values, bits) / values - 1).max() <= 2.0 ** -(bits + 1) * 1.01
    assert np.isnan(measurements.round_bits(np.array([np.nan]), 4)).all()
