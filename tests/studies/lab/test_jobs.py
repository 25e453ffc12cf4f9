"""The queue that several processes share, on jobs that are only made up: nothing twice, nothing lost, no end missed."""

import dataclasses
import json
import threading
import time
import types

import filelock
import pytest

from netbridge.train import epochs, recipes
from studies.lab import jobs
from studies.lab.results import source


@dataclasses.dataclass(frozen=True)
class Made:
    stem: str


JOBS = [Made(name) for name in "abcd"]


class Queue:
    """Jobs whose results are files; `carry_out` notes who did what, and lets a job of `failing` diverge."""

    def __init__(self, folder, failing=(), jobs=JOBS):
        self.folder, self.failing, self.jobs, self.done = folder, failing, jobs, []

    def find(self, job):
        path = self.folder / job.stem
        return path.read_text() if path.is_file() else None

    def carry_out(self, job):
        self.done.append((threading.get_ident(), job.stem))
        time.sleep(0.01)
        if job.stem in self.failing:
            raise epochs.Diverged("the loss is no number any more")
        (self.folder / job.stem).write_text("done")
        return "done."

    def work(self, find=None):
        return jobs.work_off(lambda: self.jobs, find or self.find, self.carry_out, self.folder, say=lambda line: None)

    @property
    def stems(self):
        return [stem for _, stem in self.done]


def test_each_job_is_done_once_in_order_and_not_again(tmp_path):
    queue = Queue(tmp_path)
    assert queue.work() == queue.work() == []
    assert queue.stems == list("abcd")


def test_two_workers_share_the_queue(tmp_path):
    queue = Queue(tmp_path, jobs=[Made(str(k)) for k in range(20)])
    workers = [threading.Thread(target=queue.work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(queue.stems) == sorted(job.stem for job in queue.jobs)
    assert len({worker for worker, _ in queue.done}) == 2


def test_a_job_that_diverges_is_noted_and_does_not_stop_the_others(tmp_path):
    queue = Queue(tmp_path, failing="b")
    assert queue.work() == queue.work() == ["b"]
    assert queue.stems == list("abcd")  # it would diverge again
    assert jobs.divergence(JOBS[1], tmp_path) == "the loss is no number any more"
    assert jobs.list_diverged(JOBS, [tmp_path / "nothing", tmp_path]) == ["b"]
    (tmp_path / "b.diverged.txt").unlink()
    queue.failing = ()
    assert queue.work() == []
    assert queue.stems == list("abcdb")


def test_what_somebody_is_at_is_passed_over_and_what_was_finished_meanwhile_is_not_done(tmp_path):
    queue = Queue(tmp_path)
    with filelock.FileLock(tmp_path / "a.lock"):
        assert queue.work() == []
    assert queue.stems == list("bcd")
    looks = []

    def find(job):  # between the look and the lock another process has finished it, and its lock is gone
        looks.append(job.stem)
        return "done" if looks.count(job.stem) > 1 else None

    other = Queue(tmp_path / "other")
    assert other.work(find) == []
    assert set(looks) == set("abcd")
    assert other.stems == []


def test_a_result_that_cannot_be_found_again_ends_the_work(tmp_path):
    with pytest.raises(RuntimeError, match="the result of a was written and is not found again"):
        Queue(tmp_path).work(find=lambda job: None)


def test_jobs_that_depend_on_results_are_planned_when_these_are_there(tmp_path):
    queue = Queue(tmp_path, jobs=JOBS[:1])
    planned = lambda: JOBS[:2] if queue.find(JOBS[0]) else JOBS[:1]  # noqa: E731
    assert jobs.work_off(planned, queue.find, queue.carry_out, tmp_path, say=lambda line: None) == []
    assert queue.stems == ["a", "b"]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [({}, {"missing"}), ({"missing": False, "older": True}, {"older"}), ({"older": True}, {"missing", "older"})],
)
def test_what_is_missing_and_what_older_code_measured_is_worked_off_where_it_is_asked_for(asked, wanted):
    made = {"today": source(), "older": {"measured_by": "0" * 12}}
    results = {name: types.SimpleNamespace(made=one) for name, one in made.items()} | {"missing": None}
    find = jobs.finder(results.get, **asked)
    assert {name for name in results if find(name) is None} == wanted


@pytest.mark.parametrize(
    ("lost", "same"),
    [({"teacher": "", "temperature": 2.0, "operations": 3}, True), ({"teacher": "digits"}, False),
     ({"policy": "rand"}, False)],
)  # fmt: skip
def test_a_field_that_recipes_have_lost_changed_nothing_in_a_log_of_the_same_recipe(lost, same):
    recipe = recipes.recipe("paper")
    assert jobs.same_recipe(json.loads(json.dumps(recipe.as_json())) | lost, recipe) is same
