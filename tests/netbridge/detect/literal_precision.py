"""COCO's average precision a second time, by its definition and in plain Python, to hold pycocotools against.

The definition is that of COCO's page on evaluation, with four rules that only its code states: a detection prefers
objects that count to ones that do not, of two equal overlaps it takes the later object, precision is read at the first
detection that reaches a recall, and a picture contributes its 100 best detections of a class.
"""

import math

import numpy as np

OVERLAPS = np.linspace(0.5, 0.95, 10).tolist()
RECALLS = np.linspace(0.0, 1.0, 101).tolist()
SIZES = {"AP": (0, 1e10), "APS": (0, 32**2), "APM": (32**2, 96**2), "APL": (96**2, 1e10)}  # pixels; both ends belong
MOST = 100  # detections of one class in one picture


def literal_precision(images: list[int], objects: list[dict], found: list[dict]) -> dict[str, float | None]:
    """AP, AP50, AP75, APS, APM and APL in per cent; None where no object is of that size.

    images   the pictures' numbers
    objects  image_id, category_id, bbox (left, top, width, height), area, iscrowd
    found    image_id, category_id, bbox, score
    """
    classes = sorted({one["category_id"] for one in objects})
    numbers: dict[str, float | None] = {}
    for name, size in SIZES.items():
        table = {}
        for overlap in OVERLAPS:
            kinds = [precision_of(kind, images, objects, found, overlap, size) for kind in classes]
            table[round(overlap, 2)] = [one for one in kinds if one is not None]
        numbers[name] = mean([one for kinds in table.values() for one in kinds])
        if name == "AP":
            numbers |= {"AP50": mean(table[0.5]), "AP75": mean(table[0.75])}
    return numbers


def mean(values: list[float]) -> float | None:
    return 100 * math.fsum(values) / len(values) if values else None


def precision_of(kind, images, objects, found, overlap, size) -> float | None:
    """The mean precision over COCO's recalls of one class at one overlap; None where no object of it counts."""
    answers, there = [], 0  # (score, is it right?) of every detection that counts; objects that count
    for image in sorted(images):
        here = [one for one in objects if (one["image_id"], one["category_id"]) == (image, kind)]
        here = [(one, bool(one["iscrowd"]) or not size[0] <= one["area"] <= size[1]) for one in here]
        there += sum(not aside for _, aside in here)
        own = [one for one in found if (one["image_id"], one["category_id"]) == (image, kind)]
        answers += judged(here, sorted(own, key=lambda one: -one["score"])[:MOST], overlap, size)
    if not there:
        return None
    answers.sort(key=lambda answer: -answer[0])
    right, curve = 0, []  # (recall, precision) after every detection
    for count, (_, good) in enumerate(answers, 1):
        right += good
        curve.append((right / there, right / count))
    best = [max((precision for _, precision in curve[k:]), default=0.0) for k in range(len(curve))]
    reached = [next((best[k] for k, (recall, _) in enumerate(curve) if recall >= wanted), 0.0) for wanted in RECALLS]
    return math.fsum(reached) / len(reached)


def judged(objects, found, overlap, size) -> list[tuple[float, bool]]:
    """(score, is it right?) of the detections of one picture, best first; what neither helps nor harms is left out."""
    taken: set[int] = set()
    answers = []
    for one in found:
        area = one["bbox"][2] * one["bbox"][3]
        aside = not size[0] <= area <= size[1]
        place = None
        for counts in (True, False):  # objects that count are looked at first, and the others only without one
            closest = overlap
            for k, (thing, ignored) in enumerate(objects):
                if ignored == counts or (k in taken and not thing["iscrowd"]):
                    continue
                shared = overlap_of(one["bbox"], thing["bbox"], bool(thing["iscrowd"]))
                if shared >= closest:
                    place, closest = k, shared
            if place is not None:
                taken.add(place)
                aside = not counts
                break
        if not aside:
            answers.append((one["score"], place is not None))
    return answers


def overlap_of(box, thing, crowd: bool) -> float:
    """What two boxes share over what both cover; of a crowd, over what the first covers."""
    across = min(box[0] + box[2], thing[0] + thing[2]) - max(box[0], thing[0])
    down = min(box[1] + box[3], thing[1] + thing[3]) - max(box[1], thing[1])
    if across <= 0 or down <= 0:
        return 0.0
    shared, own = across * down, box[2] * box[3]
    return shared / (own if crowd else own + thing[2] * thing[3] - shared)
