"""Every trick: the same bits resumed, the same network in parts, and nothing at all at its neutral value."""

import dataclasses
import json

import pytest
import torch

import netbridge as nb
from netbridge import train
from netbridge.train import recipes, stepping
from netbridge.train.augment import Batches
from studies.lab import jobs
from tests.netbridge.train import runs

TRICKS = {
    "mixup": {"mixup": 1.0},
    "cutmix": {"cutmix": 1.0},
    "both": {"mixup": 0.4, "cutmix": 1.0, "smoothing": 0.1},
    "cutout": {"cutout": 6},
    "drop_path": {"drop_path": 0.5},
    "policy": {"policy": "trivial"},
    "ema": {"ema": 0.9, "average": False},
    "sam": {"sam": 0.05},
    "warmup": {"warmup": 0.75},
    "clip": {"clip": 0.1},
    "min_lr": {"min_lr": 0.05},
    "erasing": {"erasing": 0.7},
    "float16": {"float16": True, "bfloat16": False},
}
ALL = {key: value for changes in TRICKS.values() for key, value in changes.items()}
OTHERWISE = [name for name in TRICKS if any(ALL[key] != value for key, value in TRICKS[name].items())]  # than in ALL


def run(changes, path=None, **options):
    """Two epochs of two steps."""
    usual = {"average": False, "small": (), "epochs": 2, "evaluate_every": 9}
    return runs.run(path, changes=usual | changes, **{"images": runs.few(32, 8)} | options)


@pytest.fixture(scope="module")
def plain():
    return run({})


@pytest.mark.parametrize("trick", TRICKS)
def test_it_changes_the_network(trick, plain):
    assert not runs.same(run(TRICKS[trick]), plain)


@pytest.mark.parametrize(
    "changes",
    [
        ALL,
        *(TRICKS[name] if name in OTHERWISE else pytest.param(TRICKS[name], marks=pytest.mark.slow) for name in TRICKS),
    ],
    ids=["all", *TRICKS],
)
def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(changes, tmp_path):
    path = tmp_path / "net.safetensors"
    run(changes, path, stop_after=1)
    torch.manual_seed(99)
    assert runs.same(run(changes, path), run(changes))


NEUTRAL = [{"mixup": 0.0}, {"policy": "none"}, {"clip": 1e9}, {"warmup": 0.0}, {"min_lr": 0.0}]


@pytest.mark.parametrize("changes", [*NEUTRAL, {"tf32": True, "benchmark": True}])
def test_at_its_neutral_value_it_is_not_there(changes, plain):
    assert runs.same(run(changes), plain)


class TestParts:
    """What is drawn is drawn for the whole batch: a part takes its rows, whoever computes it."""

    @pytest.mark.parametrize("trick", ["cutout", "policy", "erasing"])
    def test_images_are_treated_one_by_one(self, trick):
        """Where nothing is normalised over the batch, parts are the whole."""
        changes, nets = TRICKS[trick] | {"average": False, "small": (), "epochs": 1}, []
        for parts in (1, 2, 4):
            torch.manual_seed(0)
            net = nb.resnet(8, norm="layer")
            how = runs.recipe(**changes)
            nets.append(train.train(net, runs.few(32), how, device="cpu", quiet=True, parts=parts, dtype=torch.float64))
        for net in nets[1:]:
            torch.testing.assert_close(net.state_dict(), nets[0].state_dict(), rtol=1e-9, atol=1e-11)


