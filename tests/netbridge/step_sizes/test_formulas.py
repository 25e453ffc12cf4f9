"""Each controller against its paper's formula, written out plainly."""

import math

import pytest
import torch
from torch.nn import functional as F

import netbridge as nb
from netbridge.step_sizes import CBAM, DIA, ECA, FCA, IE, SE, SEM, SGE, SPA, SRM, StepNet


def lively(controller):
    """Away from initial zeros, so that every parameter matters."""
    with torch.no_grad():
        for parameter in controller.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return controller.double()


@pytest.fixture
def maps():
    return torch.randn(3, 32, 8, 8, dtype=torch.float64), torch.randn(3, 32, 8, 8, dtype=torch.float64)


def head(sequence, vector):
    first, _, last = sequence
    hidden = (first.weight @ vector + (0 if first.bias is None else first.bias)).clamp(min=0)
    return last.weight @ hidden + (0 if last.bias is None else last.bias)


def batch_norm(norm, values, dims):
    """In training: over the batch and whatever else is in `dims`."""
    mean, var = values.mean(dims, keepdim=True), values.var(dims, unbiased=False, keepdim=True)
    shape = (1, -1, *(1,) * (values.ndim - 2))
    return (values - mean) / (var + norm.eps).sqrt() * norm.weight.view(shape) + norm.bias.view(shape)


def test_se(maps):
    gate = lively(SE(32, reduction=4))
    wanted = torch.stack([head(gate.excite, f.flatten(1).mean(1)).sigmoid() for f in maps[1]])
    assert torch.allclose(gate(*maps), wanted[:, :, None, None], atol=1e-12)


def test_cbam(maps):
    gate = lively(CBAM(32, reduction=4))
    channel = torch.stack(
        [(head(gate.excite, f.mean((1, 2))) + head(gate.excite, f.flatten(1).max(1).values)).sigmoid() for f in maps[1]]
    )
    seen = maps[1] * channel[:, :, None, None]
    seen = torch.stack((seen.max(1).values, seen.mean(1)), dim=1)
    mixed = F.conv2d(seen, gate.spatial.weight, padding=3)
    spatial = batch_norm(gate.spatial_norm, mixed, (0, 2, 3)).sigmoid()
    assert torch.allclose(gate(*maps), channel[:, :, None, None] * spatial, atol=1e-12)


def test_cbam_starts_with_half_a_spatial_gate(maps):
    gate = CBAM(32).double()
    assert torch.allclose(gate(*maps), 0.5 * super(CBAM, gate).forward(*maps), atol=1e-12)


