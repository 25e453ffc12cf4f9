"""Tracing our own networks: the indices are odelab's, whatever the batch, the precision or the source of the images."""

import math
import sys

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import netbridge as nb
import odelab as ol
from netbridge.model.block import Branch
from netbridge.recording import norms as of_maps
from netbridge.recording import recorder as recording
from odelab import core
from tests.netbridge.networks import lively

SMALL = {"depth": 14, "widths": (4, 8, 8)}
CONTROLLERS = ("constant", "se", "dia", "stepnet", "iebn")


def literal(net, images, of):
    """NSI as written, from maps stored at every step."""
    rows = []

    def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        opens = t == 0 and net.stages[memory.stage].blocks[0].opens
        if of == "slope":
            rows.append(ol.nsi(u, mean_slope))
        else:
            rows.append(torch.full((len(u),), torch.nan, dtype=u.dtype) if opens else ol.nsi(u, u_new - u))
        return carry

    with torch.no_grad(), net.observed(record):
        net(images)
    return torch.stack(rows, 1).double().numpy()


@hypothesis.given(
    controller=some.sampled_from(CONTROLLERS),
    of=some.sampled_from(["slope", "increment"]),
    post_activation=some.booleans(),
    bottleneck=some.booleans(),
    batch_size=some.integers(1, 5),
)
@hypothesis.settings(deadline=None, max_examples=12)
def test_the_trace_is_the_formula_applied_to_stored_maps(controller, of, post_activation, bottleneck, batch_size):
    torch.manual_seed(0)
    depth = 20 if bottleneck else 14
    net = nb.resnet(
        depth, controller=controller, bottleneck=bottleneck, post_activation=post_activation, widths=(4, 4, 8)
    )
    net = lively(net).double().eval()
    images = torch.randn(4, 3, 16, 16, dtype=torch.float64)
    record = nb.trace(net, images, of=of, batch_size=batch_size)
    np.testing.assert_allclose(record.nsi, literal(net, images, of), rtol=1e-12)
    assert record.of == of


@hypothesis.given(value=some.sampled_from([0.25, 0.5, 2.0]))
@hypothesis.settings(deadline=None, max_examples=3)
def test_a_constant_step_scales_increments_and_leaves_the_slope_of_the_same_state(value):
    torch.manual_seed(0)
    images = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    net = lively(nb.resnet(**SMALL, post_activation=False)).double()
    scaled = nb.swap(net, nb.controller("constant", value=value))
    slope, plain = (nb.trace(scaled, images, of=of).nsi for of in ("slope", "increment"))
    counted = ~nb.trace(net, images).first
    np.testing.assert_allclose(plain[:, counted], value * slope[:, counted], rtol=1e-12)
    np.testing.assert_allclose(slope[:, 0], nb.trace(net, images).nsi[:, 0], rtol=1e-12)  # the same x_0


def test_stages_names_and_what_is_counted(images):
    record = nb.trace(nb.resnet(**SMALL), images)
    assert record.names[:3] == ("stages.0.blocks.0", "stages.0.blocks.1", "stages.1.blocks.0")
    assert record.stage.tolist() == [0, 0, 1, 1, 2, 2]
    assert record.first.tolist() == [True, False] * 3
    assert record.of == "slope"
    counted = record.counted()
    with pytest.warns(
        UserWarning, match=r"no stage of this record has two of them \(3 counted in all\): the result is 0"
    ):
        np.testing.assert_array_equal(record.tns(), ol.tns(counted.nsi, counted.stage))
    assert record.delta(0.1, 0.2) == ol.delta(record.nsi[:, ~record.first], [0, 1, 2], 0.1, 0.2)
    assert record.proportion(0.0, 0.0) == ol.stiffness_proportion(counted.nsi, counted.stage, 0.0, 0.0)
    assert record.tns("dataset").shape == (len(images),)


def test_nothing_is_formed_beside_the_sum_and_the_network_is_left_as_it_was(images):
    net = nb.resnet(**SMALL).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    net.stages[0].eval()
    modes = [module.training for module in net.modules()]
    nb.trace(net, images, tune=True)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert all(p.is_contiguous() for p in net.parameters())
    assert all(stage.observation is None for stage in net.stages)


