"""The queue of tricks: one change at a time, balanced wherever it is stopped, and names that stay valid."""

import dataclasses

import pytest

from studies import tricks as study


@pytest.mark.parametrize("full", [False, True])
def test_each_trick_changes_one_field_of_the_plain_recipe(full):
    plain = study.recipe_of(study.PLAIN, full)
    for trick, changes in study.tricks(full).items():
        one = study.recipe_of(trick, full)
        differ = {f.name for f in dataclasses.fields(one) if getattr(one, f.name) != getattr(plain, f.name)}
        assert differ == {*changes, "name"} - ({"name"} if trick == study.PLAIN else set())
        assert len(changes) == (trick != study.PLAIN) or trick == study.ALL


def test_the_last_row_is_all_but_sam_at_once():
    rows = study.tricks()
    assert list(rows)[-1] == study.ALL
    single = [changes for name, changes in rows.items() if name not in (study.ALL, "SAM")]
    assert rows[study.ALL] == {key: value for changes in single for key, value in changes.items()}


def test_the_plain_recipe_is_the_papers_but_for_the_scale():
    full, paper = study.recipe_of(study.PLAIN, True), study.recipe("paper")
    assert dataclasses.replace(full, name="paper", evaluate_every=1) == paper
    assert study.job_of(study.PLAIN, 0, True).depth == 164
    small = study.recipe_of(study.PLAIN)
    assert [drop / small.epochs for drop in small.drops] == [0.5, 0.75]


def test_the_papers_scale_of_stl10_has_its_pictures_and_its_batches():
    """STL-10's pictures have 96 pixels: shrunk to 32 they would be another data set."""
    for dataset, size, batch in (("cifar100", 32, 128), ("stl10", 96, 16), ("stl10-miniature", 96, 16)):
        jobs_of_it = study.queue(True, dataset)
        assert {(job.size, job.recipe.batch, job.recipe.epochs) for job in jobs_of_it} == {(size, batch, 164)}
        assert study.recipe_of("cutout", True, dataset).cutout == size // 2
        assert len({job.stem for job in jobs_of_it}) == len(jobs_of_it)
