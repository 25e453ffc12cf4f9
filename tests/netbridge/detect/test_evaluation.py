"""Average precision by pycocotools equals a literal reading of COCO's definition, on whatever pictures there are."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netbridge import detect
from tests.netbridge.detect.literal_precision import literal_precision

pytest.importorskip("pycocotools")
CATEGORIES = (2, 7, 90)  # not contiguous, as COCO's are
SIDES = st.sampled_from([1, 2, 8, 20, 32, 33, 60, 96, 97, 150])  # on both sides of what COCO calls small and large
CORNERS = st.integers(0, 40)


@st.composite
def pictures(draw):
    """(pictures' numbers, objects, detections): true boxes moved by a little, and others; empty pictures among them."""
    images = draw(st.lists(st.integers(1, 999), min_size=1, max_size=4, unique=True))
    kinds = draw(st.lists(st.sampled_from(CATEGORIES), min_size=1, max_size=3, unique=True))

    def box():
        return [float(draw(side)) for side in (CORNERS, CORNERS, SIDES, SIDES)]

    objects = []
    first = draw(st.sampled_from([0, 1, 500]))  # pycocotools by itself never finds an object whose number is 0
    for number in range(first, first + draw(st.integers(1, 8))):
        where = {"image_id": draw(st.sampled_from(images)), "category_id": draw(st.sampled_from(kinds))}
        sides = box()
        share = draw(st.sampled_from([1.0, 0.5]))  # the area is that of the outline, not of the box
        about = {"area": share * sides[2] * sides[3], "iscrowd": int(draw(st.integers(0, 4)) == 0)}
        objects.append({"id": number, "bbox": sides, **where, **about})
    found = []
    for _ in range(draw(st.integers(0, 12))):
        near = draw(st.sampled_from([None, *objects]))
        where = {"image_id": draw(st.sampled_from(images)), "category_id": draw(st.sampled_from(CATEGORIES))}
        if near is not None:
            where = {key: near[key] for key in where}
        by = [draw(st.sampled_from([0, 0, 1, 3, 7])) for _ in range(4)]
        sides = box() if near is None else [side + more for side, more in zip(near["bbox"], by, strict=True)]
        score = draw(st.sampled_from([0.1, 0.5, 0.5, 0.9]))  # scores that are equal keep their order
        found.append(where | {"bbox": [float(side) for side in sides], "score": score})
    return images, objects, found


def by_pycocotools(images, objects, found):
    shown = [{"id": number, "width": 200, "height": 200, "file_name": f"{number}.png"} for number in images]
    test = SimpleNamespace(images=shown, annotations=objects)
    return detect.average_precision(SimpleNamespace(test=test, categories=CATEGORIES, names=tuple("abc")), found)


def agree(images, objects, found):
    ours, theirs = literal_precision(images, objects, found), by_pycocotools(images, objects, found)
    assert {name: value is None for name, value in ours.items()} == {n: value is None for n, value in theirs.items()}
    assert [x for x in ours.values() if x is not None] == pytest.approx(
        [theirs[n] for n in ours if ours[n] is not None]
    )


@given(pictures())
@settings(max_examples=60)
def test_both_evaluators_agree(scene):
    agree(*scene)


def test_numbers_of_objects_do_not_matter_nor_areas_of_boxes():
    """Some files number their objects from 0 or not at all, and say neither areas nor crowds."""
    here = {"image_id": 5, "category_id": 7}
    boxes = [[0.0, 0.0, 10.0, 10.0], [30.0, 0.0, 50.0, 50.0], [90.0, 0.0, 100.0, 150.0]]
    found = [here | {"bbox": box, "score": 0.9} for box in boxes]
    for numbers in ([0, 1, 2], [4, 4, 4], [None] * 3):
        truth = [
            here | {"bbox": box} | ({} if number is None else {"id": number})
            for box, number in zip(boxes, numbers, strict=True)
        ]
        assert list(by_pycocotools([5], truth, found).values()) == pytest.approx([100.0] * 6)


def test_only_the_hundred_best_detections_of_a_class_count():
    """The right one is the 101st, and of 101 wrong ones before it 100 are looked at."""
    one = {"image_id": 5, "category_id": 7, "bbox": [0.0, 0.0, 10.0, 10.0]}
    truth = [one | {"id": 1, "area": 100.0, "iscrowd": 0}]
    wrong = [one | {"bbox": [50.0, 50.0, 10.0, 10.0], "score": 0.9} for _ in range(100)]
    for count in (99, 100):
        found = [*wrong[:count], one | {"score": 0.1}]
        agree([5], truth, found)
        assert (by_pycocotools([5], truth, found)["AP"] > 0) == (count == 99)


def test_a_crowd_takes_any_number_of_detections():
    crowd = {"id": 1, "image_id": 5, "category_id": 7, "bbox": [0.0, 0.0, 60.0, 60.0], "area": 3600.0, "iscrowd": 1}
    single = crowd | {"id": 2, "bbox": [80.0, 80.0, 20.0, 20.0], "area": 400.0, "iscrowd": 0}
    inside = [
        {"image_id": 5, "category_id": 7, "bbox": [20.0 * k, 20.0 * k, 20.0, 20.0], "score": 0.9} for k in range(3)
    ]
    found = [*inside, {key: single[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.2}]
    agree([5], [crowd, single], found)
    assert by_pycocotools([5], [crowd, single], found)["AP"] == pytest.approx(100.0)


def test_of_two_equal_overlaps_the_later_object_is_taken_and_exactly_a_half_is_enough():
    here = {"image_id": 5, "category_id": 7}
    boxes = [[0.0, 0.0, 10.0, 10.0], [2.0, 0.0, 10.0, 10.0], [50.0, 0.0, 10.0, 20.0]]
    truth = [here | {"id": k, "bbox": box, "area": 100.0, "iscrowd": 0} for k, box in enumerate(boxes, 1)]
    moved = [[1.0, 0.0, 10.0, 10.0], boxes[0], [50.0, 0.0, 10.0, 10.0]]
    found = [here | {"bbox": box, "score": 0.9 - 0.1 * k} for k, box in enumerate(moved)]
    agree([5], truth, found)
    assert by_pycocotools([5], truth, found)["AP50"] == pytest.approx(100.0)
