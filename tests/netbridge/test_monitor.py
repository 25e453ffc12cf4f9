"""A monitor reads what a trace measures and changes nothing of a training; its adapters for loggers run as shown."""

import re
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import netbridge as nb
import odelab as ol
from tests.netbridge.common.test_preservation import everything, generators

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
SECTION = PAGE.split("## In a training loop of your own")[1].split("\n## ")[0]


class Residual(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.gate = nn.Parameter(torch.full((width, 1, 1), 0.5))

    def forward(self, x):
        return torch.relu(x + self.gate * self.norm(self.conv(x)))


def foreign(blocks=4):
    head = nn.Dropout(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)
    return nn.Sequential(nn.Conv2d(3, 6, 3), *(Residual() for _ in range(blocks)), *head)


NETWORKS = {"ours": lambda: nb.resnet(20, num_classes=4, controller="se", widths=(4, 4, 8)), "anybody's": foreign}


@pytest.fixture(params=NETWORKS)
def net(request):
    torch.manual_seed(0)
    return NETWORKS[request.param]()


@pytest.fixture
def images():
    return torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("mu", ["sample", "dataset"])
def test_the_numbers_are_those_of_a_trace(net, images, mu):
    reading, record = nb.Monitor(net, images, mu).step(), nb.trace(net, images)
    counted = record.counted()
    parts = ol.tns_parts(counted.nsi, counted.stage, mu)
    found, expected = ((one.tns, one.scale, one.shape) for one in (reading, parts))
    assert found == pytest.approx(expected, rel=1e-14)
    assert reading.nsi == dict(zip(record.names, record.nsi.mean(0), strict=True))
    assert reading.gates == dict(zip(record.names, record.step_sizes.mean(0), strict=True))


def test_the_dictionary_is_flat_and_holds_plain_finite_numbers(net, images):
    numbers = nb.Monitor(net, images).step().numbers("stiffness/")
    assert all(name.startswith("stiffness/") and type(value) is float for name, value in numbers.items())
    assert np.isfinite(list(numbers.values())).all()
    assert {"stiffness/tns", "stiffness/scale", "stiffness/shape"} < numbers.keys()


def test_what_is_not_defined_is_left_out_of_the_dictionary(images):
    one_block = nb.Monitor(nb.resnet(8, widths=(4, 4, 8)), images).step()
    assert np.isnan([one_block.tns, one_block.scale, one_block.shape]).all()
    assert {name.partition("/")[0] for name in one_block.numbers()} == {"nsi", "gate"}
    ends = nb.Monitor(foreign(), images, of="increment", blocks=nn.BatchNorm2d).step()
    assert not any(name.startswith("gate/") for name in ends.numbers())


def test_a_network_that_is_no_number_any_more_is_read_without_an_error(net, images):
    monitor = nb.Monitor(net, images)
    monitor.step()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(torch.nan)
    assert "tns" not in monitor.step().numbers()


@pytest.mark.parametrize("around", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_reading_changes_nothing_of_the_training(net, images, around):
    """Parameters, statistics, modes, hooks, gradients and the state of every random generator."""
    net.train()
    list(net.modules())[3].eval()
    net(images).square().mean().backward()
    gradients = [parameter.grad for parameter in net.parameters()]
    kept = [None if gradient is None else gradient.clone() for gradient in gradients]
    loader = DataLoader(TensorDataset(images), batch_size=3)
    before, drawn = everything(net), generators()
    for given in (images, loader, [images[:2], images[2:]]):
        monitor = nb.Monitor(net, given)
        with around():
            assert monitor.step() == monitor.step()
        assert everything(net) == before
        assert generators() == drawn
    assert all(p.grad is g for p, g in zip(net.parameters(), gradients, strict=True))
    assert all(g is None or torch.equal(g, k) for g, k in zip(gradients, kept, strict=True))


def test_a_monitored_training_has_the_bits_of_an_unmonitored_one(images):
    def train(readings):
        torch.manual_seed(3)
        net = foreign()
        optimizer, monitor = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), nb.Monitor(net, images)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(8, 3, 16, 16)).square().mean().backward()
            optimizer.step()
            if readings:
                monitor.step()
        return net.state_dict()

    for name, tensor in train(True).items():
        assert torch.equal(tensor, train(False)[name]), name


def test_images_that_can_be_read_only_once_are_refused(images):
    with pytest.raises(TypeError, match=r"`images` must be there for every reading.*list\(images\)"):
        nb.Monitor(foreign(), iter([images]))


@pytest.mark.parametrize("options", [{"keep": True}, {"of": ("slope", "increment")}])
def test_a_reading_is_of_one_index_and_keeps_no_maps(images, options):
    with pytest.raises(TypeError, match="`options` must ask for one index and no maps"):
        nb.Monitor(foreign(), images, **options)


