"""How good are the detections? Average precision as COCO defines it, computed by COCO's own code in pycocotools."""

import contextlib
import io

import torch
from torch import nn

from netbridge.detect.coco import Coco
from netbridge.detect.heads import Detections
from netbridge.detect.scenes import to_test
from netbridge.train import distributed

NAMES = ("AP", "AP50", "AP75", "APS", "APM", "APL")  # the order in which pycocotools summarises


def average_precision(data: Coco, results: list[dict]) -> dict[str, float | None]:
    """The six numbers of COCO's tables for detections on the test pictures, in per cent.

    data     whose test pictures were shown
    results  a dictionary for every detection, in COCO's own format: image_id, category_id, bbox (left, top, width,
             height in pixels of the picture as it is stored), score

    An object without an area is as large as its box.

    Returns AP (the mean over classes and over overlaps from 0.5 to 0.95), AP50 and AP75 (at one overlap), APS, APM and
    APL (objects below 32 x 32, up to 96 x 96, and above, in pixels); None where no object is of that size. Raises
    ImportError without pycocotools.

    >>> import tempfile
    >>> from netbridge import detect
    >>> data = detect.load(detect.shapes(tempfile.mkdtemp(), train=1, test=3))
    >>> truth = [one | {"score": 1.0} for one in data.test.annotations]
    >>> detect.average_precision(data, truth)["AP"], detect.average_precision(data, [])["AP"]
    (100.0, 0.0)
    """
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        raise ImportError("average precision needs pycocotools: pip install 'odelab[detect]'.") from None
    truth = COCO()
    truth.dataset = {
        "info": {},
        "images": data.test.images,
        "annotations": [complete(one, number) for number, one in enumerate(data.test.annotations, 1)],
        "categories": [{"id": number, "name": name} for number, name in zip(data.categories, data.names, strict=True)],
    }
    with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints what it does
        truth.createIndex()
        if not any(not one.get("iscrowd") for one in data.test.annotations):
            return dict.fromkeys(NAMES)
        if not results:
            return {name: None if value is None else 0.0 for name, value in sizes_there(data).items()}
        keys = ("image_id", "category_id", "bbox", "score")
        found = truth.loadRes([{key: one[key] for key in keys} for one in results])
        judge = COCOeval(truth, found, "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    numbers = (float(value) for value in judge.stats[: len(NAMES)])
    return {name: 100 * value if value >= 0 else None for name, value in zip(NAMES, numbers, strict=True)}


def complete(annotation: dict, number: int) -> dict:
    """An annotation with all that pycocotools asks for: where they are missing, the area of its box, and no crowd.

    number  from 1 on: pycocotools takes an object whose number is 0 for one that was not found, and of two objects with
            one number it knows the last only
    """
    _left, _top, width, height = annotation["bbox"]
    return {"area": width * height, "iscrowd": 0} | annotation | {"id": number}


def sizes_there(data: Coco) -> dict[str, float | None]:
    """What can be found at all: 100 for every number that is defined on the test pictures."""
    own = [one for one in data.test.annotations if not one.get("iscrowd")]
    return average_precision(data, [one | {"score": 1.0} for one in own])


def as_results(data: Coco, numbers: list[int], found: list[Detections], sizes) -> list[dict]:
    """Detections in COCO's format, in pixels of the pictures as they are stored."""
    results = []
    for number, one, (height, width) in zip(numbers, found, sizes, strict=True):
        image = data.test.images[number]
        across, down = image["width"] / width, image["height"] / height
        for (left, top, right, bottom), score, label in zip(
            one.boxes.tolist(), one.scores.tolist(), one.labels.tolist(), strict=True
        ):
            box = [left * across, top * down, (right - left) * across, (bottom - top) * down]
            results.append(
                {
                    "image_id": image["id"],
                    "category_id": data.categories[label],
                    "bbox": [round(side, 3) for side in box],
                    "score": round(score, 5),
                }
            )
    return results


@torch.no_grad()
def results(
    net: nn.Module, data: Coco, batch: int = 8, device=None, dtype=torch.float32, workers: int = 0
) -> list[dict]:
    """What a detector finds in the test pictures, in COCO's own format; several processes share the pictures.

    net      a `Detector`, which is put into evaluation mode
    data     a `Coco`
    batch    pictures at a time (8)
    device   of the computation; default: where the detector is
    dtype    of the images (float32)
    workers  processes that decode pictures (0: this one does)

    Returns a list of dictionaries with image_id, category_id, bbox and score, which `average_precision` takes and
    COCO's server would take, too; in every process that of all pictures.

    >>> import tempfile, torch, netbridge as nb
    >>> from netbridge import detect
    >>> data = detect.load(detect.shapes(tempfile.mkdtemp(), train=1, test=2, size=64), short=64)
    >>> body = nb.resnet(8, stem="imagenet", widths=(8, 8, 16))
    >>> found = detect.results(detect.Detector(body, data.names, detect.SMALL, 0, False), data)
    >>> {len(one["bbox"]) for one in found} <= {4}
    True
    """
    device = next(net.parameters()).device if device is None else device
    net.eval()
    own = []
    shown = to_test(data, batch, distributed.rank(), distributed.world(), workers, device, dtype)
    for numbers, images, sizes in shown:
        images = images.contiguous(memory_format=torch.channels_last)
        own += as_results(data, numbers, net(images, sizes=sizes), sizes)
    every = [one for part in distributed.gather(own) for one in part]
    return sorted(every, key=lambda one: (one["image_id"], -one["score"]))
