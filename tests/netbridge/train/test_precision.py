"""Half precision where the recipe wants it and the device can, a loss scaled for float16, CUDA's settings put back."""

import pytest
import torch

from netbridge import checkpoint, train
from netbridge.train.precision import Precision, half_of
from tests.netbridge.train import runs

CPU = torch.device("cpu")


def precision(device=CPU, dtype=torch.float32, **changes):
    return Precision(train.recipe("paper", **changes), device, dtype)


@pytest.mark.parametrize(
    ("changes", "half"),
    [
        ({}, None),
        ({"bfloat16": True}, torch.bfloat16),
        ({"float16": True}, torch.float16),
        ({"bfloat16": True, "float16": True}, torch.bfloat16),  # float16 is for devices without bfloat16
    ],
)
def test_layers_compute_in_what_the_recipe_wants(changes, half):
    layer = torch.nn.Linear(3, 2)
    with precision(**changes).autocast():
        assert layer(torch.ones(1, 3)).dtype == (half or torch.float32)
    with precision(dtype=torch.float64, **changes).autocast():
        assert layer.double()(torch.ones(1, 3).double()).dtype == torch.float64


def test_bfloat16_gives_way_to_float16_on_a_card_without_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    both, one = (train.recipe("paper", bfloat16=True, float16=float16) for float16 in (True, False))
    assert half_of(both, torch.device("cuda")) == torch.float16
    assert half_of(one, torch.device("cuda")) is None


def test_a_gradient_is_unscaled_before_it_is_clipped_and_used():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    sgd = torch.optim.SGD(layer.parameters(), lr=1.0)
    found = precision(float16=True)
    found.backward(3 * layer(torch.ones(1, 1)).sum())
    assert layer.weight.grad.item() == 3 * found.scaler.get_scale()
    found.step(layer, sgd, clip=0.5)
    assert layer.weight.item() == pytest.approx(0.5)


def test_what_overflows_is_left_out_and_the_scale_halved():
    layer = torch.nn.Linear(1, 1, bias=False)
    before, sgd = layer.weight.item(), torch.optim.SGD(layer.parameters(), lr=1.0)
    found = precision(float16=True)
    scale = found.scaler.get_scale()
    found.backward(layer(torch.full((1, 1), torch.inf)).sum())
    found.step(layer, sgd, clip=0.0)
    assert layer.weight.item() == before
    assert found.scaler.get_scale() == scale / 2
    again = precision(float16=True)
    again.restore(found.state())
    assert again.scaler.get_scale() == scale / 2


def test_the_scale_is_resumed(tmp_path):
    """A first step that overflows halves the scale; the next session must go on with the half."""
    path, seen = tmp_path / "net.safetensors", []
    changes = {"float16": True, "bfloat16": False, "evaluate_every": 9}

    def scales(stop_after):
        runs.run(path, changes=changes, stop_after=stop_after)
        if stop_after is not None:
            record, _ = checkpoint.load_training(path.with_suffix(".resume"))
            seen.append(record["scale"])

    scales(1)
    scales(2)
    assert [one["_growth_tracker"] for one in seen] == [6, 12]  # steps without an overflow, over both sessions


def test_cudas_settings_are_the_recipes_and_then_what_they_were():
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul

    def settings():
        return cudnn.allow_tf32, matmul.allow_tf32, cudnn.benchmark

    before = settings()
    for wanted in (True, False):
        with precision(torch.device("cuda"), tf32=wanted, benchmark=wanted).kernels():
            assert settings() == (wanted,) * 3
        assert settings() == before
    with precision(tf32=True).kernels():
        assert settings() == before
