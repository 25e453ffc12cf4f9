"""Any module that maps images to logits is trained, watched and resumed; what cannot be is refused in words."""

import copy
import json

import pytest
import safetensors.torch
import torch
from torch import nn

import netbridge as nb
from netbridge import data, train
from netbridge.train.augment import Batches
from netbridge.train.stepping import make_optimizer
from tests.netbridge.train import runs


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(torch.relu(self.bn(self.conv(x))))


class Theirs(nn.Module):
    """A residual network as others write it."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 8, 3, 2, padding=1), nn.Sequential(Residual(), Residual())
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def theirs(path=None, seed=0, **options):
    torch.manual_seed(seed)
    return train.train(Theirs(), runs.few(), runs.recipe(), seed, path, device="cpu", quiet=True, **options)


class TestAnyModule:
    def test_it_is_trained_and_written_down(self, tmp_path):
        net = theirs(tmp_path / "net.safetensors")
        assert net.about["network"] == "Theirs"
        assert net.normalisation == runs.few().normalisation
        assert 0 <= net.about["test_accuracy"] <= 1
        weights = safetensors.torch.load_file(tmp_path / "net.safetensors")
        again = Theirs()
        again.load_state_dict(weights)
        assert runs.same(again, net)
        with pytest.raises(ValueError, match=r"weights of a .*Theirs, which is no network of netbridge"):
            nb.load(tmp_path / "net.safetensors")

    def test_it_goes_on_to_the_bit_and_is_loaded_when_it_is_finished(self, tmp_path):
        whole = theirs()
        theirs(tmp_path / "net.safetensors", stop_after=1)
        assert runs.same(theirs(tmp_path / "net.safetensors"), whole)
        assert runs.same(theirs(tmp_path / "net.safetensors", seed=0), whole)

    def test_another_module_is_refused(self, tmp_path):
        theirs(tmp_path / "net.safetensors", stop_after=1)
        with pytest.raises(ValueError, match=r"another config \(\{'class'"):
            runs.run(tmp_path / "net.safetensors")

    @pytest.mark.parametrize("stop_after", [1, None])
    def test_another_activation_between_the_same_weights_is_another_run(self, stop_after, tmp_path):
        path, net = tmp_path / "net.safetensors", Theirs()
        theirs(path, stop_after=stop_after)
        net.blocks[0].drop = nn.GELU()
        with pytest.raises(ValueError, match="another config"):
            train.train(net, runs.few(), runs.recipe(), 0, path, device="cpu", quiet=True)

    def test_batches_normalised_in_other_parts_are_another_run(self, tmp_path):
        theirs(tmp_path / "net.safetensors", stop_after=1)
        with pytest.raises(ValueError, match="another parts"):
            theirs(tmp_path / "net.safetensors", parts=2)

    def test_a_recipe_by_its_name(self):
        net = train.train(Theirs(), runs.few(128), "digits", device="cpu", quiet=True, stop_after=1)
        assert not net.training


class Moving(nn.Module):
    """Subtracts a running mean that each pass puts into a new tensor."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 10)
        self.register_buffer("centre", torch.zeros(3, dtype=torch.float64))

    def forward(self, x):
        features = x.abs().mean((2, 3))
        if self.training:
            self.centre = 0.9 * self.centre + 0.1 * features.detach().mean(0)
        return self.head(features - self.centre)


def test_buffers_that_a_pass_replaces_are_those_of_every_part():
    """Each part starts from the same buffers, and their mean remains: by hand, with two networks for two parts."""
    how = runs.recipe(epochs=1, average=False, smoothing=0.0, small=(), optimizer="sgd", clip=0.0)
    torch.manual_seed(0)
    net = Moving()
    both = [copy.deepcopy(net).double() for _ in range(2)]
    train.train(net, runs.few(), how, 0, device="cpu", quiet=True, dtype=torch.float64, parts=2)
    few = runs.few()
    batches = Batches(few.train_images, few.train_labels, few.mean, few.std, how, dtype=torch.float64)
    optimizers = [make_optimizer(one, how) for one in both]
    for number, (images, labels) in enumerate(batches.epoch(0, 0)):
        for one, x, y in zip(both, images.split(8), labels.split(8), strict=True):
            one.zero_grad()
            nn.functional.cross_entropy(one(x), y).backward()
        pairs = zip(both[0].parameters(), both[1].parameters(), strict=True)
        mean = [(p.grad + q.grad) / 2 for p, q in pairs]
        centre = (both[0].centre + both[1].centre) / 2
        for one, optimizer in zip(both, optimizers, strict=True):
            one.centre = centre
            for parameter, gradient in zip(one.parameters(), mean, strict=True):
                parameter.grad = gradient
            for group in optimizer.param_groups:
                group["lr"] = how.rate(number, 6)
            optimizer.step()
    assert torch.allclose(net.centre, both[0].centre, rtol=1e-12)
    assert torch.allclose(net.head.weight, both[0].head.weight, rtol=1e-9)