def test_what_is_to_be_said_of_a_network_is_said_once(images):
    monitor = nb.Monitor(nb.resnet(14, widths=(4, 4, 8)), images)
    with pytest.warns(UserWarning, match="no stage of this record has two of them"):
        monitor.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.step()


# --- the adapters of docs/training.md, run with stand-ins for the interfaces of their libraries


class Scalars:
    """`torch.utils.tensorboard.SummaryWriter`: add_scalar(tag, value, step)."""

    def __init__(self, log_dir=None):
        self.written = []

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.written.append((global_step, tag, scalar_value))

    def close(self):
        pass


class LightningModule(nn.Module):
    """What a callback sees of a `lightning.pytorch.LightningModule`: `log_dict`, and the attributes of its author."""

    def __init__(self, net):
        super().__init__()
        self.net, self.logged = net, []

    def log_dict(self, dictionary, prog_bar=False, rank_zero_only=False):
        assert all(type(value) is float for value in dictionary.values())
        self.logged.append(dictionary)


class LightningTrainer:
    """Calls `on_train_epoch_end(trainer, pl_module)` after every epoch, as `lightning.pytorch.Trainer` does."""

    is_global_zero, sanity_checking = True, False

    def __init__(self, max_epochs, callbacks):
        self.max_epochs, self.callbacks = max_epochs, callbacks

    def fit(self, model):
        for _ in range(self.max_epochs):
            model.train()
            for callback in self.callbacks:
                callback.on_train_epoch_end(self, model)


class HuggingFaceTrainer:
    """Calls `on_epoch_end(args, state, control, model=..., ...)` of its callbacks, and has `log`, as `Trainer` does."""

    def __init__(self, model, epochs=2):
        self.model, self.epochs, self.callbacks, self.logged = model, epochs, [], []

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def log(self, logs):
        self.logged.append({**logs, "epoch": self.epoch})

    def train(self):
        for epoch in range(self.epochs):
            self.model.train()
            self.epoch, state = epoch, types.SimpleNamespace(epoch=epoch, is_world_process_zero=True)
            for callback in self.callbacks:
                callback.on_epoch_end(None, state, None, model=self.model, optimizer=None)


class PixelClassifier(nn.Module):
    """An image classifier of Hugging Face: its forward names the images `pixel_values`, and it returns an output."""

    def __init__(self):
        super().__init__()
        self.net = foreign()

    def forward(self, pixel_values=None, labels=None):
        return {"logits": self.net(pixel_values)}


@pytest.fixture
def adapters(monkeypatch):
    """The names that the documented snippets define, run with the stand-ins in the place of the libraries."""
    stand_ins = {
        "torch.utils.tensorboard": {"SummaryWriter": Scalars},
        "lightning": {},
        "lightning.pytorch": {"Callback": type("Callback", (), {}), "Trainer": LightningTrainer},
        "transformers": {"TrainerCallback": type("TrainerCallback", (), {})},
    }
    for name, members in stand_ins.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    torch.manual_seed(0)
    images = torch.randn(4, 3, 16, 16)
    net, model = foreign(), LightningModule(foreign())
    trainer = HuggingFaceTrainer(PixelClassifier())
    names = {"net": net, "model": model, "trainer": trainer, "shown": images, "epochs": 2, "train_one_epoch": net.train}
    for block in re.findall(r"```python\n(.*?)```", SECTION, flags=re.DOTALL):
        exec(compile(block, "training.md", "exec"), names)
    return names


def test_the_adapters_have_at_most_ten_lines():
    blocks = re.findall(r"```python\n(.*?)```", SECTION, flags=re.DOTALL)
    assert len(blocks) == 3
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 10 for block in blocks)


def test_the_adapter_for_tensorboard_writes_every_number_of_every_epoch(adapters):
    expected = nb.Monitor(adapters["net"], adapters["shown"]).step().numbers("stiffness/")
    assert adapters["writer"].written == [
        (epoch, name, value) for epoch in range(2) for name, value in expected.items()
    ]


def test_the_adapter_for_lightning_logs_every_epoch(adapters):
    expected = nb.Monitor(adapters["model"].net, adapters["shown"]).step().numbers("stiffness/")
    assert adapters["model"].logged == [expected] * 2


def test_the_adapter_for_hugging_face_logs_every_epoch(adapters):
    trainer = adapters["trainer"]
    expected = nb.Monitor(trainer.model, [{"pixel_values": adapters["shown"]}]).step().numbers("stiffness/")
    assert trainer.logged == [{**expected, "epoch": epoch} for epoch in range(2)]