class Late(nb.Controller, name="late"):
    """Builds at its first call what it needs at every call."""

    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.table: torch.Tensor | None = None

    def forward(self, state, slope):
        if self.table is None:
            self.table = torch.linspace(-1.0, 1.0, slope.shape[1])
        return (self.scale * self.table).sigmoid()[None, :, None, None]


@pytest.mark.parametrize("options", [{}, {"keep": True}, {"tune": True}, {"of": "increment"}], ids=str)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_traced_network_can_be_trained(images, options, wrapped):
    net = nb.resnet(**SMALL, controller=Late)
    outer = nn.Sequential(net) if wrapped else net
    nb.trace(outer, images, **options)
    assert all(block.controller.table is None for block in net.blocks)  # what a pass cached is put back too
    outer.train()(images).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for block in net.blocks for parameter in block.controller.parameters())


def test_the_traced_run_is_the_solvers(images, monkeypatch):
    net = nb.resnet(**SMALL)
    record = nb.trace(net, images)
    integrate, calls = core.integrate, []

    def counted(*arguments):
        calls.append(arguments)
        return integrate(*arguments)

    monkeypatch.setattr(core, "integrate", counted)
    np.testing.assert_array_equal(nb.trace(net, images).nsi, record.nsi)
    assert len(calls) == 6  # one a block


def test_plain_steps_are_added_projected_and_measured_in_one_go(images, monkeypatch):
    taken, genuine = [], recording.Recorder.advance
    monkeypatch.setattr(recording.Recorder, "advance", lambda *a: (taken.append(a[3].data_ptr()), genuine(*a))[1])
    monkeypatch.setattr(recording, "SLAB", 5000)  # a sample or two at a time
    net = lively(nb.resnet(**SMALL)).double().eval()
    for of in ("slope", "increment"):
        record = nb.trace(net, images, of=of)
        np.testing.assert_allclose(record.nsi, literal(net, images.double(), of), rtol=1e-12)
    assert len(taken) == 12
    outputs = []
    with torch.inference_mode():
        net.register_forward_hook(lambda net, args, out: outputs.append(out))
        nb.trace(net, images)
        assert torch.equal(outputs[0], net(images.double()))


def test_maps_through_the_compiled_loop_give_the_formula(images, monkeypatch):
    monkeypatch.setattr(of_maps, "LARGE", 0)
    net = nb.resnet(**SMALL).eval()
    np.testing.assert_allclose(nb.trace(net, images).nsi, literal(net, images, "slope"), rtol=1e-6)


def test_kept_trajectories_are_runs_of_euler(images):
    net = lively(nb.resnet(**SMALL, controller="se")).eval()
    runs = nb.trace(net, images, keep=True, batch_size=3)
    assert len(runs) == 3
    assert all(isinstance(run, ol.Trajectory) and run.ok for run in runs)
    np.testing.assert_allclose(runs.record.nsi, nb.trace(net, images).nsi, rtol=1e-6)
    first = runs[0]
    assert first.u.shape == (3, 4, 4, 32, 32)
    assert first.slope.shape == first.u[1:].shape
    assert first.h.shape == (2, 4, 4, 1, 1)
    np.testing.assert_allclose(first.u[1], np.maximum(first.u[0] + first.h[0] * first.slope[0], 0), atol=1e-5)
    for i in range(2):
        np.testing.assert_allclose(ol.nsi(first.u[i], first.slope[i]), runs.record.nsi[:, i], rtol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(net.head(torch.from_numpy(runs[-1].u[-1])), net(images), rtol=1e-4, atol=1e-4)


class PerChannel(nb.Controller, name="per channel"):
    """A step size that broadcasts over the slope without an axis of images."""

    def __init__(self, channels):
        super().__init__()
        self.h = nn.Parameter(torch.linspace(0.5, 1.5, channels))

    def forward(self, state, slope):
        return self.h[:, None, None]


def test_a_kept_step_size_stands_on_the_axes_it_broadcasts_over(images):
    net = nb.resnet(
        **SMALL, controller=PerChannel
    ).eval()  # four channels and four images: the axes must not be mixed up
    first = nb.trace(net, images, keep=True)[0]
    assert first.h.shape == (2, 4, 4, 1, 1)
    for image in range(4):
        np.testing.assert_allclose(first.h[0, image, :, 0, 0], np.linspace(0.5, 1.5, 4), rtol=1e-6)
    np.testing.assert_allclose(first.u[1], np.maximum(first.u[0] + first.h[0] * first.slope[0], 0), atol=1e-5)


def test_images_come_from_anything_that_yields_them(images):
    net = nb.resnet(**SMALL)
    wanted = nb.trace(net, images).nsi
    labels = torch.zeros(len(images))
    loader = DataLoader(TensorDataset(images, labels), batch_size=3)
    for source in (loader, [images[:1], images[1:]], iter([(images, labels)]), [{"image": images}], images.numpy()):
        np.testing.assert_allclose(nb.trace(net, source).nsi, wanted, rtol=1e-5)
    seen = []
    nb.trace(net, loader, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 4), (4, 4)]


