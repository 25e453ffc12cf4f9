"""Training: the loop is what one would write by hand, its recipes are the papers', and what fails says so."""

import dataclasses
import functools
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from netbridge.train import loop as train
from netbridge.train import recipes
from netbridge.train.augment import Batches
from netbridge.train.journal import header_fields
from netbridge.train.scoring import evaluate
from tests.netbridge.train import runs


class TestRecipes:
    def test_the_papers_rows(self):
        """Table 6 of the StepNet paper, Tables 10 and 11 of the ASR paper."""
        paper = recipes.recipe("paper")
        assert (paper.epochs, paper.batch, paper.lr, paper.momentum, paper.weight_decay) == (164, 128, 0.1, 0.9, 1e-4)
        rates = [paper.rate(epoch * 390, 390) for epoch in (0, 80, 81, 121, 122, 163)]
        assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])
        vgg = recipes.recipe("paper-vgg")
        assert [vgg.rate(e, 1) for e in (59, 60, 160)] == pytest.approx([0.1, 0.02, 0.0008])
        assert recipes.recipe("paper-stl10").batch == 16
        assert recipes.recipe("imagenet").drops == recipes.recipe("imagenet-256").drops == (30, 60, 90)
        vit = recipes.recipe("imagenet-vit")
        assert (vit.optimizer, vit.lr, vit.weight_decay, vit.epochs, vit.batch) == ("adamw", 5e-4, 5e-2, 300, 256)

    @settings(deadline=None)
    @given(st.sampled_from(list(recipes.RECIPES)), st.integers(1, 40))
    def test_rates_are_positive_and_never_above_the_recipes(self, name, steps):
        one = recipes.recipe(name)
        rates = [one.rate(step, steps) for step in range(one.epochs * steps)]
        assert all(0 < rate <= one.lr * (1 + 1e-12) for rate in rates)
        if one.schedule != "steps":
            assert rates[-1] < 0.05 * one.lr or one.epochs * steps < 60

    def test_a_triangle_rises_and_falls(self):
        one = recipes.recipe("short", epochs=4, lr=1.0, peak=0.25)
        assert [one.rate(step, 2) for step in (0, 1, 2, 5, 8)] == pytest.approx([0.2, 0.6, 1.0, 0.5, 0.0])

    @settings(deadline=None)
    @given(st.integers(16, 96), st.integers(1, 60))
    def test_sizes_grow_to_the_whole(self, full, epochs):
        one = recipes.recipe("short", epochs=epochs)
        sizes = [one.size(epoch, full) for epoch in range(epochs)]
        assert sizes == sorted(sizes)
        assert sizes[-1] == full or epochs < 3
        assert all(size % 4 == 0 or size == full for size in sizes)

    def test_wrong_recipes(self):
        with pytest.raises(ValueError, match=r"`recipe` must be one of .*'shortest'"):
            recipes.recipe("shortest")
        with pytest.raises(ValueError, match="`epochs` must be at least 1, got 0"):
            recipes.recipe("short", epochs=0)
        with pytest.raises(ValueError, match="`flip` must be one of"):
            recipes.recipe("short", flip="always")


class TestLoop:
    def test_it_is_the_loop_one_would_write(self):
        """Nesterov SGD by hand, in float64, over the same pictures."""
        data, changes = runs.few(), {"average": False, "small": (), "epochs": 2}
        got = runs.run(dtype=torch.float64, images=data, changes=changes)
        recipe, net = runs.recipe(**changes), runs.fresh().double().train()
        batches = Batches(data.train_images, data.train_labels, data.mean, data.std, recipe, dtype=torch.float64)
        velocity = {}
        for epoch in range(2):
            for number, (images, labels) in enumerate(batches.epoch(0, epoch)):
                net.zero_grad()
                F.cross_entropy(net(images), labels).backward()
                rate = recipe.rate(epoch * len(batches) + number, len(batches))
                with torch.no_grad():
                    for name, x in net.named_parameters():
                        slope = x.grad + (recipe.weight_decay * x if x.ndim > 1 else 0)
                        velocity[name] = recipe.momentum * velocity.get(name, 0) + slope
                        x -= rate * (slope + recipe.momentum * velocity[name])
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(got.state_dict()[name], tensor, rtol=1e-9, atol=1e-11)

    def test_weights_return_to_their_average(self):
        """At the end the network is the average, which lies elsewhere than the last weights."""
        with_average = runs.run(changes={"average": True})
        without = runs.run(changes={"average": False})
        assert not runs.same(with_average, without)
        assert runs.same(with_average, runs.run(changes={"average": True}))

    def test_seeds_differ(self):
        assert not runs.same(runs.run(seed=0), runs.run(seed=1))

    @pytest.mark.parametrize("controller", ["stepnet", "dia", "iebn"])
    def test_it_trains_any_controller(self, controller):
        net = runs.run(controller=controller, changes={"epochs": 1})
        assert all(bool(torch.isfinite(x).all()) for x in net.parameters())

    @pytest.mark.parametrize("device", ["cuda:7", "gpu"])
    def test_a_device_that_is_not_there_is_named(self, device):
        if device == "cuda:7" and torch.cuda.device_count() > 7:
            pytest.skip("this machine has eight GPUs")
        with pytest.raises(ValueError, match=f"`device` = '{device}' cannot be used here"):
            runs.run(device=device)

    def test_equal_parts_only(self):
        with pytest.raises(ValueError, match="`batch` = 16 must divide into 3 equal parts"):
            runs.run(parts=3)

    @pytest.mark.slow
    def test_digits_are_learnt(self):
        from netbridge.data import datasets as data

        digits = data.load("digits")
        net = train.train(runs.fresh("constant"), digits, recipes.recipe("digits", epochs=8), device="cpu", quiet=True)
        assert net.about["test_accuracy"] > 0.97
        assert evaluate(net, digits)["test_errors"] == net.about["test_errors"]


