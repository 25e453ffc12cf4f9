"""Batches from whatever holds them: masks, labels, dictionaries, and what is told where a batch cannot be used."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import netbridge as nb
from tests.netbridge.foreign import networks as foreign
from tests.netbridge.foreign.residual import WIDTH, Base, literal, stack


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, WIDTH)
        self.blocks = nn.ModuleList(Base() for _ in range(2))

    def forward(self, ids, mask=None):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x if mask is None else x * mask[..., None])
        return x.mean(1)


class TestBatches:
    @pytest.fixture
    def net(self):
        torch.manual_seed(0)
        return Masked()

    def test_masks_are_kept(self, net):
        ids, mask = torch.randint(0, 10, (7, 5)), torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0]).expand(7, 5).clone()
        wanted = nb.trace(net, ids, call=lambda net, ids: net(ids, mask[: len(ids)])).nsi
        assert np.abs(wanted / nb.trace(net, ids).nsi - 1).max() > 1e-3
        batch = {"ids": ids, "mask": mask, "labels": torch.zeros(7)}
        for images in ([batch], batch, [(batch, torch.zeros(7))]):
            np.testing.assert_allclose(nb.trace(net, images).nsi, wanted, rtol=1e-5)
        cut = nb.trace(net, [batch], batch_size=3, outputs=True)
        np.testing.assert_allclose(cut.nsi, wanted, rtol=1e-5)
        with torch.no_grad():
            np.testing.assert_allclose(cut.outputs, net(ids, mask), rtol=1e-5)
        loader = DataLoader(TensorDataset(ids, mask, torch.zeros(7)), batch_size=4)
        called = nb.trace(net, loader, call=lambda net, batch: net(batch[0], mask=batch[1]))
        np.testing.assert_allclose(called.nsi, wanted, rtol=1e-5)

    def test_more_than_images_and_labels_needs_a_word(self, net):
        ids = torch.randint(0, 10, (7, 5))
        with pytest.raises(TypeError, match=r"`images` yields 3 tensors at a time.* call=lambda net, batch"):
            nb.trace(net, [(ids, ids, ids)])
        with pytest.raises(TypeError, match=r"dictionaries with \['ids', 'segment'\]"):
            nb.trace(net, [{"ids": ids, "segment": ids}])
        with pytest.raises(TypeError, match=r"is a data set .*DataLoader"):
            nb.trace(net, TensorDataset(ids))

    def test_arguments_that_are_missing_need_a_word(self):
        class Timed(Base):
            def forward(self, x, time):
                return x + time * self.branch(x)

        batch = torch.randn(4, WIDTH), torch.rand(4, 1)
        for images in (batch, [batch]):
            with pytest.raises(TypeError, match=r"cannot be called with the images alone: .* 'time'. Say how"):
                nb.trace(Timed(), images)
        assert nb.trace(Timed(), [batch], call=lambda net, batch: net(*batch)).nsi.shape == (4, 1)

    def test_what_is_returned_may_be_a_dataclass(self):
        x = torch.randn(6, WIDTH)

        @dataclasses.dataclass
        class Output:
            hidden: torch.Tensor

        class Returning(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = stack(Base)

            def forward(self, x):
                return Output(self.net(x))

        found = nb.trace(Returning(), x, outputs=True)
        np.testing.assert_allclose(found.nsi, literal(stack(Base), x), rtol=1e-5)
        assert found.outputs.shape == x.shape

    def test_one_image_without_its_first_axis_is_told_so(self):
        net = foreign.shaken(foreign.VisionResNet())
        for images in (torch.randn(3, 32, 32), [torch.randn(3, 32, 32)] * 2):
            with pytest.raises(ValueError, match=re.escape("must be a batch (N, ...), got shape (3, 32, 32)")):
                nb.trace(net, images)


def test_images_with_their_channels_last_are_named():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    with pytest.raises(ValueError, match=r"got shape \(2, 8, 8, 3\), whose channels come last; images\.permute"):
        nb.trace(net, torch.rand(2, 8, 8, 3))
    with pytest.raises(RuntimeError, match="to have 3 channels"):  # neither here nor there
        nb.trace(net, torch.rand(2, 5, 8, 8))