def test_a_bar_is_shown_on_a_terminal_alone_and_is_gone_whatever_happens(images, capsys, monkeypatch):
    nb.trace(nb.resnet(**SMALL), images, batch_size=2, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(ValueError, match="must be images"):
        nb.trace(nb.resnet(**SMALL), [images, images[0]], progress=True)
    shown = capsys.readouterr().err
    assert "trace" in shown
    assert shown.endswith("\x1b[2K")  # the line is empty again


class TestOnePass:
    """Both indices, the step sizes and the outputs come from one forward pass."""

    @pytest.mark.parametrize("controller", ["constant", "se", "dia", "asr(se)"])
    def test_both_kinds_are_those_of_two_traces(self, images, controller):
        kind = nb.asr("se") if controller == "asr(se)" else controller
        net, passes, sizes = lively(nb.resnet(**SMALL, controller=kind)).double().eval(), [], []

        def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
            h = torch.as_tensor(h if isinstance(h, float | torch.Tensor) else 1.0, dtype=torch.float64)
            sizes.append(torch.broadcast_to(h, u.shape).flatten(1).mean(1))
            return carry

        with torch.no_grad(), net.observed(record):
            wanted = net(images.double())
        net.register_forward_hook(lambda *_: passes.append(1))
        slope, _ = both = nb.trace(net, images, of=("slope", "increment"), outputs=True)
        assert len(passes) == 1
        assert both["slope"] is slope
        for record in both:
            single = nb.trace(net, images, of=record.of)
            np.testing.assert_array_equal(record.nsi, single.nsi)
            np.testing.assert_array_equal(both.step_sizes, single.step_sizes)
            assert single.outputs is None
        np.testing.assert_allclose(both.step_sizes, torch.stack(sizes, 1), rtol=1e-12)
        np.testing.assert_allclose(both.outputs, wanted, rtol=1e-12)
        with pytest.raises(KeyError, match="this trace holds"):
            both["tns"]

    def test_records_of_several_traces_are_merged(self, images, tmp_path):
        net = lively(nb.resnet(**SMALL, controller="se")).eval()
        kinds = ("increment", "slope")
        whole = nb.trace(net, images, of=kinds, outputs=True)
        merged = nb.Records.merge([nb.trace(net, part, of=kinds, outputs=True) for part in images.split(3)])
        for ours, theirs in zip(merged, whole, strict=True):
            for field in ("nsi", "step_sizes", "outputs"):
                np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-4)
        back = nb.Record.load(merged[0].save(tmp_path / "record.npz"))
        np.testing.assert_array_equal(back.outputs, merged.outputs)
        np.testing.assert_array_equal(back.counted().step_sizes, merged.step_sizes[:, ~merged.first])

    def test_a_zero_image_does_not_lose_the_others(self, images):
        net = nb.resnet(**SMALL, post_activation=False).eval()
        kinds = ("slope", "increment")
        wanted = nb.trace(net, images[[0, 1, 3]], of=kinds)
        net.stem.conv.register_forward_hook(lambda conv, args, x: x * (torch.arange(len(x)) != 2)[:, None, None, None])
        with pytest.raises(ValueError, match=r"image 2, block .*: its state is zero"):
            nb.trace(net, images)
        for record, good in zip(nb.trace(net, images, of=kinds, on_bad="nan"), wanted, strict=True):
            assert np.isnan(record.nsi[2]).any()
            tns = record.tns("dataset")
            assert np.isnan(tns).tolist() == [False, False, True, False]
            np.testing.assert_allclose(tns[[0, 1, 3]], good.tns("dataset"), rtol=1e-4)
            assert record.delta(0.1, 0.1, "dataset") == good.delta(0.1, 0.1, "dataset")


