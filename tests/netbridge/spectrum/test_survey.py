"""`block_survey`: the rows are those of single calls, whoever computes them and however often it was interrupted."""

import concurrent.futures

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from tests.netbridge.networks import lively

KINDS = ("residual", "block", "slices", "error")


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return lively(nb.resnet(depth=14, widths=(3, 4, 4), controller="eca")).eval()


@pytest.fixture(scope="module")
def pictures():
    return torch.rand(3, 3, 12, 12, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def table(net, pictures):
    return nb.block_survey(net, pictures, KINDS, rows=20)


def same(one, other):
    assert one.dtype == other.dtype
    assert one.tobytes() == other.tobytes()


def test_rows_are_those_of_single_calls(net, pictures, table):
    states = nb.block_states(net, pictures[1:2])
    name = "stages.1.blocks.1"
    block, x = net.get_submodule(name), states[name]
    for part in ("residual", "block"):
        row = table[(table["image"] == 1) & (table["block"] == name) & (table["kind"] == part)][0]
        spectrum = nb.block_spectrum(block, x, part, dtype=torch.float32)
        for column in ("n", "max_re", "min_re", "negative", "zero", "positive", "non_normality"):
            assert row[column] == pytest.approx(getattr(spectrum, column), rel=1e-4, nan_ok=True), column
    row = table[(table["image"] == 1) & (table["block"] == name) & (table["kind"] == "error")][0]
    assert row["step_error"] == pytest.approx(float(nb.step_error(block, x)), rel=1e-4)


def test_blocks_that_open_a_stage_have_slices_only(net, table):
    opening = [name for name, block in zip(net.block_names, net.blocks, strict=True) if block.opens]
    assert opening
    for name in opening:
        assert set(table["kind"][table["block"] == name]) == {"slices"}


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one(net, pictures, table):
    same(nb.block_survey(net, pictures, KINDS, rows=20, workers=2), table)


def test_any_executor_gives_the_same_bits(net, pictures, table):
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        same(nb.block_survey(net, pictures, KINDS, rows=20, executor=executor), table)


def test_an_interrupted_survey_goes_on_to_the_same_bits(net, pictures, table, tmp_path):
    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nb.block_survey(net, pictures, KINDS, rows=20, cache=tmp_path, on_progress=interrupt)
    started = []
    found = nb.block_survey(
        net, pictures, KINDS, rows=20, cache=tmp_path, on_progress=lambda *done: started.append(done)
    )
    assert started[0][0] > started[0][1] // 2
    same(found, table)


def test_fewer_images_are_found_in_the_cache_of_more(net, pictures, tmp_path):
    whole = nb.block_survey(net, pictures, "residual", cache=tmp_path)
    told = []
    part = nb.block_survey(net, pictures[:2], "residual", cache=tmp_path, on_progress=lambda *done: told.append(done))
    assert told == [(len(part), len(part))]
    same(part, whole[whole["image"] < 2])


def test_a_damaged_file_is_set_aside_and_made_anew(net, pictures, tmp_path, capsys):
    before = nb.block_survey(net, pictures[:1], "residual", cache=tmp_path)
    file = sorted(tmp_path.glob("*.npz"))[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    same(nb.block_survey(net, pictures[:1], "residual", cache=tmp_path), before)
    assert "is damaged" in capsys.readouterr().out


def test_other_weights_are_another_block(net, pictures, tmp_path):
    before = nb.block_survey(net, pictures[:1], "residual", cache=tmp_path)
    other = nb.swap(net, "constant")
    with torch.no_grad():
        for block in other.blocks:
            block.branch.bn2.weight.mul_(0.5)
    after = nb.block_survey(other, pictures[:1], "residual", cache=tmp_path)
    assert not np.array_equal(before["max_re"], after["max_re"])


def test_norms_bound_the_spectrum(net, pictures):
    spectra, norms = (
        nb.block_survey(net, pictures[:1], kind, gate="frozen", dtype=torch.float64) for kind in ("increment", "norms")
    )
    assert (norms["log_norm"] >= spectra["max_re"] - 1e-8).all()
    assert (norms["log_norm"] >= norms["soderlind"]).all()
    assert (norms["largest_singular"] >= spectra["spectral_radius"] * (1 - 1e-6)).all()


class Counting(nn.Module):
    """Somebody's block: in training its normalisation learns from each pass, its dropout draws; it counts its calls."""

    def __init__(self, pair=False):
        super().__init__()
        self.norm, self.drop, self.conv = nn.BatchNorm2d(3), nn.Dropout(0.5), nn.Conv2d(3, 3, 3, padding=1)
        self.register_buffer("calls", torch.zeros(()))
        self.pair = pair

    def forward(self, x):
        self.calls += 1
        new = x + self.drop(self.conv(torch.relu(self.norm(x))))
        return (new, None) if self.pair else new


def test_a_strangers_network_is_left_as_it_was(pictures):
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm2d(3), Counting(), Counting()).train()
    net[1].norm.eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    modes, drawn = [module.training for module in net.modules()], torch.get_rng_state()
    assert len(nb.block_survey(net, pictures[:2], ("residual", "error"))) == 8
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [module.training for module in net.modules()] == modes
    assert torch.equal(torch.get_rng_state(), drawn)


def test_a_block_may_return_more_than_its_state(pictures):
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Counting(pair=True)

        def forward(self, x):
            return self.block(x)[0]

    assert list(nb.block_survey(Takes(), pictures[:1], "residual")["block"]) == ["block"]


def test_images_that_are_no_batch_are_told_so(net):
    measures = (nb.block_survey, nb.block_states, nb.state_grams, nb.perturbation_bound)
    for measure in measures:
        for images in ({"x": torch.rand(1, 3, 8, 8)}, (torch.rand(1, 3, 8, 8), torch.rand(1)), torch.rand(0, 3, 8, 8)):
            with pytest.raises(TypeError, match=r"`images` must be one batch \(N, ...\), a tensor or an array, got"):
                measure(net, images)
    assert list(nb.block_states(net, np.zeros((1, 3, 8, 8), np.float32))) == net.block_names


def test_an_unknown_kind_is_refused(net, pictures):
    with pytest.raises(ValueError, match=r"`kinds` may hold 'residual', .* got 'branch'"):
        nb.block_survey(net, pictures, ("branch",))


class Still(nn.Module):
    """relu(x + 0 conv(x))"""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 1)
        self.factor = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return torch.relu(x + self.factor * self.conv(x))


