"""The detector: what it matches, what is frozen in it, and that its backbone is the network it was."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import netbridge as nb
from netbridge import detect
from netbridge.detect.anchors import anchor_grid
from netbridge.detect.matching import BACKGROUND, IGNORED, match, sample
from netbridge.detect.scenes import Truth
from tests.netbridge.detect.scenes_of_shapes import detector

NONE = torch.zeros(0, 4)


def truths(*pictures, size=(64, 64)):
    """A truth per picture, from lists of (class, left, top, right, bottom)."""
    found = []
    for rows in pictures:
        table = torch.tensor(rows, dtype=torch.float32).reshape(-1, 5)
        found.append(Truth(table[:, 1:], table[:, 0].long(), NONE, size))
    return found


SOME = ([[0, 4, 4, 40, 40], [2, 30, 20, 60, 60]], [[1, 10, 10, 30, 50]])


def test_anchors_stand_round_the_middle_of_their_position_with_one_area():
    anchors = anchor_grid(2, 3, 8, 4.0, (0.5, 1.0, 2.0)).view(2, 3, 3, 4)
    sides = anchors[..., 2:] - anchors[..., :2]
    torch.testing.assert_close(sides.prod(-1), torch.full((2, 3, 3), 32.0**2))
    torch.testing.assert_close(sides[0, 0, :, 1] / sides[0, 0, :, 0], torch.tensor([0.5, 1.0, 2.0]))
    middles = (anchors[..., 2:] + anchors[..., :2]) / 2
    assert middles[1, 2, 0].tolist() == pytest.approx([20.0, 12.0])


def test_boxes_are_matched_by_their_overlap():
    objects = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
    boxes = torch.tensor([[0, 0, 10, 10], [0, 0, 10, 7.5], [0, 0, 10, 5], [0, 0, 10, 2.0], [50, 50, 60, 60]])
    assert match(boxes, objects, NONE, 0.7, 0.3, False).tolist() == [0, 0, IGNORED, BACKGROUND, BACKGROUND]
    crowd = torch.tensor([[45.0, 45.0, 70.0, 70.0]])
    assert match(boxes, objects, crowd, 0.7, 0.3, False).tolist() == [0, 0, IGNORED, BACKGROUND, IGNORED]
    assert match(boxes[2:], objects, NONE, 0.7, 0.3, True).tolist() == [0, BACKGROUND, BACKGROUND]
    assert match(boxes, NONE, NONE, 0.7, 0.3, True).tolist() == [BACKGROUND] * 5


@given(st.lists(st.sampled_from([IGNORED, BACKGROUND, 0, 1]), max_size=30), st.integers(1, 12), st.integers(0, 99))
def test_a_sample_holds_no_more_objects_than_its_share_and_nothing_ignored(matches, count, seed):
    matches = torch.tensor(matches, dtype=torch.long)
    chosen = sample(matches, count, 0.5, torch.Generator().manual_seed(seed))
    taken = matches[chosen]
    objects, background = int((matches >= 0).sum()), int((matches == BACKGROUND).sum())
    assert int((taken >= 0).sum()) == min(objects, count // 2)
    assert len(taken) == min(count, min(objects, count // 2) + background)
    assert IGNORED not in taken
    assert len(chosen.unique()) == len(chosen)


@pytest.mark.parametrize("controller", ["constant", "se", "eca", "sge", "stepnet"])
def test_features_are_the_states_that_a_classifier_of_the_same_weights_has(controller):
    net = detector(controller).eval()
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        found = net.features(images)
        x = net.backbone.stem(images)
        for stage, maps in zip(net.backbone.stages, found, strict=True):
            x = stage(x)
            assert torch.equal(maps, x)
        assert torch.equal(net.backbone(images), found[-1])


def test_later_stages_leave_the_features_of_earlier_ones_alone():
    for body in (nb.resnet(18, widths=(8, 8, 16, 16)), nb.fold(nb.resnet(18, widths=(8, 8, 16, 16)).eval())):
        net = detect.Detector(body, 2, detect.SMALL, 0, False).eval()
        with torch.no_grad():
            x, copies = net.backbone.stem(torch.ones(1, 3, 64, 64)), []
            for stage in net.backbone.stages:
                x = stage(x)
                copies.append(x.clone())
            assert all(map(torch.equal, net.features(torch.ones(1, 3, 64, 64)), copies))


def test_constant_steps_are_the_plain_backbone_bit_for_bit():
    plain, ones = detector("constant"), detector("constant(1.0)")
    assert all(map(torch.equal, plain.state_dict().values(), ones.state_dict().values()))
    images = torch.randn(2, 3, 64, 64)
    one, other = plain(images, truths(*SOME)), ones(images, truths(*SOME))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("controller", ["constant", "se", "stepnet"])
def test_stiffness_of_the_backbone_is_that_of_the_bare_network(controller):
    net = detector(controller).eval()
    images = torch.randn(3, 3, 64, 64)
    bare = nb.trace(net.backbone, images)
    inside = nb.trace(net, images)
    assert (inside.nsi == bare.nsi).all()
    assert list(inside.names) == [f"backbone.{name}" for name in bare.names]


def test_frozen_parts_keep_their_weights_and_statistics():
    net = detector("stepnet", frozen_stages=1, frozen_norms=True).train()
    before = {name: x.clone() for name, x in net.state_dict().items()}
    optimizer = torch.optim.SGD([x for x in net.parameters() if x.requires_grad], lr=0.05)
    found = net(torch.randn(2, 3, 64, 64), truths(*SOME))
    sum(found[name] for name in found if name != "right").backward()
    optimizer.step()
    changed = {name for name, x in net.state_dict().items() if not torch.equal(x, before[name])}
    assert not any(name.startswith(("backbone.stem", "backbone.stages.0")) for name in changed)
    assert not any("running" in name for name in changed)
    assert any(name.startswith("backbone.stages.1") for name in changed)
    assert {"pyramid.lateral.0.weight", "proposer.score.weight", "head.shift.weight"} <= changed


def test_normalisations_learn_where_nothing_is_frozen():
    net = detector().train()
    before = net.backbone.stem.bn.running_mean.clone()
    net(torch.randn(2, 3, 64, 64), truths(*SOME))
    assert not torch.equal(net.backbone.stem.bn.running_mean, before)


def test_pictures_without_objects_and_with_tiny_ones_have_finite_losses():
    net = detector()
    for pictures in (([], []), ([[0, 5, 5, 6, 6]], [])):
        found = net(torch.randn(2, 3, 64, 64), truths(*pictures))
        total = sum(found[name] for name in found if name != "right")
        net.zero_grad()
        total.backward()
        assert torch.isfinite(total)
        assert all(torch.isfinite(x.grad).all() for x in net.parameters())
    assert not net(torch.randn(2, 3, 64, 64), truths([], []))["regions"].any()


def test_losses_of_a_batch_are_the_means_of_its_pictures():
    net = detector().eval()
    images, found = torch.randn(2, 3, 64, 64), truths(*SOME)

    def seeds():
        return [torch.Generator().manual_seed(k) for k in (3, 4)]

    both = net(images, found, seeds())
    each = [net(images[k : k + 1], found[k : k + 1], seeds()[k : k + 1]) for k in (0, 1)]
    for name in both:
        torch.testing.assert_close(both[name], (each[0][name] + each[1][name]) / 2)


def test_detections_lie_in_their_picture_and_are_sorted():
    net = detector(settings=detect.Settings(features=8, hidden=8, score=0.0, most=30)).eval()
    for one in net(torch.randn(2, 3, 96, 64), sizes=[(50, 60), (96, 64)]):
        assert len(one.boxes) == 30
        assert torch.equal(one.scores, one.scores.sort(descending=True).values)
        assert bool((one.boxes[:, :2] < one.boxes[:, 2:]).all())
    small = net(torch.randn(1, 3, 96, 64), sizes=[(50, 60)])[0]
    assert float(small.boxes[:, 2].max()) <= 60
    assert float(small.boxes[:, 3].max()) <= 50


def test_what_does_not_fit_is_refused():
    body = nb.resnet(8, stem="imagenet", widths=(8, 8, 16))
    with pytest.raises(TypeError, match=r"`backbone` must be a network of nb\.resnet, got Linear"):
        detect.Detector(torch.nn.Linear(2, 2), 3)
    with pytest.raises(ValueError, match="`frozen_stages` must be from 0 to 3, got 4"):
        detect.Detector(body, 3, frozen_stages=4)
    with pytest.raises(ValueError, match="post_activation=True"):
        detect.Detector(nb.resnet(8, post_activation=False), 3)
    with pytest.raises(ValueError, match="`classes` must be at least one"):
        detect.Detector(body, ())
    with pytest.raises(ValueError, match="`features` must be at least 1, got 0"):
        detect.Settings(features=0)
    with pytest.raises(ValueError, match="`anchor_overlaps` ascend"):
        detect.Settings(anchor_overlaps=(0.7, 0.3))
