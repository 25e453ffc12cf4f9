"""Whatever people write, the trace is the literal index or an error: random residual networks against hooks."""

import copy

import hypothesis
import hypothesis.strategies as some
import numpy as np

import netbridge as nb
from tests.netbridge.foreign.random_networks import literal, networks


@hypothesis.given(drawn=networks(), batch_size=some.sampled_from([None, 2, 3]))
@hypothesis.settings(deadline=None, max_examples=20)
def test_the_index_of_a_network_is_the_literal_one(drawn, batch_size):
    net, x = drawn
    wanted = literal(copy.deepcopy(net), x)
    hypothesis.assume(bool(wanted.isfinite().all()))  # a state may be zero, which is refused in words
    modes = [module.training for module in net.modules()]
    record = nb.trace(net, x, batch_size=batch_size)
    assert record.names == tuple(str(i + 1) for i in range(wanted.shape[1]))
    np.testing.assert_allclose(record.nsi, wanted, rtol=1e-9)
    assert [module.training for module in net.modules()] == modes
    assert all(block.calls == 0 and block.kept == [] and block.f.table is None for block in list(net)[1:-1])