@pytest.mark.parametrize("values", ["full", "extremes"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_branch_of_zeros_has_a_spectrum_and_norms_of_zeros(values, channels):
    found = nb.block_survey(
        nn.Sequential(Still(channels)), torch.ones(1, channels, 2, 2), ("increment", "block", "norms"), values=values
    )
    increment, block, norms = found
    assert [increment[name] for name in ("max_re", "min_re", "spectral_radius", "zero")] == [0.0, 0.0, 0.0, 1.0]
    assert [block[name] for name in ("max_re", "positive")] == [1.0, 1.0]
    assert [norms[name] for name in ("log_norm", "soderlind", "largest_singular")] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("values", ["full", "extremes"])
def test_a_block_whose_outputs_are_all_dead_has_zeros_only(values):
    class Smooth(Still):
        def forward(self, x):
            return torch.relu(x + torch.tanh(self.conv(x)) - 100.0)

    spectrum = nb.block_spectrum(Smooth(2), torch.ones(1, 2, 2, 2), "block", values)
    assert (spectrum.n, spectrum.max_re, spectrum.min_re, spectrum.zero) == (8, 0.0, 0.0, 1.0)


def test_norms_of_a_single_unit():
    class One(Still):
        def forward(self, x):
            return x + self.conv(torch.relu(x))

    block = One(1)
    nn.init.constant_(block.conv.weight, -3.0)
    (row,) = nb.block_survey(nn.Sequential(block), torch.ones(1, 1, 1, 1), "norms", blocks=["0"])
    assert row["largest_singular"] == pytest.approx(3.0)
    assert row["log_norm"] == pytest.approx(-3.0)


def test_the_slowest_decay_on_which_the_largest_stable_step_depends_is_no_end_of_a_spectrum(net, pictures):
    full, ends = (nb.block_survey(net, pictures[:1], "residual", values=values) for values in ("full", "extremes"))
    large = full["n"] > 100  # ends of smaller ones are taken from all
    assert np.isfinite(full["stable_step"]).all()
    assert np.isnan(ends["stable_step"][large]).all()
