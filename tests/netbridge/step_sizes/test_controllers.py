"""Controllers in networks: gradients, ranges, where they act, ASR, options, one's own."""

import inspect
import json
import math

import hypothesis
import hypothesis.strategies as some
import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge.step_sizes import ASR, IE, spec
from netbridge.step_sizes.base import REGISTRY
from tests.netbridge import networks

PLAIN = ("se", "cbam", "eca", "srm", "fca", "ie", "sge", "spa", "dia", "sem", "stepnet")
CHANNEL = tuple(name for name in PLAIN if name != "sge")


def test_dia_is_shared_by_a_stage_and_remembers_within_it(images):
    net = networks.lively(nb.resnet(14, controller="dia", widths=(4, 8, 8))).eval()
    assert {name for name in net.state_dict() if "shared" in name} == {
        f"stages.{s}.shared.dia.{m}.{i}.{p}"
        for s in range(3)
        for m in ("from_input", "from_hidden")
        for i in (0, 2)
        for p in ("weight", "bias")
    }
    seen = []
    with torch.no_grad(), net.observed(lambda c, memory, t, dt, h, u, s, f, new: seen.append((memory.hidden, h, f))):
        net(images)
    for stage, (first, second) in enumerate((seen[:2], seen[2:4], seen[4:])):
        gate = net.stages[stage].shared["dia"]
        _, memory = gate.propose(None, None, first[2])
        h, _ = gate.propose(memory, None, second[2])
        assert torch.equal(h, second[1])
        assert not torch.equal(h, gate(None, second[2]))


def test_stepnet_skips_the_first_block_of_each_stage_unless_asked(images):
    net = nb.resnet(14, controller="stepnet", widths=(4, 8, 8))
    assert [block.controller.name for block in net.blocks] == ["constant", "stepnet"] * 3
    net = nb.resnet(14, controller="stepnet", widths=(4, 8, 8), on=[2])
    assert [block.controller.name for block in net.blocks] == ["constant"] * 2 + ["stepnet"] + ["constant"] * 3
    assert net(images).shape == (4, 10)


@pytest.mark.parametrize(
    "controller",
    [*nb.controllers(), nb.asr("se", beside="se")]
    + [nb.asr(name) for name in CHANNEL]
    + [nb.controller("stepnet", adaptor=adaptor) for adaptor in "abcd"]
    + [nb.controller("stepnet", inputs=inputs) for inputs in ("now", "next", "difference")],
    ids=str,
)
@pytest.mark.parametrize("post_activation", [True, False])
def test_gradients_reach_every_parameter(controller, post_activation):
    net = nb.resnet(14, controller=controller, post_activation=post_activation, widths=(16, 16, 32))
    networks.lively(net)
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.ReLU):  # a hidden layer of one or two units may be off for a whole batch
                setattr(module, name, nn.LeakyReLU(0.1))
    net(torch.randn(8, 3, 16, 16)).square().sum().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(
    name=some.sampled_from(PLAIN), samples=some.integers(2, 3), size=some.integers(2, 9), seed=some.integers(0, 99)
)
def test_step_sizes_broadcast_and_lie_between_0_and_1(name, samples, size, seed):
    torch.manual_seed(seed)
    controller = nb.resnet(14, controller=name, widths=(16, 16, 16), on=[1]).blocks[1].controller
    x, f = torch.randn(2, samples, 16, size, size)
    h, _ = controller.propose(None, x, f)
    assert (x + h * f).shape == x.shape
    assert bool(((h > 0) & (h < 1)).all())


