"""Published weights: key maps on files with the structure of each family, and the public ResNet-20 itself."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from tests.netbridge import networks
from tests.netbridge.foreign import networks as foreign


def foreign_state(net, shortcut="downsample", head="fc", front=""):
    """The weights of one of ours under another family's keys."""
    names = {"stem.conv": "conv1", "stem.bn": "bn1", "head.fc": head}
    for s, stage in enumerate(net.stages):
        for b in range(len(stage.blocks)):
            ours, theirs = f"stages.{s}.blocks.{b}", f"layer{s + 1}.{b}"
            names.update({f"{ours}.branch.{k}{i}": f"{theirs}.{k}{i}" for k in ("conv", "bn") for i in (1, 2, 3)})
            names.update(
                {f"{ours}.shortcut.conv": f"{theirs}.{shortcut}.0", f"{ours}.shortcut.bn": f"{theirs}.{shortcut}.1"}
            )
    state = {}
    for name, tensor in net.state_dict().items():
        place, _, leaf = name.rpartition(".")
        state[f"{front}{names[place]}.{leaf}"] = tensor
    return state


FAMILIES = {
    "akamaster": ({"depth": 20}, {"head": "linear", "front": "module."}, [0.485, 0.456, 0.406]),
    "chenyaofo": ({"depth": 20, "shortcut": "B"}, {}, [0.4914, 0.4822, 0.4465]),
    "kuangliu": (
        {"depth": 18, "stem": "cifar", "widths": (4, 8, 16, 16)},
        {"shortcut": "shortcut", "head": "linear"},
        [0.4914, 0.4822, 0.4465],
    ),
    "torchvision": ({"depth": 50, "widths": (4, 4, 4, 8), "num_classes": 7}, {}, [0.485, 0.456, 0.406]),
    "bottlenecks on CIFAR": ({"depth": 29, "widths": (4, 8, 8)}, {}, [0.4914, 0.4822, 0.4465]),
    "one channel": ({"depth": 14, "widths": (4, 8, 8), "in_channels": 1}, {"head": "linear"}, [0.485, 0.456, 0.406]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wrapped", [False, True])
def test_key_maps(family, wrapped, tmp_path):
    arguments, style, mean = FAMILIES[family]
    net = networks.lively(nb.resnet(**arguments)).eval()
    state = foreign_state(net, **style)
    torch.save({"state_dict": state, "epoch": 3} if wrapped else state, tmp_path / "weights.th")
    again = nb.load_foreign(tmp_path / "weights.th")
    assert again.config == net.config
    assert again.normalisation["mean"] == mean
    x = torch.randn(2, arguments.get("in_channels", 3), 40, 40)
    with torch.no_grad():
        assert torch.equal(again(x), net(x))
    assert nb.load_foreign(tmp_path / "weights.th", normalisation={"mean": [0.0], "std": [1.0]}).normalisation[
        "std"
    ] == [1.0]


def test_files_without_batch_counters(tmp_path):
    state = foreign_state(nb.resnet(14))
    torch.save({k: v for k, v in state.items() if "num_batches" not in k}, tmp_path / "old.th")
    assert nb.load_foreign(tmp_path / "old.th").stem.bn.num_batches_tracked == 0


def test_a_loaded_network_is_as_free_as_any(tmp_path, images):
    net = nb.resnet(14)
    torch.save(foreign_state(net), tmp_path / "weights.th")
    again = nb.load_foreign(tmp_path / "weights.th")
    assert all(p.requires_grad for p in again.parameters())
    swapped = nb.swap(again, "se").train()
    swapped(images).sum().backward()
    assert torch.equal(nb.load(nb.save(again, tmp_path / "ours"))(images), again(images))


def lacking(key):
    return lambda state: state.pop(key)


def with_nan(state):
    state["layer1.0.conv1.weight"][0, 0, 0, 0] = torch.nan


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lacking("conv1.weight"), r"no ResNet that is known here. Looked for conv1.*it has \['bn1.weight'"),
        (lacking("fc.weight"), "linear or fc"),
        (lacking("layer2.0.conv1.weight"), "a stage is missing"),
        (lacking("layer2.1.bn2.bias"), r"1 missing \['stages.1.blocks.1.branch.bn2.bias'\]"),
        (lambda state: state.update({"layer1.0.attention.weight": torch.ones(1)}), r"1 too many \['layer1.0.attention"),
        (lambda state: state.update({"layer1.5.conv1.weight": torch.ones(4, 4, 3, 3)}), "missing"),
        (lambda state: state.update({"layer1.999999.conv1.weight": torch.ones(4, 4, 3, 3)}), "a stage is missing"),
        (
            lambda state: state.update({"layer1.1.conv1.weight": torch.ones(4, 5, 3, 3)}),
            r"is \(4, 5, 3, 3\), the network's",
        ),
        (with_nan, "holds 1 NaN or infinite"),
    ],
)
def test_what_does_not_fit_is_named(change, words, tmp_path):
    state = foreign_state(nb.resnet(14, widths=(4, 8, 8)))
    change(state)
    torch.save(state, tmp_path / "weights.th")
    with pytest.raises(ValueError, match=words):
        nb.load_foreign(tmp_path / "weights.th")