@pytest.mark.parametrize(("channels", "size"), [(16, 3), (32, 3), (64, 3), (128, 5), (256, 5), (512, 5)])
def test_eca(channels, size):
    f = torch.randn(2, channels, 4, 4, dtype=torch.float64)
    gate = lively(ECA(channels))
    weight = gate.along.weight.flatten()
    assert len(weight) == size
    padded = F.pad(f.mean((2, 3)), (size // 2, size // 2))
    wanted = sum(weight[k] * padded[:, k : k + channels] for k in range(size)).sigmoid()
    assert torch.allclose(gate(None, f)[:, :, 0, 0], wanted, atol=1e-12)


def test_srm(maps):
    gate = lively(SRM(32))
    f = maps[1].flatten(2)
    mean = f.mean(2)
    deviation = (((f - mean[:, :, None]) ** 2).sum(2) / (f.shape[2] - 1) + 1e-5).sqrt()
    wanted = batch_norm(gate.norm, gate.weight[:, 0] * mean + gate.weight[:, 1] * deviation, (0,)).sigmoid()
    assert torch.allclose(gate(*maps)[:, :, 0, 0], wanted, atol=1e-10)


@pytest.mark.parametrize("size", [(8, 8), (14, 21), (4, 5)])
def test_fca(size):
    """A component of the cosine transform, summed position by position."""
    gate = lively(FCA(32, reduction=4))
    f = torch.randn(2, 32, *size, dtype=torch.float64)
    height, width = (max(s, 7) for s in size)
    pooled = F.adaptive_avg_pool2d(f, (height, width))
    rows = [0, 0, 6, 0, 0, 1, 1, 4, 5, 1, 3, 0, 0, 0, 3, 2]
    columns = [0, 1, 0, 5, 2, 0, 2, 0, 0, 6, 0, 4, 6, 3, 5, 2]

    def cosine(u, i, n):
        return math.cos(math.pi * u * (i + 0.5) / n) / math.sqrt(n) * (math.sqrt(2) if u else 1)

    statistic = torch.zeros(2, 32, dtype=torch.float64)
    for c in range(32):
        u, v = rows[c // 2] * (height // 7), columns[c // 2] * (width // 7)
        for i in range(height):
            for j in range(width):
                statistic[:, c] += pooled[:, c, i, j] * cosine(u, i, height) * cosine(v, j, width)
    assert torch.allclose(gate.squeeze(None, f), statistic, atol=1e-10)
    wanted = torch.stack([head(gate.excite, z).sigmoid() for z in statistic])
    assert torch.allclose(gate(None, f)[:, :, 0, 0], wanted, atol=1e-10)


def test_fca_groups():
    with pytest.raises(ValueError, match="`channels` must be a multiple of 16 for fca, got 20"):
        FCA(20)


def test_fca_after_inference_mode_can_train():
    gate, f = FCA(16), torch.randn(1, 16, 9, 9, requires_grad=True)
    with torch.inference_mode():
        gate(None, f)
    gate(None, f).sum().backward()
    assert f.grad is not None


def test_ie(maps):
    gate = IE(32).double()
    assert torch.allclose(gate(*maps), torch.tensor(-1.0, dtype=torch.float64).sigmoid())
    wanted = (lively(gate).weight * maps[1].mean((2, 3)) + gate.bias).sigmoid()
    assert torch.allclose(gate(*maps)[:, :, 0, 0], wanted)


def test_sge(maps):
    gate = lively(SGE(32, groups=8))
    wanted = torch.zeros_like(maps[1])
    for n in range(3):
        for group in range(8):
            part = maps[1][n, 4 * group : 4 * group + 4]
            similarity = (part * part.mean((1, 2), keepdim=True)).sum(0)
            normalised = (similarity - similarity.mean()) / (similarity.std() + 1e-5)
            logits = normalised * gate.weight[group] + gate.bias[group]
            wanted[n, 4 * group : 4 * group + 4] = logits.sigmoid()
    assert torch.allclose(gate(*maps), wanted, atol=1e-12)
    assert SGE(32).groups == 32
    assert SGE(256).groups == 64
    with pytest.raises(ValueError, match="`groups` = 5 must divide the 32"):
        SGE(32, groups=5)


def test_spa(maps):
    gate = lively(SPA(32, reduction=4))
    f = maps[1]
    cells = [f.mean((2, 3), keepdim=True), F.avg_pool2d(f, 4), F.avg_pool2d(f, 2)]
    statistic = torch.cat([cell.flatten(1) for cell in cells], dim=1)
    assert statistic.shape == (3, 21 * 32)
    wanted = torch.stack([head(gate.excite, z).sigmoid() for z in statistic])
    assert torch.allclose(gate(*maps)[:, :, 0, 0], wanted, atol=1e-12)


def test_dia_is_a_long_short_term_memory_over_blocks(maps):
    gate = lively(DIA(32))
    hidden = cell = torch.zeros(3, 32, dtype=torch.float64)
    memory = None
    for f in (maps[1], maps[0], maps[0] - maps[1]):
        h, memory = gate.propose(memory, None, f)
        sums = [
            head(gate.from_input, x) + head(gate.from_hidden, y) for x, y in zip(f.mean((2, 3)), hidden, strict=True)
        ]
        enter, forget, candidate, out = torch.stack(sums).view(3, 4, 32).unbind(1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
        hidden = out.sigmoid() * cell.sigmoid()
        assert torch.allclose(h[:, :, 0, 0], hidden, atol=1e-12)


def test_sem(maps):
    gate = lively(SEM(32, reduction=4))
    se, eca, ie = gate.excitations
    for n, z in enumerate(maps[1].mean((2, 3))):
        on = (gate.switch.weight @ z + gate.switch.bias).sigmoid()
        logits = head(se.excite, z), eca.head(z[None])[0], ie.weight * z + ie.bias
        wanted = math.prod([(switch * logit).sigmoid() for switch, logit in zip(on, logits, strict=True)])
        assert torch.allclose(gate(*maps)[n, :, 0, 0], wanted, atol=1e-12)


def test_where_stepnets_step_size_starts(maps):
    """IE's weight is 0 at first, so every step size is the sigmoid of its bias; the default's spec has no options."""
    for bias in (-1.0, 1.0):
        gate = StepNet(32, bias=bias).double()(*maps)
        assert torch.allclose(gate, torch.tensor(1 / (1 + math.exp(-bias)), dtype=torch.float64))
    assert nb.controller("stepnet", bias=-1.0).as_json() == "stepnet"
    assert nb.controller("stepnet", bias=1.0).as_json() == {"name": "stepnet", "bias": 1.0}


def test_stepnet_in_two_phases(maps):
    x, f = maps
    gate = lively(StepNet(32))
    now, following = gate.join.weight.flatten().view(32, 2).unbind(1)
    joined = now[:, None, None] * x + following[:, None, None] * (x + f)
    pooled = batch_norm(gate.norm, joined, (0, 2, 3)).mean((2, 3))
    assert torch.allclose(gate(x, f)[:, :, 0, 0], (gate.weight * pooled + gate.bias).sigmoid(), atol=1e-12)


@pytest.mark.parametrize("adaptor", ["full", "a", "b", "c", "d"])
@pytest.mark.parametrize("inputs", ["both", "now", "next", "difference"])
def test_stepnet_ablations(inputs, adaptor, maps):
    """Each input set reacts to what it names and to nothing else; with fixed statistics averages may be taken first."""
    x, f = maps
    gate = lively(StepNet(32, inputs=inputs, adaptor=adaptor)).eval()
    parameters = 32 * (2 if inputs == "both" else 1)
    parameters += {"full": 4, "a": 4, "b": 2, "c": 2, "d": 6 if inputs == "both" else 4}[adaptor] * 32
    assert sum(p.numel() for p in gate.parameters()) == parameters
    other = torch.randn_like(x)
    same = {"both": None, "now": (x, other), "next": (other, x + f - other), "difference": (other, f)}[inputs]
    assert not torch.allclose(gate(other, other), gate(x, f))
    if same is not None:
        assert torch.allclose(gate(*same), gate(x, f), atol=1e-12)
    eager = gate.squeeze(x, f)
    gate.training = True  # whole maps; the normalisation inside stays in evaluation
    assert torch.allclose(gate.gate(eager), gate(x, f)[:, :, 0, 0], atol=1e-12)


def test_iebn_scales_every_normalisation_of_branch_and_projection(maps):
    block = nb.resnet(14, controller="iebn", widths=(4, 8, 8), shortcut="B").blocks[2]
    kinds = {name: type(module).__name__ for name, module in block.named_modules() if "bn" in name}
    assert set(kinds.values()) == {"InstanceEnhancedNorm"}
    assert set(kinds) == {"branch.bn1", "branch.bn2", "shortcut.bn"}
    norm = block.branch.bn1
    assert torch.equal(norm.instance_weight, torch.zeros(8))
    assert torch.equal(norm.instance_bias, torch.full((8,), -1.0))
    lively(norm)
    x = maps[0][:, :8]
    gate = (norm.instance_weight * x.mean((2, 3)) + norm.instance_bias).sigmoid()[:, :, None, None]
    mean, var = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    wanted = (x - mean) / (var + norm.eps).sqrt() * (norm.weight.view(1, -1, 1, 1) * gate) + norm.bias.view(1, -1, 1, 1)
    assert torch.allclose(norm(x), wanted, atol=1e-12)
    assert norm.num_batches_tracked == 1
    assert norm.running_mean.abs().sum() > 0
    assert block.controller.propose(None, x, x)[0] * 2.0 == 2.0