def test_a_wrapped_network_is_the_network_inside(images):
    net = nb.resnet(**SMALL)
    wanted = nb.trace(net, images)
    wrapped = torch.nn.Sequential(torch.nn.Identity(), net)
    inside = nb.trace(wrapped, images)
    np.testing.assert_array_equal(inside.nsi, wanted.nsi)
    assert inside.names[0] == "1.stages.0.blocks.0"
    np.testing.assert_array_equal(nb.trace(torch.nn.DataParallel(net), images).nsi, wanted.nsi)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, on importing its compiler
def test_a_compiled_network_is_traced_uncompiled(images):
    net = nb.resnet(**SMALL)
    np.testing.assert_array_equal(nb.trace(torch.compile(net), images).nsi, nb.trace(net, images).nsi)


def test_other_methods_finer_grids_and_ode_nets_have_a_column_per_step(images):
    finer = nb.trace(nb.resnet(**SMALL, method="RK4", depth_factor=2), images)
    assert finer.names[:3] == ("stages.0.blocks.0", "stages.0.blocks.0 + 0.5", "stages.0.blocks.1")
    assert finer.first[:4].tolist() == [True, True, False, False]
    assert nb.trace(nb.resnet(**SMALL, solver="rk4"), images).nsi.shape == (4, 6)


def test_autocast_accumulates_in_single_precision(images):
    net = lively(nb.resnet(**SMALL)).eval()
    exact = nb.trace(net, images).nsi
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = nb.trace(net, images).nsi
    np.testing.assert_allclose(rough, exact, rtol=0.03)
    halved = nb.trace(net.to(torch.bfloat16), images).nsi
    np.testing.assert_allclose(halved, exact, rtol=0.1)
    assert (halved != exact).any()