class TestRandomDepth:
    def test_the_step_sizes_are_those_drawn_and_only_while_training(self):
        net, images = runs.fresh("constant", depth=14).eval(), torch.rand(6, 3, 16, 16)
        depth = stepping.RandomDepth(net, 0.5)
        factors = depth.draw_factors(6, seed=1, epoch=2, step=3)
        seen = []

        def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
            seen.append(h)
            return carry

        before = net(images)
        with depth.acting(factors), net.observed(record):
            net(images)
        assert len(seen) == len(net.blocks)
        for h, factor in zip(seen, factors, strict=True):
            assert torch.equal(h.flatten(), factor.float())
        assert set(factors[-1].tolist()) <= {0.0, 2.0}
        assert torch.equal(net(images), before)
        assert nb.trace(net, images).step_sizes.min() == 1.0

    def test_the_mean_factor_is_one_and_later_blocks_are_dropped_more(self):
        depth = stepping.RandomDepth(runs.fresh("constant", depth=20), 0.6)
        factors = depth.draw_factors(20000, 0, 0, 0)
        torch.testing.assert_close(factors.mean(1), torch.ones(9, dtype=torch.float64), rtol=0, atol=0.03)
        dropped = (factors == 0).double().mean(1)
        assert dropped[0] == pytest.approx(0.6 / 9, abs=0.01)
        assert dropped[-1] == pytest.approx(0.6, abs=0.01)

    def test_a_network_without_step_sizes_is_refused(self):
        with pytest.raises(ValueError, match=r"`drop_path` = 0\.5 .* Flatten has none"):
            stepping.RandomDepth(torch.nn.Flatten(), 0.5)
        with pytest.raises(ValueError, match="`compiled` cannot go with"):
            run(TRICKS["drop_path"], compiled=True)


class TestSharpness:
    def test_the_gradient_is_taken_further_up(self):
        """One step of SGD by hand, in float64: the slope at w + rho g / |g|, the step from w."""
        changes = {"sam": 0.1, "epochs": 1, "nesterov": False, "momentum": 0.0, "weight_decay": 0.0}
        data = runs.few(16)
        got = run(changes, dtype=torch.float64, images=data)
        net = runs.fresh().double().train()
        recipe = runs.recipe(**changes, average=False, small=())
        images, labels = next(Batches(*data_of(data), recipe, dtype=torch.float64).epoch(0, 0))

        def slopes():
            loss = torch.nn.functional.cross_entropy(net(images), labels)
            return torch.autograd.grad(loss, list(net.parameters()))

        first = slopes()
        statistics = {name: x.clone() for name, x in net.named_buffers()}
        length = torch.cat([x.flatten() for x in first]).norm()
        start = [x.detach().clone() for x in net.parameters()]
        with torch.no_grad():
            for x, slope in zip(net.parameters(), first, strict=True):
                x += 0.1 * slope / length
        second = slopes()
        wanted = [x - recipe.rate(0, 1) * slope for x, slope in zip(start, second, strict=True)]
        torch.testing.assert_close(list(got.parameters()), wanted, rtol=1e-9, atol=1e-12)
        for name, x in got.named_buffers():
            assert torch.allclose(x, statistics[name], rtol=1e-9), name  # those of the images at the weights


def data_of(data):
    return data.train_images, data.train_labels, data.mean, data.std


class TestAverages:
    def test_the_mean_is_the_result_and_what_is_tested(self):
        """After n steps decay is (1 + n) / (10 + n) while that is below 0.9."""
        seen = []
        changes = {"ema": 0.9, "epochs": 2, "evaluate_every": 1}
        data = runs.few(16)
        fast = [run({"epochs": 2, "lr": 0.2}, images=data, on_epoch=lambda net, r: seen.append(state(net)))]
        watched = []
        slow = run(changes, images=data, on_epoch=lambda net, r: watched.append(state(net)))
        start = state(runs.fresh())
        decays = [(1 + n) / (10 + n) for n in range(2)]
        for name, x in start.items():
            mean = x
            for decay, weights in zip(decays, seen, strict=True):
                mean = decay * mean + (1 - decay) * weights[name]
            torch.testing.assert_close(slow.state_dict()[name], mean, rtol=1e-4, atol=1e-6)
        assert all(torch.equal(watched[-1][name], x) for name, x in slow.state_dict().items() if name in watched[-1])
        assert not runs.same(fast[0], slow)

    def test_two_ways_to_average_are_one_too_many(self):
        with pytest.raises(ValueError, match=r"`ema` = 0\.9 and `average` = True"):
            train.recipe("short", ema=0.9)


