"""The benchmarks of networks run, in their smallest size, and find no wrong answer."""

import pytest
import torch

from benchmarks.net import __main__ as net
from benchmarks.net import forward
from benchmarks.net.networks import Size


def test_a_pass_through_integrate_has_the_bits_of_the_same_layers_by_hand():
    small = Size(depths=(8,), batch=2, rounds=2, seconds=1.0, quick=True)
    rows = list(forward.forward(small))
    assert rows
    assert not [row.wrong for row in rows if row.wrong]


def test_merged_networks_are_the_unmerged_ones():
    rows = list(forward.exactness(Size(depths=(8,), batch=2, rounds=2, seconds=1.0, quick=True)))
    assert [row.ours < 1.0 for row in rows] == [True, True]


@pytest.mark.slow
def test_every_section_runs(tmp_path):
    threads = torch.get_num_threads()
    try:
        assert net.main(["--quick", "--only", "forward", "merging", "tracing", "--out", str(tmp_path / "net.md")]) == 0
    finally:
        torch.set_num_threads(threads)
    assert "ResNet-20" in (tmp_path / "net.md").read_text()