@pytest.mark.parametrize("of", ["slope", "increment"])
def test_a_slope_of_another_precision_is_added_as_torch_would(images, of):
    net = lively(nb.resnet(**SMALL)).eval()
    kinds = set()
    net.stem.register_forward_hook(lambda stem, args, x: x.float())
    for block in net.blocks:
        block.branch.conv1.register_forward_hook(lambda conv, args, f: kinds.add((args[0].dtype, f.dtype)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_allclose(nb.trace(net, images, of=of).nsi, literal(net, images, of), rtol=1e-6)
    assert kinds == {(torch.float32, torch.bfloat16)}  # the state stays exact, the slope does not


class Pooled(Branch):
    """One number per sample and channel."""

    def forward(self, x):
        return super().forward(x).mean((2, 3), keepdim=True)


@pytest.mark.parametrize("of", ["slope", "increment"])
def test_a_slope_of_another_shape_is_added_as_torch_would(images, of):
    net, outputs = lively(nb.resnet(**SMALL)).eval(), []
    net.blocks[1].branch.__class__ = Pooled
    net.register_forward_hook(lambda net, args, out: outputs.append(out))
    nb.trace(net, images, of=of)
    with torch.no_grad():
        assert torch.equal(outputs[-1], net(images))


@pytest.mark.parametrize(
    ("dtype", "ordinary"), [(torch.float32, range(-12, 18)), (torch.float64, range(-140, 150))], ids=str
)
def test_norms_of_any_magnitude_are_right_or_not_trusted(dtype, ordinary):
    x = torch.randn(1, 4, 40, 40, dtype=torch.float64)
    limits, length = torch.finfo(dtype), float(torch.linalg.vector_norm(x))
    trusted = set()
    for power in range(int(math.log10(limits.tiny)), int(math.log10(limits.max))):
        recorder = recording.Recorder(["slope"])
        recorder.state(0, (x * 10.0**power).to(dtype))
        recorder.slope(0, (x * 10.0**power).to(dtype))
        if recorder.collect():
            trusted.add(power)
            for norms in (recorder.state_norms, recorder.slope_norms["slope"]):
                np.testing.assert_allclose(norms, length * 10.0**power, rtol=16 * limits.eps)
    assert trusted >= set(ordinary)  # no pass is taken twice without need


@pytest.mark.parametrize("scale", [1e-25, 2e-22, 1e25])
def test_maps_near_the_limits_of_their_precision_are_measured_with_care(images, scale):
    """Squares of 1e-25 are zero in single precision, those of 2e-22 have lost digits, those of 1e25 are infinite."""
    net = nb.resnet(**SMALL, post_activation=False).eval()
    plain = nb.trace(net, images).nsi[:, -1]
    net.blocks[-1].branch.last.weight.data.mul_(scale)
    np.testing.assert_allclose(nb.trace(net, images).nsi[:, -1], scale * plain, rtol=1e-5)


def test_a_branch_that_is_zero_has_no_stiffness(images):
    net = nb.resnet(**SMALL).eval()
    for block in net.blocks:
        torch.nn.init.zeros_(block.branch.last.weight)
        torch.nn.init.zeros_(block.branch.last.bias)
    assert (nb.trace(net, images).nsi == 0).all()


def test_numbers_that_are_none_are_named(images):
    net = nb.resnet(**SMALL).eval()
    net.stages[1].blocks[1].branch.conv1.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match=r"image 0, block 'stages.1.blocks.1': not finite"):
        nb.trace(net, images)
    spoilt = images.clone()
    spoilt[2, 0, 0, 0] = torch.inf
    with pytest.raises(ValueError, match=r"image 2, block 'stages.0.blocks.0'"):
        nb.trace(nb.resnet(**SMALL), spoilt, batch_size=2)
    dark = nb.resnet(**SMALL).eval()
    dark.stem.bn.bias.data.fill_(-1e3)
    with pytest.raises(ValueError, match=r"'stages.0.blocks.0': its state is zero"):
        nb.trace(dark, images)


def test_what_cannot_be_traced_says_why(images):
    net = nb.resnet(**SMALL)
    with pytest.raises(TypeError, match=r"`net` must be a torch module, got str"):
        nb.trace("resnet20", images)
    with pytest.raises(ValueError, match=r"`of` must be 'slope', 'increment', a tuple of both or None, got 'both'"):
        nb.trace(net, images, of="both")
    with pytest.raises(ValueError, match=r"`images` must be a batch .* not empty, got shape \(0, 3, 8, 8\)"):
        nb.trace(net, images[:0, :, :8, :8])
    with pytest.raises(ValueError, match=r"`images` has no batch"):
        nb.trace(net, [])
    with pytest.raises(ValueError, match=r"dtype uint8; divide by 255"):
        nb.trace(net, torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"`images` must be a tensor, a DataLoader or an iterable of batches, got int"):
        nb.trace(net, 3)
    with pytest.raises(ValueError, match=r"`batch_size` must be a positive whole number, got 0"):
        nb.trace(net, images, batch_size=0)
    with pytest.raises(TypeError, match=r"`progress` must be True, or a function"):
        nb.trace(net, images, progress="yes")


def test_tuning_changes_the_time_and_not_the_numbers():
    torch.manual_seed(0)
    net = lively(nb.resnet(depth=8, widths=(4, 4, 4))).eval()
    images = torch.randn(700, 3, 8, 8)
    sizes = []
    tuned = nb.trace(net, images, tune=True, progress=lambda done, total: sizes.append(done))
    np.testing.assert_allclose(tuned.nsi, nb.trace(net, images).nsi, rtol=1e-4)
    assert np.diff(sizes)[:4].tolist() == [16, 32, 64, 128]  # after a first one to warm up
    assert nb.trace(net, images[:40], tune=True, batch_size=20).nsi.shape == (40, 3)


def test_a_record_prints_every_block_and_tns(images):
    record = nb.trace(nb.resnet(14, controller="constant(0.5)"), images)
    first, *blocks, last = str(record).splitlines()
    assert first == repr(record)
    assert [line.split()[0] for line in blocks] == list(record.names)
    assert ["not counted" in line for line in blocks] == record.first.tolist()
    assert all("step size 0.5" in line for line in blocks)
    assert f"NSI {record.nsi[:, 1].mean():.3g} [" in blocks[1]
    assert last.startswith("  TNS 0,")  # one counted block a stage
    assert "no TNS: every stage has one block only" in str(nb.trace(nb.resnet(8), images))