def state(net):
    return {name: x.clone() for name, x in net.state_dict().items() if x.is_floating_point()}


class TestRecipes:
    def test_a_warm_up_rises_to_the_schedule(self):
        warm, cold = (train.recipe("paper", warmup=warmup) for warmup in (2, 0))
        rates = [warm.rate(step, 10) for step in range(40)]
        assert rates[:20] == pytest.approx([0.1 * (step + 1) / 20 for step in range(20)])
        assert rates[20:] == [cold.rate(step, 10) for step in range(20, 40)]

    @pytest.mark.parametrize("schedule", ["cosine", "triangle", "steps"])
    def test_the_rate_ends_at_its_least(self, schedule):
        """Smooth schedules are squeezed between the least and the largest rate; steps stop falling."""
        least, zero = (train.recipe("paper", schedule=schedule, min_lr=low) for low in (0.002, 0.0))
        rates, usual = ([one.rate(step, 10) for step in range(1641)] for one in (least, zero))
        if schedule == "steps":
            assert rates == [max(rate, 0.002) for rate in usual]
        else:
            assert rates == pytest.approx([0.002 + 0.98 * rate for rate in usual])
            assert rates[-1] == pytest.approx(0.002)
        assert max(rates) == pytest.approx(max(usual))

    def test_numbers_that_fit_no_recipe(self):
        for changes, words in (
            ({"min_lr": 0.2}, r"`min_lr` = 0\.2 is above `lr` = 0\.1"),
            ({"lr": 0.0}, r"`lr` must be a positive number, got 0\.0"),
            ({"lr": float("nan")}, "`lr` must be a positive number, got nan"),
            ({"momentum": 1.0}, "`momentum` must be at least 0 and below 1"),
            ({"epochs": 2.5}, r"`epochs` must be a whole number, got 2\.5"),
            ({"mixup": "lots"}, "`mixup` must be a number, got 'lots'"),
            ({"drops": 3}, r"`drops` must be epochs in ascending order, such as \(30, 60\), got 3"),
            ({"drops": (60, 30)}, r"`drops` must be .* got \(60, 30\)"),
            ({"drops": (2.5,)}, r"`drops` must be .* got \(2\.5,\)"),
            ({"small": (0.5,)}, r"`small` must be pairs .* got \(0\.5,\)"),
            ({"small": ((0.5, 0.0),)}, "`small` must be pairs"),
            ({"small": ((0.9, 0.5), (0.2, 0.75))}, "`small` must be pairs .* the shares ascending"),
            ({"crop": 0.5}, r"`crop` must be two numbers, the least and the greatest, got 0\.5"),
            ({"aspect": (1.0,)}, "`aspect` must be two numbers"),
            ({"nesterov": 1}, "`nesterov` must be True or False, got 1"),
            ({"erasing": 1.5}, "`erasing` must be from 0 to 1"),
        ):
            with pytest.raises(ValueError, match=words):
                train.recipe("paper", **changes)

    @pytest.mark.parametrize(
        "field", ["mixup", "cutmix", "cutout", "sam", "warmup", "clip", "drop_path", "ema", "min_lr", "erasing"]
    )
    def test_what_makes_no_sense_is_refused(self, field):
        with pytest.raises(ValueError, match=f"`{field}` must be"):
            train.recipe("paper", **{field: -1})

    def test_old_records_are_still_of_the_same_run(self):
        """Fields that have joined are at their defaults in every known recipe, and stay out of what names a result."""
        joined = [field.name for field in dataclasses.fields(recipes.Recipe)][-14:]
        assert set(joined) == {*ALL, "tf32", "benchmark"} - {"average", "smoothing", "bfloat16"}
        for recipe in recipes.RECIPES.values():
            assert not set(jobs.changed_fields(recipe)) & set(joined)
            record = {k: v for k, v in json.loads(json.dumps(recipe.as_json())).items() if k not in joined}
            assert jobs.same_recipe(record, recipe)
            assert not jobs.same_recipe(record, dataclasses.replace(recipe, clip=1.0))