@pytest.mark.parametrize(
    "controller", [*(nb.asr(name) for name in CHANNEL), nb.asr(None), nb.asr("se", uses=3)], ids=str
)
def test_asr_does_not_look_at_its_input(controller, images):
    net = networks.lively(nb.resnet(14, controller=controller, widths=(16, 16, 16)))
    for training in (True, False):
        net.train(training)
        gates = []
        for x in (images, 3 * images + 1):
            kept = []
            with net.observed(lambda c, m, t, dt, h, *rest, kept=kept: kept.append(h)):
                net(x)
            gates.append(kept)
        assert all(torch.equal(a, b) for a, b in zip(*gates, strict=True))
        assert all(h.shape == (1, 16, 1, 1) for h in gates[0])


def test_asr_is_the_head_on_psi():
    controller = nb.resnet(14, controller=nb.asr("se", init=0.3), widths=(16, 16, 16)).blocks[0].controller
    assert torch.equal(controller.psi, torch.full((1, 16), 0.3))
    first, _, last = controller.heads[0].excite
    wanted = last(first(controller.psi[0]).clamp(min=0)).sigmoid()
    h = controller(None, torch.zeros(1, 16, 2, 2))
    assert torch.allclose(h[0, :, 0, 0], wanted)


def test_asr_uses_multiply_and_may_be_fixed():
    controller = (
        nb.resnet(14, controller=nb.asr("ie", uses=2, learnable=False, spread=0.5), widths=(4, 4, 4))
        .blocks[0]
        .controller
    )
    assert "psi" not in dict(controller.named_parameters())
    assert controller.psi.std() > 0
    networks.lively(controller)
    parts = [
        (head.weight * psi + head.bias).sigmoid() for head, psi in zip(controller.heads, controller.psi, strict=True)
    ]
    assert torch.allclose(controller(None, torch.zeros(1, 4, 1, 1))[0, :, 0, 0], parts[0] * parts[1])
    bare = nb.resnet(14, controller=nb.asr(None, init=0.2), widths=(4, 4, 4)).blocks[0].controller
    assert torch.equal(bare(None, torch.zeros(1, 4, 1, 1)).flatten(), torch.full((4,), 0.2))
    assert [type(p) for p in bare.parameters()] == [nn.Parameter]


def test_asr_for_transformers():
    controller = nb.Gated(nn.Linear(2, 16), nb.asr("se", activation="tanh", init=1e-3, inner=1e-3), 16).controller
    assert all(torch.equal(p, torch.full_like(p, 1e-3)) for p in controller.parameters())
    assert torch.allclose(controller(None, torch.zeros(1, 16, 3, 1)), torch.tensor(1e-3).tanh(), atol=1e-5)


def test_asr_beside_a_live_module_acts_first():
    net = nb.resnet(14, controller=nb.asr("se", beside="ie"), widths=(32, 32, 32))
    controller = networks.lively(net).blocks[0].controller
    x, f = torch.randn(2, 3, 32, 8, 8)
    constant = controller.constant(None)[0].view(1, -1, 1, 1)
    assert isinstance(controller.live, IE)
    assert torch.allclose(controller(x, f), constant * controller.live(x, constant * f))


def test_a_shared_module_on_a_vector_is_not_the_one_beside_it():
    net = nb.resnet(14, controller=nb.asr("dia", uses=2, beside="dia"), widths=(4, 4, 4))
    assert list(net.stages[0].shared) == ["asr_dia", "asr_dia_1", "dia"]
    assert all(set(stage.shared) == {"asr_dia", "asr_dia_1", "dia"} for stage in net.stages)