class TestWhatIsLeft:
    def test_checkpoint_and_log(self, tmp_path):
        path = tmp_path / "se.safetensors"
        trained = runs.run(path)
        net, data = nb.load(path), runs.few()
        assert runs.same(net, trained)
        assert net.normalisation == data.normalisation
        wanted = {"controller": "se", "depth": 8, "seed": 0, "recipe": "short", "dataset": "digits", "epochs": 3}
        assert wanted.items() <= net.about.items()
        errors = sum(
            int(net(net.normalise(image[None] / 255)).argmax()) != int(label)
            for image, label in zip(data.test_images, data.test_labels, strict=True)
        )
        assert net.about["test_errors"] == errors
        assert net.about["test_accuracy"] == pytest.approx(1 - errors / 32)
        head, *epochs = [json.loads(text) for text in path.with_suffix(".jsonl").read_text().splitlines()]
        assert head["recipe"]["epochs"] == 3
        assert [record["epoch"] for record in epochs] == [1, 2, 3]
        assert ["test_accuracy" in record for record in epochs] == [False, True, True]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["se.jsonl", "se.safetensors"]

    def test_a_network_describes_itself(self):
        about = [header_fields(nb.resnet(depth, controller=c)) for depth, c in ((20, "stepnet"), (164, "se"))]
        assert about == [
            {"controller": "stepnet", "depth": 20, "width": 16},
            {"controller": "se", "depth": 164, "width": 16},
        ]
        assert header_fields(runs.fresh("constant"))["controller"] == "constant"
        partly = nb.resnet(20, controller=nb.asr("se"), on=[1])
        assert header_fields(partly)["controller"] == '{"module": "se", "name": "asr"}'

    def test_nan_stops_with_a_report(self, tmp_path):
        path = tmp_path / "se.safetensors"
        with pytest.raises(train.Diverged, match=r"epoch 1, step \d+ of 6, at learning rate .*lower rate"):
            runs.run(path, changes={"lr": 1e30})
        assert not path.exists()
        assert "diverged" in json.loads(path.with_suffix(".jsonl").read_text().splitlines()[-1])

    @pytest.mark.parametrize("scale", [1.0, 1e25])
    def test_statistics_that_overflow_stop_it_before_anybody_looks(self, scale):
        class Large(nn.Module):
            """Its batch variance overflows in single precision, which the loss does not show."""

            def __init__(self):
                super().__init__()
                self.norm, self.head = nn.BatchNorm2d(3), nn.Linear(3, 10)
                self.register_buffer("mask", torch.tensor([0.0, -math.inf]))  # infinite from the beginning

            def forward(self, x):
                return self.head(self.norm(x * scale if self.training else x).mean((2, 3)))

        looked = []
        run = functools.partial(train.train, Large(), runs.few(), runs.recipe(epochs=1), quiet=True, device="cpu")
        if scale > 1:
            with pytest.raises(train.Diverged, match=r"does not hold numbers .* 1 tensors .* norm.running_var first"):
                run(on_epoch=lambda net, record: looked.append(record))
        else:
            run(on_epoch=lambda net, record: looked.append(record))
        assert len(looked) == (scale == 1)

    def test_nan_pictures_stop_it_before_anything_is_kept(self, tmp_path):
        data = runs.few()
        broken = dataclasses.replace(data, std=(math.nan,) * 3)
        with pytest.raises(train.Diverged, match="no number any more in epoch 1"):
            runs.run(tmp_path / "a.safetensors", images=broken)
        assert not (tmp_path / "a.resume").exists()