@pytest.mark.parametrize("form", ["file", "weights", "module"])
def test_a_module_or_its_weights_do_as_well_as_a_file(form, tmp_path):
    net = networks.lively(nb.resnet(14, widths=(4, 8, 8))).eval()
    state = foreign_state(net)
    torch.save(state, tmp_path / "weights.th")
    module = nn.Module()
    for name, tensor in state.items():
        *place, leaf = name.split(".")
        owner = module
        for part in place:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = getattr(owner, part)
        owner.register_buffer(leaf, tensor)
    again = nb.load_foreign({"file": tmp_path / "weights.th", "weights": state, "module": module}[form])
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(again(x), net(x))
    with torch.no_grad():  # what was given stays as it was, whatever becomes of the copy
        again.stem.conv.weight.zero_()
    assert float(state["conv1.weight"].abs().sum()) > 0


class TestPooledStem:
    """3x3 convolutions with and without a max-pool behind them have the same weights and other outputs."""

    @staticmethod
    def net(stem):
        return networks.lively(nb.resnet(18, stem=stem, widths=(4, 4, 8, 8))).eval()

    def test_it_is_a_choice(self, tmp_path):
        pooled = self.net("cifar-pooled")
        torch.save(foreign_state(pooled), tmp_path / "resnet18.pt")
        again = nb.load_foreign(tmp_path / "resnet18.pt", stem="cifar-pooled")
        x = torch.randn(2, 3, 32, 32)
        with torch.no_grad():
            assert torch.equal(again(x), pooled(x))
            assert again.stem(x).shape[2:] == (16, 16)
            assert torch.equal(nb.load(nb.save(again, tmp_path / "ours"))(x), pooled(x))

    def test_weights_that_do_not_tell_are_read_with_a_warning(self):
        with pytest.warns(UserWarning, match=r'may have a max-pool.*stem="cifar-pooled"'):
            net = nb.load_foreign(foreign_state(self.net("cifar-pooled")))
        assert net.config["stem"] == "cifar"
        assert nb.load_foreign(foreign_state(self.net("cifar")), stem="cifar").config["stem"] == "cifar"

    @pytest.mark.parametrize(("layer", "stem"), [(nn.MaxPool2d(3, 2, 1), "cifar-pooled"), (nn.Identity(), "cifar")])
    def test_a_module_tells(self, layer, stem):
        state = foreign_state(self.net("cifar"))

        class Theirs(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1, self.maxpool = nn.Conv2d(3, 4, 3, bias=False), layer

            def state_dict(self):
                return state

        assert nb.load_foreign(Theirs()).config["stem"] == stem

    def test_a_stem_that_cannot_be(self):
        with pytest.raises(ValueError, match=r"`stem` must be one of \['cifar', 'cifar-pooled'\].*3x3, got 'imagenet'"):
            nb.load_foreign(foreign_state(self.net("cifar")), stem="imagenet")


@pytest.mark.parametrize(
    ("inner", "out", "words"),
    [((8, 2, 3, 3), 32, r"grouped convolutions, as in ResNeXt \(4 groups"), ((8, 8, 3, 3), 16, "a wide bottleneck")],
)
def test_other_bottlenecks_are_refused_in_words(inner, out, words):
    state = foreign_state(nb.resnet(29, widths=(4, 8, 8)))
    state["layer1.0.conv2.weight"] = torch.zeros(inner)
    state["layer1.0.conv3.weight"] = torch.zeros(out, inner[0], 1, 1)
    with pytest.raises(ValueError, match=words):
        nb.load_foreign(state)


def test_a_whole_pickled_model_is_answered_in_one_plain_line(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "whole.pt")
    with pytest.raises(ValueError, match=r"asks for more than tensors \(a torch.nn.modules.linear.Linear\)") as caught:
        nb.load_foreign(tmp_path / "whole.pt")
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "state_dict" in str(caught.value)


@pytest.mark.parametrize("content", [[1, 2], {"state_dict": {"a": 3}}, {"a": "b"}])
def test_no_dictionary_of_tensors(content, tmp_path):
    torch.save(content, tmp_path / "weights.th")
    with pytest.raises(ValueError, match="no dictionary of tensors"):
        nb.load_foreign(tmp_path / "weights.th")


@pytest.mark.parametrize("kept", [0, 100, 0.5])
def test_truncated(kept, tmp_path):
    torch.save(foreign_state(nb.resnet(8, widths=(4, 4, 4))), tmp_path / "weights.th")
    content = (tmp_path / "weights.th").read_bytes()
    (tmp_path / "weights.th").write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(ValueError, match="damaged, cut short, or no checkpoint"):
        nb.load_foreign(tmp_path / "weights.th")


class PublicResNet20(nn.Module):
    """The published network as its author wrote it, option A and all, to read the file with its own keys."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        for stage, width in enumerate((16, 32, 64), start=1):
            blocks = []
            for i in range(3):
                before = width // 2 if stage > 1 and i == 0 else width
                block = nn.Module()
                block.conv1 = nn.Conv2d(before, width, 3, stride=width // before, padding=1, bias=False)
                block.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
                block.bn1, block.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
                blocks.append(block)
            self.add_module(f"layer{stage}", nn.ModuleList(blocks))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for block in (*self.layer1, *self.layer2, *self.layer3):
            f = block.bn2(block.conv2(F.relu(block.bn1(block.conv1(x)))))
            if f.shape != x.shape:
                quarter = f.shape[1] // 4
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, quarter, quarter))
            x = F.relu(f + x)
        return self.linear(F.avg_pool2d(x, x.shape[3]).flatten(1))


def test_the_public_resnet20(public_weights, images):
    theirs = PublicResNet20().eval()
    state = torch.load(public_weights, map_location="cpu", weights_only=True)["state_dict"]
    theirs.load_state_dict({name.removeprefix("module."): tensor for name, tensor in state.items()})
    ours = nb.load_foreign(public_weights)
    assert ours.config == nb.resnet(20).config
    assert ours.normalisation == {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    x = ours.normalise(images.sigmoid())
    with torch.no_grad():
        rounding = networks.rounding_of(ours, x)
        assert networks.relative_error(ours(x), theirs(x)) < rounding
        assert networks.relative_error(nb.fold(ours)(x), theirs(x)) < rounding
    assert torch.equal(ours(x).argmax(1), theirs(x).argmax(1))


def with_gelu(net):
    for module in net.modules():
        if hasattr(module, "relu"):
            module.relu = nn.GELU()


def with_epsilon(net):
    net.bn1.eps = 0.1


def without_pooling(net):
    net.maxpool = nn.Identity()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when its compiler is imported
@pytest.mark.parametrize("wrap", [nn.Identity(), nn.DataParallel, torch.compile, torch.optim.swa_utils.AveragedModel])
@pytest.mark.parametrize("change", [with_gelu, with_epsilon, without_pooling])
def test_a_module_that_computes_something_else_with_these_weights_is_refused(change, wrap):
    net, x = foreign.shaken(foreign.VisionResNet()), torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(nb.load_foreign(wrap(net))(x), net(x))
    change(net)
    with pytest.raises(ValueError, match="computes something else with them"):
        nb.load_foreign(wrap(net))
