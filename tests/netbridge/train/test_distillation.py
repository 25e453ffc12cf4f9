"""A teacher's answers beside the labels: the formula, its limits, and who may teach."""

import pytest
import torch
from torch.nn import functional as F

import netbridge as nb
from netbridge import train
from netbridge.train.distillation import Teacher
from netbridge.train.precision import Precision
from tests.netbridge.train import runs

NAME = "digits/resnet32-width4-se-seed0"


def teacher(data=None, name=NAME, **changes):
    recipe = train.recipe("digits", teacher=name, **changes)
    precision = Precision(train.recipe("paper"), torch.device("cpu"), torch.float32)
    return Teacher(recipe, data or runs.few(), precision, torch.float32)


def shown(count=8):
    data = runs.few()
    return data.normalised(data.test_images[:count]), data.test_labels[:count]


def test_the_loss_is_the_mixture_that_its_authors_write():
    images, labels = shown()
    logits = torch.randn(len(images), 10, generator=torch.Generator().manual_seed(0))
    labelled = F.cross_entropy(logits, labels)
    with torch.no_grad():
        theirs = torch.softmax(nb.pretrained(NAME)(images) / 3, 1)
    met = (theirs * (theirs.log() - torch.log_softmax(logits / 3, 1))).sum(1).mean()
    got = teacher(temperature=3.0, distillation=0.25).loss(images, logits, labelled)
    assert got.item() == pytest.approx((0.75 * labelled + 0.25 * 9 * met).item(), rel=1e-5)


def test_a_student_that_answers_as_its_teacher_has_nothing_to_learn():
    images, _ = shown()
    one = teacher(distillation=1.0)
    logits = one.net(images).detach().requires_grad_()
    loss = one.loss(images, logits, torch.tensor(0.0))
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    assert logits.grad.abs().max() < 1e-6


def test_a_teacher_that_was_shown_other_images_gets_its_own_normalisation(tmp_path):
    net = nb.pretrained(NAME)
    images = torch.rand(4, 3, 16, 16)
    path = nb.save(net, tmp_path / "other.safetensors")
    data = runs.few()
    object.__setattr__(data, "mean", tuple(x + 0.1 for x in data.mean))  # what is trained on is normalised otherwise
    object.__setattr__(data, "std", tuple(2 * x for x in data.std))
    one = teacher(data, str(path), distillation=1.0)
    given = (images - torch.tensor(data.mean)[:, None, None]) / torch.tensor(data.std)[:, None, None]
    logits = net(net.normalise(images)).detach()
    assert one.loss(given, logits, torch.tensor(0.0)).item() == pytest.approx(0.0, abs=1e-5)


def test_who_cannot_teach_is_told():
    with pytest.raises(ValueError, match=r"`teacher` = 'nobody' is neither a file .* nor a name that nb\.pretrained"):
        teacher(name="nobody")
    data = runs.few()
    object.__setattr__(data, "names", ("a", "b"))
    with pytest.raises(ValueError, match="tells 10 classes apart, digits has 2"):
        teacher(data)


def test_another_teacher_under_the_same_name_is_another_run(tmp_path):
    path, file = tmp_path / "net.safetensors", tmp_path / "teacher.safetensors"
    changes = {"teacher": str(file), "epochs": 2, "evaluate_every": 9}
    nb.save(nb.pretrained(NAME), file)
    runs.run(path, changes=changes, images=runs.few(32, 8), stop_after=1)
    nb.save(nb.pretrained("digits/resnet32-width4-se-seed1"), file)
    with pytest.raises(ValueError, match="belongs to a run with another teacher"):
        runs.run(path, changes=changes, images=runs.few(32, 8))