def test_asr_keeps_the_statistics_of_a_normalisation_in_its_head():
    controller = nb.resnet(14, controller=nb.asr("srm"), widths=(4, 4, 4)).train().blocks[0].controller
    assert isinstance(controller, ASR)
    assert controller.training
    assert not controller.heads[0].norm.training
    networks.lively(controller)
    f = torch.zeros(1, 4, 1, 1)
    assert torch.equal(controller(None, f), controller.eval()(None, f))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nb.asr("sge"), "`module` = 'sge' is no channel module"),
        (lambda: nb.asr("constant"), "no channel module.*'se'"),
        (lambda: nb.asr("attention"), "`controller` must be one of .*got 'attention'"),
        (lambda: nb.asr("se", uses=0), "`uses` must be a positive integer, got 0"),
        (lambda: nb.asr("se", activation="relu"), "`activation` must be one of"),
        (lambda: nb.controller("stepnet", inputs="past"), "`inputs` must be one of"),
        (lambda: nb.controller("stepnet", adaptor="e"), "`adaptor` must be one of"),
        (lambda: nb.controller("constant", value=math.nan), "`value` must be a finite number, got nan"),
        (lambda: nb.controller("se", reduction=0), "`reduction` must be a positive integer, got 0"),
    ],
)
def test_wrong_options_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        nb.resnet(14, controller=make())


def test_unknown_options_are_named():
    with pytest.raises(TypeError, match=r"controller 'se' has no option `ratio`; its options are \['reduction'\]"):
        nb.controller("se", ratio=4)
    with pytest.raises(TypeError, match="plain numbers or strings"):
        nb.controller("constant", value=torch.ones(1))


def test_specifications_are_values():
    assert nb.controller("se") == nb.controller("se", reduction=16)
    assert nb.asr("se") == nb.asr("se", init=0.1)
    assert len({nb.asr("se"), nb.asr("se", uses=1), nb.asr("se", uses=2)}) == 2
    assert repr(nb.asr("se", uses=2)) == "asr(se, uses=2)"


OPTIONS = {
    "se": {"reduction": some.integers(1, 99)},
    "constant": {"value": some.floats(-9, 9)},
    "stepnet": {"inputs": some.sampled_from(["both", "now", "next", "difference"])},
    "asr": {
        "module": some.sampled_from(["se", "ie", nb.controller("dia", reduction=2), {"name": "se", "reduction": 4}]),
        "uses": some.integers(1, 3),
        "learnable": some.booleans(),
        "activation": some.sampled_from(["sigmoid", "tanh"]),
        "inner": some.none() | some.floats(0, 1),
        "beside": some.none() | some.sampled_from(["eca", nb.controller("se", reduction=3)]),
    },
    "mean of two": {"start": some.floats(0, 1)},
}


@hypothesis.given(name=some.sampled_from(list(OPTIONS)), data=some.data())
def test_a_specification_is_read_as_it_is_written(name, data):
    wanted = nb.controller(name, **data.draw(some.fixed_dictionaries({}, optional=OPTIONS[name])))
    assert spec.parse(str(wanted)) == wanted
    assert spec.spec_of(wanted.as_json()) == wanted
    assert spec.parse(json.dumps(wanted.as_json())) == wanted


@pytest.mark.parametrize(
    ("text", "wanted", "title", "file_name"),
    [
        ("se", nb.controller("se"), "SE", "se"),
        ("asr(se)", nb.asr("se"), "ASR(SE)", "asr-se"),
        ("asr(se, uses=2)", nb.asr("se", uses=2), "ASR(SE, uses=2)", "asr-se-uses-2"),
        ("asr(dia(2), beside=dia)", nb.asr(nb.controller("dia", reduction=2), beside="dia"),
         "ASR(DIA(reduction=2), beside=DIA)", "asr-dia-reduction-2-beside-dia"),
        ("constant(-0.5)", nb.controller("constant", value=-0.5), "constant(value=-0.5)", "constant-value--0.5"),
        (" stepnet(inputs=now) ", nb.controller("stepnet", inputs="now"), "StepNet(inputs=now)", "stepnet-inputs-now"),
        ('{"name": "se", "reduction": 4}', nb.controller("se", reduction=4), "SE(reduction=4)", "se-reduction-4"),
    ],
)  # fmt: skip
def test_texts(text, wanted, title, file_name):
    assert spec.parse(text) == wanted
    assert nb.resnet(14, controller=text, widths=(16, 16, 16)).config["controllers"][1] == wanted.as_json()
    assert (wanted.title, wanted.file_name.removesuffix("-")) == (title, file_name)


