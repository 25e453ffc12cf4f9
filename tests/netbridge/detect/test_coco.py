"""COCO's format is read as it is meant, and average precision is the one of pycocotools."""

import json
import shutil
import zipfile

import pytest
import torch

from netbridge import detect
from netbridge.detect.coco import TEST, TRAIN
from netbridge.detect.evaluation import as_results
from netbridge.detect.heads import Detections
from netbridge.detect.scenes import SceneBatches, Shown, common_size, size_within, to_test
from netbridge.train import Recipe
from tests.netbridge.detect.scenes_of_shapes import scenes

pytest.importorskip("pycocotools")
IMAGES = [
    {"id": 5, "file_name": "a.png", "width": 40, "height": 30},
    {"id": 9, "file_name": "b.png", "width": 20, "height": 30},
]
CATEGORIES = [{"id": 7, "name": "late"}, {"id": 2, "name": "early"}]


def annotation(number, image, box, category=7, crowd=0):
    area = box[2] * box[3]
    return {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": area, "iscrowd": crowd}


def written(root, annotations, images=IMAGES):
    """A root whose two parts hold these annotations; there are no pictures."""
    (root / "annotations").mkdir(exist_ok=True)
    record = {"images": images, "annotations": annotations, "categories": CATEGORIES}
    for part in (TRAIN, TEST):
        (root / "annotations" / f"instances_{part}.json").write_text(json.dumps(record))
    return root


def changed(root, part=TEST, **records):
    """The annotations of one part with other entries."""
    path = root / "annotations" / f"instances_{part}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | records))
    return root


BOX = annotation(1, 5, [1.0, 2.0, 10.0, 5.0])


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ({"categories": [{"id": 7, "name": "early"}]}, "category 7 of val2017 is early, and late in train2017"),
        ({"categories": [*CATEGORIES, {"id": 8, "name": "more"}]}, "category 8 of val2017 is more, and no category in"),
        ({"categories": [*CATEGORIES, CATEGORIES[0]]}, "val2017.json: two of `categories` have the number 7"),
        ({"images": [*IMAGES, IMAGES[0]]}, "val2017.json: two of `images` have the number 5"),
        ({"images": [{"id": 5, "file_name": "a.png"}]}, "entry 0 of `images` has no width and no height"),
        ({"annotations": [{"image_id": 5, "category_id": 7}]}, "entry 0 of `annotations` has no bbox"),
        ({"annotations": [BOX | {"category_id": 8}]}, "annotation 1 of picture 5 has category 8"),
        (
            {"annotations": [BOX | {"bbox": [1, 2, 3]}]},
            r"annotation 1 of picture 5 .* the box \[1, 2, 3\]; a box is four",
        ),
        ({"annotations": [BOX | {"bbox": [float("nan"), 0, 4, 4]}]}, "annotation 1 of picture 5 .* four numbers"),
        ({"annotations": [BOX | {"image_id": 6}]}, "annotation 1 of val2017 belongs to picture 6, which is not there"),
    ],
)
def test_annotations_that_contradict_themselves_are_named(records, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        detect.load(changed(written(tmp_path, [BOX]), **records))


def test_a_picture_of_another_size_than_its_annotations_is_refused(tmp_path):
    """Its boxes would lie elsewhere."""
    root = detect.shapes(tmp_path, train=1, test=1, size=64)
    images = json.loads((root / "annotations" / f"instances_{TEST}.json").read_text())["images"]
    data = detect.load(changed(root, images=[image | {"width": 2 * image["width"]} for image in images]))
    with pytest.raises(ValueError, match=r"a picture of 64 x 64 pixels, but its annotations are for 128 x 64"):
        data.test.picture(0)


def test_classes_boxes_and_crowds_are_read(tmp_path):
    data = detect.load(
        written(
            tmp_path,
            [
                annotation(1, 5, [1.0, 2.0, 10.0, 5.0]),
                annotation(2, 5, [30.0, 20.0, 20.0, 20.0], category=2),  # juts out over both edges
                annotation(3, 5, [0.0, 0.0, 20.0, 20.0], crowd=1),
                annotation(4, 5, [3.0, 3.0, 0.5, 9.0]),  # narrower than a pixel
                annotation(5, 9, [3.0, 3.0, 9.0, 0.0]),
            ],
        )
    )
    assert (data.name, data.categories, data.names) == ("coco", (2, 7), ("early", "late"))
    assert data.train_count == 1  # the other picture shows nothing
    assert len(data.test) == 2
    truth = data.train.truths[0]
    assert truth.boxes.tolist() == [[1.0, 2.0, 11.0, 7.0], [30.0, 20.0, 40.0, 30.0]]
    assert truth.labels.tolist() == [1, 0]
    assert truth.crowds.tolist() == [[0.0, 0.0, 20.0, 20.0]]
    assert truth.size == (30, 40)


def test_what_is_wrong_with_files_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no annotations/instances_train2017\.json"):
        detect.load(tmp_path)
    written(tmp_path, [annotation(1, 77, [0.0, 0.0, 5.0, 5.0])])
    with pytest.raises(ValueError, match="annotation 1 of train2017 belongs to picture 77"):
        detect.load(tmp_path)
    path = tmp_path / "annotations" / f"instances_{TRAIN}.json"
    path.write_text('{"images": []}')
    with pytest.raises(ValueError, match="annotations, categories missing"):
        detect.load(tmp_path)
    path.write_text('{"images": [')
    with pytest.raises(ValueError, match="damaged or cut short"):
        detect.load(tmp_path)
    with pytest.raises(ValueError, match=r"at least `short`: 800, 10"):
        detect.load(tmp_path, long=10)


def test_a_picture_that_is_not_there_is_named(tmp_path):
    data = detect.load(written(tmp_path, [annotation(1, 5, [1.0, 2.0, 10.0, 5.0])]))
    (tmp_path / TRAIN).mkdir()
    with pytest.raises(ValueError, match=r"a\.png: no picture that can be read"):
        detect.load(tmp_path).train.picture(0)
    assert data.train.place.suffix == ".zip"


def test_pictures_in_a_zip_are_those_of_the_folder(tmp_path):
    root = detect.shapes(tmp_path, train=2, test=1, size=64)
    folder = [detect.load(root).train.picture(number).tobytes() for number in range(2)]
    with zipfile.ZipFile(root / f"{TRAIN}.zip", "w") as archive:
        for path in (root / TRAIN).iterdir():
            archive.write(path, f"{TRAIN}/{path.name}")
    shutil.rmtree(root / TRAIN)
    packed = detect.load(root)
    assert packed.train.place.suffix == ".zip"
    assert [packed.train.picture(number).tobytes() for number in range(2)] == folder


def test_made_up_scenes_depend_on_the_seed_alone(tmp_path):
    def content(root):
        return {path.name: path.read_bytes() for path in sorted(root.rglob("*.*"))}

    one, same, other, more = (
        detect.shapes(tmp_path / str(k), train, 1, 64, seed)
        for k, (train, seed) in enumerate([(2, 0), (2, 0), (2, 1), (3, 0)])
    )
    assert content(one) == content(same) != content(other)
    assert torch.equal(detect.load(one).train.truths[1].boxes, detect.load(more).train.truths[1].boxes)
    with pytest.raises(FileExistsError):
        detect.shapes(tmp_path / "0")
    with pytest.raises(ValueError, match="`size` at least 32, got 400, 100, 16"):
        detect.shapes(tmp_path / "9", size=16)


@pytest.mark.parametrize(
    ("size", "shown"),
    [((480, 640), (800, 1067)), ((640, 480), (1067, 800)), ((100, 1000), (133, 1333)), ((1, 9999), (1, 1333))],
)
def test_pictures_keep_their_shape(size, shown):
    assert size_within(*size, 800, 1333) == shown


def test_a_batch_is_padded_at_the_right_and_below(tmp_path):
    data = scenes(tmp_path, test=2)
    assert common_size([(30, 40), (64, 5)], 32) == (64, 64)
    data = detect.load(tmp_path / "coco", short=50, multiple=32)
    ((numbers, images, sizes),) = to_test(data, 4)
    assert (numbers, tuple(images.shape), sizes) == ([0, 1], (2, 3, 64, 64), [(50, 50)] * 2)
    assert not images[:, :, 50:].any()
    assert not images[:, :, :, 50:].any()
    assert images[:, :, :50, :50].any()


def test_batches_depend_on_seed_and_epoch_alone(tmp_path):
    data = scenes(tmp_path, train=8)
    recipe = Recipe("some", 1, 4)

    def batches(seed, epoch, workers=0, start=0):
        found = SceneBatches(data, recipe, workers).epoch(seed, epoch, start=start)
        return [(images, [truth.boxes for truth in truths]) for images, truths in found]

    def same(one, other):
        return all(torch.equal(a, b) and all(map(torch.equal, x, y)) for (a, x), (b, y) in zip(one, other, strict=True))

    once = batches(0, 0)
    assert len(once) == 2
    assert same(once, batches(0, 0, workers=1))
    assert same(once[1:], batches(0, 0, start=1))
    assert not same(once, batches(0, 1))
    halves = [list(SceneBatches(data, recipe).epoch(0, 0, rank, 2)) for rank in (0, 1)]
    for number, (images, _) in enumerate(once):
        assert torch.equal(images, torch.cat([half[number][0] for half in halves]))


def test_a_mirrored_picture_has_mirrored_boxes(tmp_path):
    shown = Shown(scenes(tmp_path, size=64).train, 64, 64)
    pixels, truth = shown[0, False]
    flipped, mirrored = shown[0, True]
    assert (flipped == pixels[:, ::-1]).all()
    left, _, right, _ = mirrored.boxes.T
    assert torch.equal(64 - right, truth.boxes[:, 0])
    assert torch.equal(64 - left, truth.boxes[:, 2])


def result(image, box, score, category=7):
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def test_the_truth_scores_all_and_nothing_scores_nothing(tmp_path):
    data = scenes(tmp_path, test=4)
    truth = [one | {"score": 0.5} for one in data.test.annotations if not one["iscrowd"]]
    found = detect.average_precision(data, truth)
    assert set(found.values()) == {100.0, None}  # no object of 64 x 64 pixels is larger than 96 x 96
    assert found["APL"] is None
    assert set(detect.average_precision(data, []).values()) == {0.0, None}


def test_average_precision_is_that_of_a_hand_computed_case(tmp_path):
    """Two objects. The best detection is right, the next one wrong, the third overlaps by 3/5 with the other object.

    At overlaps up to 0.6 precision is 1 up to a recall of 1/2 and 2/3 beyond: over COCO's 101 recalls (51 + 50 2/3) /
    101. Above it is 1 up to 1/2 and 0 beyond: 51 / 101.
    """
    boxes = [[0.0, 0.0, 10.0, 10.0], [20.0, 10.0, 10.0, 10.0]]
    data = detect.load(written(tmp_path, [annotation(k + 1, 5, box) for k, box in enumerate(boxes)]))
    found = detect.average_precision(
        data,
        [result(5, boxes[0], 0.9), result(5, [0.0, 20.0, 5.0, 5.0], 0.8), result(5, [20.0, 10.0, 6.0001, 10.0], 0.7)],
    )
    low, high = (51 + 50 * 2 / 3) / 101, 51 / 101
    assert found["AP50"] == pytest.approx(100 * low, abs=1e-6)
    assert found["AP75"] == pytest.approx(100 * high, abs=1e-6)
    assert found["AP"] == pytest.approx(100 * (3 * low + 7 * high) / 10, abs=1e-6)  # 0.5, 0.55, 0.6 of ten overlaps


def test_what_lies_in_a_crowd_does_not_count_against_a_detector(tmp_path):
    single, crowd = annotation(1, 5, [0.0, 0.0, 10.0, 10.0]), annotation(2, 5, [20.0, 0.0, 20.0, 30.0], crowd=1)
    inside = [result(5, [22.0, 2.0, 8.0, 8.0], 0.9), result(5, single["bbox"], 0.5)]
    alone = detect.load(written(tmp_path, [single]))
    assert detect.average_precision(alone, inside)["AP"] == pytest.approx(50.0)
    crowded = detect.load(written(tmp_path, [single, crowd]))
    assert detect.average_precision(crowded, inside)["AP"] == pytest.approx(100.0)


def test_detections_are_given_in_pixels_of_the_stored_picture(tmp_path):
    data = detect.load(written(tmp_path, [annotation(1, 5, [1.0, 2.0, 10.0, 5.0])]))
    found = Detections(torch.tensor([[2.0, 4.0, 22.0, 14.0]]), torch.tensor([0.5]), torch.tensor([1]))
    (one,) = as_results(data, [0], [found], [(60, 80)])
    assert one == result(5, [1.0, 2.0, 10.0, 5.0], 0.5)
