"""Vision Transformers: the hand-written network to the bit, steps and controllers, and what the paper says of them."""

import copy

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from netbridge.model import vit
from netbridge.step_sizes.spec import Spec
from netbridge.train import loop
from netbridge.train.journal import header_fields
from odelab import core
from tests.netbridge import networks
from tests.netbridge.train import runs

SMALL = {"size": 16, "features": 24, "depth": 2, "heads": 2}
CONSTANTS = [
    "constant(-0.3)",
    nb.asr("se"),
    nb.asr("se", activation="tanh", init=1e-3, inner=1e-3),
    nb.asr(None, init=1e-3),
    nb.asr("srm", uses=2, activation="tanh"),
    nb.asr("dia"),
]
OURS = [name for name in nb.controllers() if name != "iebn" and Spec(name).kind.__module__.startswith("netbridge.")]


class PlainAttention(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax((q * (d // self.heads) ** -0.5) @ k.transpose(-2, -1), -1)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, t, d))


class PlainBlock(nn.Module):
    def __init__(self, features, heads, width):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(features), PlainAttention(features, heads)
        self.norm2, self.first, self.last = (
            nn.LayerNorm(features),
            nn.Linear(features, width),
            nn.Linear(width, features),
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.last(F.gelu(self.first(self.norm2(x))))


class PlainViT(nn.Module):
    """A Vision Transformer on tokens as one would write it, with the weights of one of ours."""

    def __init__(self, net):
        super().__init__()
        (features,), heads = net.config["widths"], net.config["heads"]
        self.patches = copy.deepcopy(nn.Sequential(net.stem.conv, net.stem.bn, net.stem.second))
        self.position = nn.Parameter(net.stem.position.detach().flatten(2).transpose(1, 2).clone())
        width = net.blocks[1].branch.first.out_features
        self.blocks = nn.ModuleList(PlainBlock(features, heads, width) for _ in net.blocks[::2])
        self.norm, self.head = copy.deepcopy(net.head.norm), copy.deepcopy(net.head.fc)
        for mine, attention, mlp in zip(self.blocks, net.blocks[::2], net.blocks[1::2], strict=True):
            for ours, theirs in (
                (mine.norm1, attention.branch.norm),
                (mine.attention.qkv, attention.branch.qkv),
                (mine.attention.proj, attention.branch.last),
                (mine.norm2, mlp.branch.norm),
                (mine.first, mlp.branch.first),
                (mine.last, mlp.branch.last),
            ):
                ours.load_state_dict(theirs.state_dict())
        self.to(net.stem.position.dtype).train(net.training)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def small(controller="constant", **options):
    return networks.lively(nb.vit(**SMALL | options, controller=controller)).eval()


def pictures(count=3, size=(16, 16), dtype=torch.float32):
    return torch.randn(count, 3, *size, dtype=dtype)


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


class TestTheHandWrittenNetwork:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    @pytest.mark.parametrize("stem", ["patch", "conv"])
    def test_logits_are_the_same_bits(self, stem, dtype):
        net, x = small(stem=stem).to(dtype), pictures(dtype=dtype)
        with torch.no_grad():
            assert torch.equal(net(x), PlainViT(net)(x))

    def test_so_are_logits_in_training_and_the_gradients_agree(self):
        net, x = small(stem="conv").train(), pictures()
        plain = PlainViT(net)
        ours, theirs = net(x), plain(x)
        assert torch.equal(ours, theirs)
        ours.square().sum().backward()
        theirs.square().sum().backward()
        for mine, other in (
            (net.stem.conv, plain.patches[0]),
            (net.blocks[0].branch.qkv, plain.blocks[0].attention.qkv),
            (net.blocks[3].branch.last, plain.blocks[1].last),
        ):
            torch.testing.assert_close(mine.weight.grad, other.weight.grad, rtol=1e-4, atol=1e-6)

    def test_torchs_own_attention_is_not_called_on_a_cpu(self, monkeypatch):
        monkeypatch.setattr(F, "scaled_dot_product_attention", None)
        small().train()(pictures()).sum().backward()

    def test_every_step_is_the_solvers(self, monkeypatch):
        calls, original = [], core.integrate
        monkeypatch.setattr(core, "integrate", lambda *args: calls.append(args) or original(*args))
        small(depth=3)(pictures())
        assert len(calls) == 6
        monkeypatch.setattr(core, "integrate", lambda *args: (0, args[9], args[8], 0, 0))
        net = small()
        assert torch.equal(net(pictures(1) * 0), net.head(net.stem(pictures(1) * 0)))

    def test_first_weights(self):
        net = nb.vit()
        for module in net.modules():
            if isinstance(module, nn.Linear):
                assert float(module.weight.detach().std()) == pytest.approx(0.02, rel=0.2)
                assert not module.bias.any()
        assert float(net.stem.position.detach().std()) == pytest.approx(0.02, rel=0.2)

    def test_parameters(self):
        """Of a block: two LayerNorms, 4 d^2 + 4 d of the attention, and 2 r d^2 + (r + 1) d of the MLP."""
        d, depth, r, patch = 96, 6, 2, 4
        block = 4 * d + 4 * d * d + 4 * d + 2 * r * d * d + (r + 1) * d
        outside = 3 * patch * patch * d + d + 64 * d + 2 * d + 10 * d + 10
        assert parameters(nb.vit()) == depth * block + outside


class TestTracing:
    def test_the_index_is_the_formula_at_every_step(self):
        net, x = small("se").double(), pictures(dtype=torch.float64)
        slopes, states = [], []
        for block in net.blocks:
            block.branch.register_forward_pre_hook(lambda f, inputs: states.append(inputs[0].clone()))
            block.branch.register_forward_hook(lambda f, inputs, out: slopes.append(out))
        with torch.no_grad():
            net(x)
        wanted = torch.stack(
            [f.flatten(1).norm(dim=1) / u.flatten(1).norm(dim=1) for u, f in zip(states, slopes, strict=True)], dim=1
        )
        record = nb.trace(net, x)
        np.testing.assert_allclose(record.nsi, wanted.numpy(), rtol=1e-12)
        assert record.names == tuple(f"stages.0.blocks.{i}" for i in range(4))
        assert list(record.first) == [True, False, False, False]
        assert set(record.stage) == {0}

    def test_the_same_layers_as_a_strangers_have_the_same_steps(self):
        net = small().double()
        x = pictures(dtype=torch.float64)
        theirs = nb.trace(PlainViT(net), x)
        np.testing.assert_allclose(theirs.nsi, nb.trace(net, x).nsi, rtol=1e-12)

    def test_increment_and_slope_are_one_without_a_gate(self):
        slope, increment = nb.trace(small(), pictures(), of=("slope", "increment"))
        np.testing.assert_allclose(slope.nsi, increment.nsi, rtol=1e-5)

    def test_attention_and_mlp_apart(self):
        """The total of the kinds is that of two records, of attentions and of MLPs, as two stages."""
        record = nb.trace(small(depth=4), pictures())
        apart = record.by_kind()
        assert list(apart.stage) == [0, 1] * 4
        assert list(apart.first) == [True, True] + [False] * 6
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        names, first = [record.names[k] for k in order], ([True] + [False] * 3) * 2
        sorted_out = nb.Record(record.nsi[:, order], [0] * 4 + [1] * 4, first, names, "slope")
        for mu in ("sample", "dataset"):
            np.testing.assert_allclose(apart.tns(mu), sorted_out.tns(mu), rtol=1e-12)
            assert not np.allclose(apart.tns(mu), record.tns(mu))
        assert list(apart.by_kind(1).stage) == list(apart.stage)

    def test_hooks_on_blocks_fire_and_may_change_the_state(self):
        net, x, seen = small(), pictures(), []
        with torch.no_grad():
            before = net(x)
            for block in net.blocks:
                block.register_forward_hook(lambda block, inputs, out: seen.append((out.shape, out.stride())))
            net(x)
            handle = net.blocks[2].register_forward_hook(lambda block, inputs, out: inputs[0])
            without = net(x)
            handle.remove()
            assert torch.equal(net(x), before)
        assert set(seen) == {((3, 24, 4, 4), (384, 1, 96, 24))}  # maps in the memory of tokens
        seen.clear()
        net.train()(x).sum().backward()
        assert set(seen) == {((3, 24, 4, 4), (384, 1, 96, 24))}
        assert not torch.allclose(without, before)

    def test_what_a_hook_keeps_is_not_overwritten(self):
        net, x, kept = small(), pictures(), []
        for block in net.blocks:
            block.branch.last.register_forward_hook(lambda layer, inputs, out: kept.append((out, out.clone())))
        with torch.no_grad():
            net(x)
        assert all(torch.equal(out, copied) for out, copied in kept)

    @pytest.mark.slow
    @pytest.mark.parametrize("part", ["residual", "block"])
    def test_the_extremes_of_a_steps_spectrum(self, part):
        net, x = small("se", features=16, size=8), pictures(1, (8, 8))
        states = nb.block_states(net, x)
        for name in ("stages.0.blocks.0", "stages.0.blocks.1"):
            block, state = net.get_submodule(name), states[name]
            found = nb.block_spectrum(block, state, part=part, values="extremes")
            twin, u = copy.deepcopy(block).double(), state.double()
            function = twin.branch if part == "residual" else lambda x, twin=twin: twin(x.clone())
            jacobian = torch.autograd.functional.jacobian(function, u).reshape(u.numel(), u.numel())
            wanted = torch.linalg.eigvals(jacobian).real
            assert found.max_re == pytest.approx(float(wanted.max()), rel=1e-6)
            assert found.min_re == pytest.approx(float(wanted.min()), rel=1e-6)


class TestStepSizes:
    @pytest.mark.parametrize("name", OURS)
    def test_every_controller_acts_as_on_maps(self, name):
        net, x = small(name, features=64), pictures(2, (16, 24))
        with torch.no_grad():
            u, memory = net.stem(x), None
            for block in net.blocks:
                maps, f = u.contiguous(), block.branch(u)  # the maps of a network of convolutions, in their memory
                h, memory = block.controller.propose(memory, maps, f.contiguous())
                u = maps + h * f.contiguous()
            assert networks.relative_error(net(x), net.head(u)) < 1e-5

    @hypothesis.settings(deadline=None, max_examples=10)
    @hypothesis.given(rows=some.integers(1, 5), columns=some.integers(1, 5), features=some.sampled_from([2, 6, 16]))
    def test_tokens_are_maps_seen_otherwise(self, rows, columns, features):
        maps = torch.randn(2, features, rows, columns).contiguous(memory_format=torch.channels_last)
        tokens = vit.tokens_of(maps)
        assert torch.equal(vit.maps_of(tokens, (rows, columns)), maps)
        assert tokens.is_contiguous()
        assert tokens.data_ptr() == vit.maps_of(tokens, (rows, columns)).data_ptr() == maps.data_ptr()
        assert torch.equal(tokens[:, columns * (rows - 1)], maps[:, :, rows - 1, 0])

    def test_stepnet_on_tokens(self):
        """sigmoid(w * mean over tokens of BN(W_c . (x_c, x_c + f_c)) + b), one adaptor a step, the first step too."""
        net = small("stepnet").double()
        x = torch.randn(3, 16, 24, dtype=torch.float64)
        for block in net.blocks:
            gate = block.controller
            f = vit.tokens_of(block.branch(vit.maps_of(x, (4, 4))))
            weight = gate.join.weight.view(24, 2)
            y = weight[:, 0] * x + weight[:, 1] * (x + f)
            norm = gate.norm
            y = (y - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias
            h = torch.sigmoid(gate.weight * y.mean(1) + gate.bias)
            wanted = x + h[:, None] * f
            torch.testing.assert_close(vit.tokens_of(block(vit.maps_of(x, (4, 4)))), wanted, rtol=1e-12, atol=1e-12)
        assert parameters(nb.vit(controller="stepnet")) - parameters(nb.vit()) == 12 * 6 * 96

    def test_on_one_kind_of_step(self):
        def names(net):
            return [block.controller.name for block in net.blocks]

        assert names(nb.vit(**SMALL, controller="se", on="attention")) == ["se", "constant"] * 2
        assert names(nb.vit(**SMALL, controller="se", on="mlp")) == ["constant", "se"] * 2
        assert names(nb.vit(**SMALL, controller="se", on=[-1, "stages.0.blocks.0"])) == ["se"] + 2 * ["constant"] + [
            "se"
        ]

    def test_layer_scale_is_a_learnt_constant(self):
        net, plain = nb.vit(**SMALL, controller="asr(init=1e-3)").eval(), nb.vit(**SMALL).eval()
        assert parameters(net) - parameters(plain) == 4 * 24
        block, u = net.blocks[0], torch.randn(2, 24, 4, 4)
        assert torch.equal(block(u), u + 1e-3 * torch.ones(1, 24, 1, 1) * block.branch(u))
        assert block.controller.psi.requires_grad

    def test_a_controller_of_batch_normalisations_is_refused(self):
        with pytest.raises(ValueError, match="'iebn' gates batch normalisations"):
            nb.vit(**SMALL, controller="iebn")
        with pytest.raises(ValueError, match="'iebn' gates batch normalisations"):
            nb.swap(nb.vit(**SMALL), "iebn")

    @pytest.mark.parametrize("grid", [{"method": "RK4"}, {"depth_factor": 2}])
    def test_other_methods_and_grids(self, grid):
        net, u = small(depth=1, **grid).double(), torch.randn(2, 24, 4, 4, dtype=torch.float64)
        for block in net.blocks:
            f, layer = block.branch, vit.Stage([block], 0, net.stages[0].method, net.config["depth_factor"])
            if "method" in grid:
                k1 = f(u)
                k2 = f(u + k1 / 2)
                k3 = f(u + k2 / 2)
                wanted = u + (k1 + 2 * k2 + 2 * k3 + f(u + k3)) / 6
            else:
                half = u + f(u) / 2
                wanted = half + f(half) / 2
            torch.testing.assert_close(layer(u), wanted, rtol=1e-12, atol=1e-12)
        assert nb.trace(net, pictures(dtype=torch.float64)).nsi.shape[1] == 2 * grid.get("depth_factor", 1)


class TestSurgery:
    @pytest.mark.parametrize("controller", CONSTANTS, ids=str)
    def test_merged_is_the_same_function(self, controller):
        net, x = small(controller).double(), pictures(dtype=torch.float64)
        merged = nb.merge(net)
        with torch.no_grad():
            assert networks.relative_error(merged(x), net(x)) < 1e-12
            single = nb.merge(net.float())
            assert networks.relative_error(single(x.float()), net(x.float())) < 1e-5
        assert merged.state_dict().keys() == nb.vit(**SMALL).state_dict().keys()

    def test_inserting_into_a_strangers_and_merging_is_the_same(self):
        plain, x = PlainViT(small().double()), pictures(dtype=torch.float64)
        gated = nb.insert(plain, nb.asr("se"), x)
        with torch.no_grad():
            assert networks.relative_error(nb.merge(gated)(x), gated(x)) < 1e-12
            assert networks.relative_error(gated(x), plain(x)) > 1e-3

    def test_swap_there_and_back(self):
        net, x = small("se"), pictures()
        other = nb.swap(net, "stepnet")
        assert [block.controller.name for block in other.blocks] == ["stepnet"] * 4
        back = nb.swap(other, net)
        with torch.no_grad():
            assert not torch.equal(other(x), net(x))
            assert torch.equal(back(x), net(x))

    @pytest.mark.parametrize("controller", ["constant", "stepnet", "dia", nb.asr("se", activation="tanh")], ids=str)
    def test_saved_and_loaded(self, controller, tmp_path):
        net, x = small(controller, stem="conv", ratio=1.5, method="RK4"), pictures()
        again = nb.load(nb.save(net, tmp_path / "vit.safetensors", about={"seed": 4}))
        assert again.config == net.config
        assert again.config["family"] == "vit"
        assert again.about == {"seed": 4}
        with torch.no_grad():
            assert torch.equal(again(x), net(x))

    def test_folding_takes_the_norm_out_of_the_stem(self, tmp_path):
        net, x = small(stem="conv").double(), pictures(dtype=torch.float64)
        folded = nb.fold(net)
        again = nb.load(nb.save(folded, tmp_path / "folded.safetensors"))
        with torch.no_grad():
            assert networks.relative_error(folded(x), net(x)) < 1e-12
            assert torch.equal(again(x), folded(x))
            plain = small()
            assert torch.equal(nb.fold(plain)(x.float()), plain(x.float()))
        assert isinstance(folded.stem.bn, nn.Identity)

    def test_a_damaged_configuration_is_refused(self, tmp_path):
        net = small()
        for wrong in ({"heads": "two"}, {"heads": 5}, {"blocks": [4, 4]}, {"size": None}, {"stem": "round"}):
            net.config, right = net.config | wrong, net.config
            with pytest.raises(ValueError, match="its architecture cannot be rebuilt"):
                nb.load(nb.save(net, tmp_path / "damaged.safetensors"))
            net.config = right


class TestImages:
    def test_positions_are_interpolated_and_never_exceeded(self):
        net = small()
        with torch.no_grad():
            for parameter in net.stem.conv.parameters():
                parameter.zero_()
            ramp = torch.arange(4.0)
            net.stem.position.copy_(ramp.expand_as(net.stem.position))
            found = net.stem(torch.zeros(1, 3, 16, 32))[0, 0, 0]
            torch.testing.assert_close(found[1:-1], torch.linspace(0.25, 2.75, 6))
            net.stem.position.copy_((ramp > 1.5).expand_as(net.stem.position))
            found = net.stem(torch.zeros(1, 3, 16, 32))
        assert 0 <= float(found.min()) < float(found.max()) <= 1

    def test_positions_on_another_grid(self):
        net = small()
        with torch.no_grad():
            net.stem.position.copy_(torch.randn(24)[:, None, None].expand(24, 4, 4))
            x = torch.zeros(1, 3, 24, 32)
            found = net.stem(x)
        assert found.shape == (1, 24, 6, 8)
        torch.testing.assert_close(found, found[:, :, :1, :1].expand_as(found))
        assert net(torch.randn(2, 3, 8, 8)).shape == (2, 10)

    def test_wrong_images_and_arguments(self):
        with pytest.raises(ValueError, match=r"multiples of the patch, 4; got 18 x 16"):
            small()(pictures(1, (18, 16)))
        with pytest.raises(ValueError, match=r"`x` must be images \(N, 3, height, width\)"):
            small()(torch.rand(2, 1, 16, 16))
        for wrong, message in (
            ({"size": 18}, "`size` = 18 must be a multiple of `patch` = 4"),
            ({"heads": 5}, "`heads` = 5 must divide `features` = 24"),
            ({"stem": "conv", "patch": 1}, "`patch` = 1 must be even"),
            ({"ratio": 0.01}, "`ratio` must be"),
            ({"depth": 0}, "`depth` must be a positive integer"),
            ({"features": 0}, "`features` must be a positive integer"),
            ({"stem": "imagenet"}, "`stem` must be one of"),
            ({"on": "heads"}, "`on` must name blocks"),
        ):
            with pytest.raises(ValueError, match=message):
                nb.vit(**SMALL | wrong)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_an_epoch_of_digits(self, dtype):
        net = nb.vit(size=8, patch=2, features=16, depth=2, heads=2, controller="stepnet")
        assert header_fields(net) == {
            "controller": "stepnet",
            "depth": 10,  # layers with weights
            "width": 16,
            "network": "vit",
        }
        data, before = runs.few(), copy.deepcopy(net.state_dict())
        recipe = runs.recipe(epochs=1, optimizer="adamw", lr=2e-3, evaluate_every=1)
        log = loop.train(net, data, recipe, seed=0, device="cpu", quiet=True, dtype=dtype)
        assert log
        changed = [name for name, x in net.state_dict().items() if not torch.equal(x, before[name])]
        assert {"stem.position", "stages.0.blocks.0.branch.qkv.weight"} <= set(changed)
        assert all(bool(x.isfinite().all()) for x in net.state_dict().values())


class TestTheStepNetPaper:
    """Appendix G: a transformer's attention as a step size."""

    @pytest.fixture
    def attention(self):
        """Tokens that are normalised already, and the branch's Q, K, V of them, each (N, T, C), in float64."""
        branch = networks.lively(nb.vit(size=32, features=24, depth=1, heads=2)).blocks[0].branch.double()
        with torch.no_grad():
            branch.qkv.weight.normal_(std=24**-0.5)
        z = branch.norm(torch.randn(2, 9, 24, dtype=torch.float64))
        return branch, z, *branch.qkv(z).detach().chunk(3, dim=-1)

    def test_equation_32_is_an_average_over_tokens_and_no_product_with_the_slope(self, attention):
        """Every row of the softmax sums to 1: equal values come back unchanged, a step of exactly 1. As the factor of a
        product with V, element by element, attention would be negative in places and above 1 in others.
        """
        *_, q, k, v = attention
        weights = torch.softmax(q @ k.transpose(1, 2) / 24**0.5, dim=-1)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 9, dtype=torch.float64))
        equal = v[:, :1].expand_as(v)
        torch.testing.assert_close(weights @ equal, equal)
        factor = (weights @ v) / v
        assert float((factor < 0).double().mean()) > 0.1
        assert float((factor > 1).double().mean()) > 0.05

    def test_equation_33_holds_as_far_as_the_condition_of_the_values_allows(self, attention):
        """Q = f1(f3^-1(V)) with the value map of all heads together, to rounding times its condition."""
        branch, _, q, _, v = attention
        (wq, _, wv), (bq, _, bv) = branch.qkv.weight.chunk(3), branch.qkv.bias.chunk(3)
        back = torch.linalg.solve(wv, (v - bv).transpose(1, 2)).transpose(1, 2)
        error = (back @ wq.T + bq - q).norm() / q.norm()
        assert error <= 10 * torch.finfo(torch.float64).eps * torch.linalg.cond(wv)

    def test_equation_33_fails_for_a_single_head(self, attention):
        """A head's value map goes to fewer dimensions: tokens it cannot tell apart have different queries."""
        branch, z, *_ = attention
        wq, _, wv = branch.qkv.weight.detach().chunk(3)
        z = z.detach()
        wq, wv = wq[:12], wv[:12]
        unseen = torch.linalg.svd(wv).Vh[-1]
        other = z + unseen
        torch.testing.assert_close(other @ wv.T, z @ wv.T)
        assert float((other @ wq.T - z @ wq.T).norm(dim=-1).min()) > 0.1