def test_a_name_that_is_no_python_name_has_a_text_in_every_place():
    """The registry takes any name; where it could not be read back between parentheses the text is JSON."""

    class Level(nb.ChannelController, name="level of the slope"):
        def head(self, statistic):
            return statistic

    for wanted in (nb.asr(Level.name), nb.asr("se", beside=Level.name), nb.controller(Level.name)):
        assert spec.parse(str(wanted)) == wanted
        assert nb.resnet(14, controller=str(wanted)).config["controllers"][1] == wanted.as_json()


@pytest.mark.parametrize(
    "text", ["sé(", "senet", "senet(3)", "asr(senet)", "3", "[se]", "", "se se", "__import__('os')"]
)
def test_texts_that_name_no_controller_are_refused_with_the_names(text):
    with pytest.raises(ValueError, match=r"`controller` must be one of \['constant', 'se'"):
        spec.parse(text)


def test_texts_with_wrong_options():
    with pytest.raises(TypeError, match="has no option `ratio`"):
        spec.parse("se(ratio=3)")
    with pytest.raises(TypeError, match=r"controller 'se' has 1 options, \['reduction'\]; got 2 values"):
        spec.parse("se(3, 4)")


class PerSample(nb.Controller, name="per sample"):
    def forward(self, state, slope):
        return (1 / (1 + slope.square().mean((1, 2, 3)))).view(-1, 1, 1, 1)


RETURNED = {
    "a number": (lambda f: 0.5, None),
    "an integer": (lambda f: 2, None),
    "no axes": (lambda f: f.mean(), None),
    "channels": (lambda f: f.mean((0, 2, 3))[:, None, None], None),
    "all of it": (torch.sigmoid, None),
    "(N, C)": (lambda f: f.mean((2, 3)), r"step size of shape \(4, 4\) for a slope of shape \(4, 4, 32, 32\)"),
    "(N,)": (lambda f: f.mean((1, 2, 3)), r"shape \(4,\) .*h\[:, :, None, None\]"),
    "other channels": (lambda f: f[:, :3], r"shape \(4, 3, 32, 32\)"),
    "nothing": (lambda f: None, "returned None; its step size must be a number or a tensor"),
    "a pair": (lambda f: (f, f), "must be a number or a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("case", RETURNED)
def test_what_a_controller_returns(case, gradients, images):
    returned, words = RETURNED[case]
    net = nb.resnet(14, controller=PerSample, widths=(4, 4, 4), on=[0]).eval()
    assert net(images).shape == (4, 10)
    net.blocks[0].controller.forward = lambda state, slope: returned(slope)
    with torch.set_grad_enabled(gradients):
        if words is None:
            block, x = net.blocks[0], torch.rand(4, 4, 32, 32)
            f = block.branch(x)
            assert torch.allclose(block(x), torch.relu(x + returned(f) * f), atol=1e-6)
        else:
            with pytest.raises((TypeError, ValueError), match=f"controller 'per sample' .*{words}|{words}"):
                net(images)


def test_a_number_is_a_step_size_everywhere():
    class Half(nb.Controller, name="half of the test"):
        def forward(self, state, slope):
            return 0.5

    net = networks.lively(nb.resnet(8, controller="half of the test", widths=(4, 4, 4))).eval()
    same = nb.swap(net, "constant(0.5)")
    x = torch.rand(1, 4, 4, 4)
    with torch.no_grad():
        assert torch.equal(net.blocks[0](x), same.blocks[0](x))
    spectra = [nb.block_spectrum(one.blocks[0], x, part="block") for one in (net, same)]
    assert spectra[0].max_re == pytest.approx(spectra[1].max_re, rel=1e-9)


def test_help_tells_how_to_write_one():
    text = inspect.getdoc(nb.Controller)
    assert all(word in text for word in ("shared", "opening", "takes_pool", "modifies_branch", "(channels, **options)"))


def test_chosen_blocks_only(images):
    net = nb.resnet(20, controller="se", on=[1, "stages.1.blocks.2", -1])
    names = [block.controller.name for block in net.blocks]
    assert [i for i, name in enumerate(names) if name == "se"] == [1, 5, 8]
    assert names.count("constant") == 6
    assert net(images).shape == (4, 10)
    with torch.device("meta"):
        assert len(
            {name.split(".")[3] for name in nb.resnet(20, controller="dia", on=[0]).state_dict() if "dia" in name}
        )


class Mean(nb.Controller, name="mean of two"):
    """Ten lines make a controller; another module of the same shape could be trained in its place."""

    def __init__(self, channels, start=0.5):
        super().__init__()
        self.level = nn.Parameter(torch.full((channels,), start))

    def forward(self, state, slope):
        return torch.sigmoid(self.level * (state + slope).mean((2, 3)))[:, :, None, None]


def built_without_channels(self):
    """An `__init__` that has no place for the number of channels."""


def built_with_more(self, channels, reduction):
    """An option without a default."""


def forward_of_the_state(self, state):
    return 0.5


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"__init__": built_without_channels}, r"def __init__\(self, channels, option=1.0\)`, got __init__\(self\)"),
        ({"__init__": built_with_more}, r"its options need defaults.*got __init__\(self, channels, reduction\)"),
        (
            {"forward": forward_of_the_state},
            r"must define `def forward\(self, state, slope\)`, got forward\(self, state",
        ),
        ({"propose": forward_of_the_state}, r"must define `def propose\(self, memory, state, slope\)`, got propose"),
    ],
)
def test_a_class_that_no_network_could_call_is_refused_where_it_is_written(body, words):
    with pytest.raises(TypeError, match=f"controller 'cannot be called' .*{words}"):
        type("Mine", (nb.Controller,), body, name="cannot be called")
    assert "cannot be called" not in nb.controllers()


