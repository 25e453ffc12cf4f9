"""Where data sets lie: one folder for all of them, made-up ones under names of their own."""

import dataclasses
from pathlib import Path

import pytest

from netbridge import data, detect
from studies import detect as detection
from studies import train
from studies.lab import jobs, networks
from studies.lab.options import TrainingOptions


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with made-up data in the format of each data set."""
    place = tmp_path_factory.mktemp("small")
    data.miniature("imagenet", place, classes=2, each=2, height=16)
    data.miniature("stl10", place, classes=2, each=2)
    detect.shapes(place, 4, 2, 64)
    return place


@pytest.mark.parametrize("inside", ["", "imagenet", "imagenet/tree", "imagenet/shards"])
def test_one_folder_has_all_data_sets_and_that_of_imagenet_will_do_too(root, inside):
    found = networks.load_images(
        "train", train.Arguments(dataset="imagenet", data_root=root / inside, size=8, resize=8)
    )
    assert found.name == "imagenet-of-4"
    assert networks.load_images("train", train.Arguments(dataset="stl10", data_root=root)).name == "stl10-miniature"


@pytest.mark.parametrize("inside", ["", "coco"])
def test_made_up_scenes_in_the_place_of_coco_are_not_called_coco(root, inside):
    place = networks.folder_of("coco", root / inside)
    arguments = detection.Arguments(data_root=place, seeds=1, controllers=("constant",), short=64)
    (run,) = detection.plan_runs(arguments)
    assert (run.dataset, run.size, run.depth) == (detection.REHEARSED, 64, 50)
    assert run.recipe.epochs == 12


def test_a_study_of_made_up_pictures_knows_that_they_are(root):
    """The name is part of what determines a network: no file of its numbers is taken for one of the real data."""
    asked = TrainingOptions(dataset="stl10", data_root=root)
    found, notice, arguments = networks.images_or_fallback("train", asked, "trains on")
    assert (found.name, arguments.dataset) == ("stl10-miniature", "stl10-miniature")
    assert notice.startswith("NOT stl10: made-up pictures")
    assert jobs.recipe_of("paper", arguments.dataset).batch == 16
    again = networks.load_images("train", dataclasses.replace(arguments, data_root=Path(root)))
    assert again.name == "stl10-miniature"
    one, other = (jobs.Job(name, "constant", 0, jobs.recipe_of("paper", name)) for name in ("stl10", "stl10-miniature"))
    assert one.digest != other.digest