class TestOnEpoch:
    def test_what_it_returns_joins_the_log(self, tmp_path):
        images = runs.few()
        shown = images.normalised(images.test_images)

        def stiffness(net, record):
            assert not net.training
            return {"nsi": nb.trace(net, shown).nsi.mean(0).tolist()}

        path = tmp_path / "net.safetensors"
        watched = theirs(path, on_epoch=stiffness)
        assert runs.same(watched, theirs())  # to look changes nothing
        _, *records = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
        assert [len(record["nsi"]) for record in records] == [2, 2, 2]

    def test_what_it_is_given_and_what_it_draws_are_its_own(self):
        def careless(net, record):
            record.clear()
            torch.manual_seed(5)
            net.train()

        watched = theirs(on_epoch=careless)
        assert runs.same(watched, theirs())
        assert 0 <= watched.about["test_accuracy"] <= 1

    @pytest.mark.parametrize(
        ("answer", "error", "words"),
        [
            ([1], TypeError, "`on_epoch` must return None or a dictionary of plain values, got list"),
            ({"nsi": torch.ones(2)}, TypeError, r"`on_epoch` must return plain numbers.*tolist\(\)"),
            ({"loss": 1.0, "seconds": 2}, ValueError, "`on_epoch` returned loss, seconds, which the record has"),
        ],
    )
    def test_an_answer_that_does_not_fit_the_log(self, answer, error, words, tmp_path):
        with pytest.raises(error, match=words):
            theirs(tmp_path / "net.safetensors", on_epoch=lambda net, record: answer)

    @pytest.mark.parametrize("stop", ["behind an epoch", "within an epoch"])
    def test_what_it_remembers_is_kept_with_the_training(self, stop, tmp_path):
        path = tmp_path / "net.safetensors"
        theirs(tmp_path / "whole.safetensors", on_epoch=Movement())
        if stop == "behind an epoch":
            theirs(path, on_epoch=Movement(), stop_after=2)
        else:
            with pytest.raises(train.Interrupted):
                theirs(path, on_epoch=Movement(stop=2), checkpoint_minutes=0)
        theirs(path, on_epoch=Movement())
        moved = [
            [json.loads(line).get("moved") for line in place.with_suffix(".jsonl").read_text().splitlines()[1:]]
            for place in (path, tmp_path / "whole.safetensors")
        ]
        assert moved[0] == moved[1]
        assert [one is None for one in moved[0]] == [True, False, False]

    def test_it_remembers_tensors_only(self, tmp_path):
        class Wrong(Movement):
            def state_dict(self):
                return {"count": 3}

        with pytest.raises(TypeError, match="the `state_dict` of `on_epoch` must hold tensors; `count` is int"):
            theirs(tmp_path / "net.safetensors", on_epoch=Wrong())


class Movement:
    """How far a weight went since the epoch before, which needs the weight of the epoch before."""

    def __init__(self, stop=None):
        self.before, self.stop = None, stop

    def __call__(self, net, record):
        before, self.before = self.before, net.head.weight.detach().clone()
        if record["epoch"] == self.stop:
            raise KeyboardInterrupt  # the last state is of the epoch's last step, before this look
        return None if before is None else {"moved": float((self.before - before).norm())}

    def state_dict(self):
        return {} if self.before is None else {"weight": self.before}

    def load_state_dict(self, state):
        self.before = state.get("weight")


class TestWords:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (torch.utils.data.DataLoader([1]), "`data` must be a netbridge.data.Dataset, got DataLoader.*train_images"),
            ((torch.zeros(3), torch.zeros(3)), "`data` must be a netbridge.data.Dataset, got tuple"),
        ],
    )
    def test_data_of_another_kind(self, given, words):
        with pytest.raises(TypeError, match=words):
            train.train(Theirs(), given, runs.recipe())

    @pytest.mark.parametrize("outputs", [2, 11])
    def test_another_number_of_outputs_than_of_classes(self, outputs):
        with pytest.raises(ValueError, match=rf"`net` has {outputs} outputs, and `data` \(digits\) has 10 classes"):
            train.train(Theirs(outputs), runs.few(), runs.recipe(), device="cpu", quiet=True)

    def test_no_logits(self):
        with pytest.raises(TypeError, match=r"`net` must return logits.*returned shape \(16, 8, \d+, \d+\)"):
            train.train(nn.Conv2d(3, 8, 3), runs.few(), runs.recipe(), device="cpu", quiet=True)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"seed": 1.5}, "`seed` must be a whole number of at most 2.40, got 1.5"),
            ({"seed": 2**62}, "`seed` must be a whole number"),
            ({"parts": 0}, "`parts` must be a whole number from 1 on, got 0"),
            ({"workers": -1}, "`workers` must be a whole number from 0 on, got -1"),
            ({"stop_after": 1.5}, "`stop_after` must be a whole number from 0 on, got 1.5"),
        ],
    )
    def test_numbers_that_make_no_sense(self, options, words):
        with pytest.raises(ValueError, match=words):
            train.train(Theirs(), runs.few(), runs.recipe(), **options)

    def test_nothing_to_train(self):
        with pytest.raises(ValueError, match="`net` has nothing to train: no parameter of Theirs requires a gradient"):
            train.train(Theirs().requires_grad_(False), runs.few(), runs.recipe())

    def test_no_module_and_no_recipe(self):
        with pytest.raises(TypeError, match="`net` must be a torch module, got str"):
            train.train("resnet18", runs.few(), "short")
        with pytest.raises(TypeError, match="`recipe` must be a Recipe or the name of one"):
            train.train(Theirs(), runs.few(), {"lr": 0.1})
        with pytest.raises(ValueError, match=r"`recipe` must be one of .*'shortest'"):
            train.train(Theirs(), runs.few(), "shortest")

    def test_a_recipes_field_that_does_not_exist(self):
        with pytest.raises(TypeError, match="a recipe has no field `epoch`; did you mean `epochs`"):
            train.recipe("short", epoch=3)
        with pytest.raises(ValueError, match="`border` must be one of"):
            train.recipe("short", border="grey")

    def test_data_of_ones_own_in_two_lines(self):
        images, labels = torch.randint(0, 256, (60, 3, 8, 8), dtype=torch.uint8), torch.arange(60) % 3
        parts = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
        net = train.train(
            Theirs(3), data.dataset("mine", parts, "abc"), runs.recipe(epochs=1), device="cpu", quiet=True
        )
        assert net.about["dataset"] == "mine"