def test_a_class_that_forgets_its_base_is_told_so():
    def unprepared(self, channels):
        self.scale = torch.nn.Parameter(torch.ones(channels))

    type(
        "Mine", (nb.Controller,), {"__init__": unprepared, "forward": lambda self, state, slope: 1.0}, name="unprepared"
    )
    try:
        with pytest.raises(TypeError, match=r"controller 'unprepared' must call `super\(\).__init__\(\)` first"):
            nb.resnet(8, controller="unprepared")
    finally:
        del REGISTRY["unprepared"]


def test_a_controller_of_ones_own(images, tmp_path):
    assert "mean of two" in nb.controllers()
    net = nb.resnet(14, controller=Mean, widths=(4, 4, 4))
    assert nb.resnet(14, controller="mean of two").config["controllers"][0] == "mean of two"
    net(images).sum().backward()
    assert net.blocks[0].controller.level.grad.abs().sum() > 0
    x, f = torch.randn(2, 1, 4, 2, 2)
    wanted = (0.5 * (x + f).mean((2, 3))).sigmoid()
    assert torch.allclose(net.blocks[0].controller(x, f)[:, :, 0, 0], wanted)
    path = nb.save(net.eval(), tmp_path / "mine.safetensors")
    assert torch.equal(nb.load(path)(images), net(images))
    assert nb.resnet(14, controller=nb.controller("mean of two", start=0.1)).blocks[0].controller.level[0] == 0.1


def test_names_are_not_taken_twice():
    with pytest.raises(ValueError, match="`name` = 'se' is already the controller netbridge"):

        class Other(nb.Controller, name="se"):
            pass

    class Nameless(nb.Controller):
        pass

    with pytest.raises(ValueError, match="Nameless needs a name"):
        nb.resnet(14, controller=Nameless)
    with pytest.raises(NotImplementedError, match="Nameless must define forward"):
        Nameless()(None, None)
