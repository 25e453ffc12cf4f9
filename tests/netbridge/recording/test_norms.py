"""Norms of feature maps: the same bits wherever they are taken, and no digit lost by adding many squares."""

import hashlib
import itertools
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import torch

from netbridge.recording import norms as of_maps
from netbridge.recording.norms import measure_by_numpy, norms_of_pieces, plain_norms
from tests.clock import HANGS

ROOT = Path(__file__).parents[3]
SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # the largest relative error of one rounding

of_any_size = hypothesis.given(
    size=some.tuples(some.integers(1, 3), some.integers(1, 40), some.integers(1, 9), some.integers(1, 9)),
    channels_last=some.booleans(),
    power=some.integers(-12, 12),
)


@pytest.fixture
def compiled(monkeypatch):
    """Every map is large enough for the compiled loop."""
    monkeypatch.setattr(of_maps, "LARGE", 0)


@pytest.fixture
def uncompiled(monkeypatch):
    """No map is large enough, nor all of them together."""
    monkeypatch.setattr(of_maps, "LARGE", math.inf)
    monkeypatch.setattr(of_maps, "MANY", math.inf)


def whole(pieces):
    return torch.linalg.vector_norm(pieces.double(), dim=1)


def exact(x):
    """The norms by sums in which nothing is rounded but the end, of squares in double precision."""
    return [math.sqrt(math.fsum(row * row)) for row in x.double().flatten(1).numpy()]


@of_any_size
@hypothesis.settings(deadline=None, max_examples=40)
def test_a_norm_is_the_norm_but_for_the_roundings_that_its_sum_needs(size, channels_last, power):
    x = torch.randn(size, dtype=torch.float64) * 10.0**power
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    bound = (4 + x[0].numel() / of_maps.BLOCK + 5) * DOUBLE / 2 + 2 * DOUBLE
    np.testing.assert_allclose(whole(plain_norms(x)), exact(x), rtol=bound)
    np.testing.assert_allclose(whole(plain_norms(x.float())), exact(x.float()), rtol=3 * SINGLE)
    np.testing.assert_allclose(whole(plain_norms(x.transpose(2, 3))), exact(x), rtol=bound)
    numbers = x[0].numel()  # in whatever order torch adds them
    np.testing.assert_allclose(whole(norms_of_pieces(x)), exact(x), rtol=(numbers + 3) * DOUBLE)
    np.testing.assert_allclose(whole(norms_of_pieces(x.float())), exact(x.float()), rtol=(numbers + 3) * SINGLE)


@pytest.mark.slow
@of_any_size
@hypothesis.settings(deadline=None, max_examples=40)
def test_every_way_gives_the_same_bits(size, channels_last, power):
    """Whether NumPy or the compiled loop measures, in how many threads, alone or beside another map, in which batch."""
    maps = torch.randn(2, *size) * 10.0**power
    for dtype in (torch.float32, torch.float64):
        x, other = (m.to(dtype, memory_format=torch.channels_last if channels_last else None) for m in maps)
        u = of_maps.rows_of(x)
        wanted = measure_by_numpy(u)
        assert u.shape == (size[0], math.prod(size[1:]))
        np.testing.assert_array_equal(of_maps.run_loop(u)[0], wanted)
        for row, norm in zip(u, wanted, strict=True):
            assert measure_by_numpy(row[None]) == norm
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "get_num_threads", lambda: 3)
            patch.setattr(of_maps, "LARGE", 0)
            np.testing.assert_array_equal(of_maps.run_loop(u)[0], wanted)
            if dtype is torch.float32:
                both = of_maps.advance_compiled(x, other)
                np.testing.assert_array_equal(both[0], wanted)


@of_any_size
@hypothesis.settings(deadline=None, max_examples=10)
def test_the_loop_that_also_adds_is_torchs_operations(size, channels_last, power):
    state, slope = torch.randn(2, *size) * 10.0**power
    if channels_last:
        state, slope = (x.contiguous(memory_format=torch.channels_last) for x in (state, slope))
    slope[0, 0, 0, 0] = -state[0, 0, 0, 0]
    wanted, norms = torch.relu(state + slope), [plain_norms(x) for x in (state, slope)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_maps, "LARGE", 0)
        measured = of_maps.advance_compiled(state, slope)
    assert torch.equal(slope, wanted)
    assert all(map(torch.equal, measured, norms))


WAYS = pytest.mark.parametrize("way", ["compiled", "uncompiled"])


@WAYS
@pytest.mark.parametrize("value", [0.7, 1.0 + 2.0**-12, 1.0 / 3.0])
def test_long_rows_lose_no_digits_even_where_all_errors_have_one_sign(way, value, request):
    """All numbers are equal: a sum with one accumulator loses three digits, one with four of them one digit."""
    request.getfixturevalue(way)
    x = torch.full((2, 1 << 18), value)
    np.testing.assert_allclose(whole(plain_norms(x)), exact(x), rtol=3 * SINGLE)


@WAYS
def test_a_map_that_is_no_number_has_no_norm(way, request):
    request.getfixturevalue(way)
    x = torch.ones(3, 1000)
    x[0, 7], x[1, 999], x[2, 130] = torch.nan, torch.inf, 1e30
    assert plain_norms(x).flatten().tolist()[1:] == [math.inf, math.inf]
    assert plain_norms(x)[0].isnan()


def test_a_step_passes_on_what_is_no_number(compiled):
    slope = torch.randn(1, 200)
    slope[0, 7] = slope[0, 199] = torch.nan
    of_maps.advance_compiled(torch.randn(1, 200), slope)
    assert slope.isnan().sum() == 2


def test_maps_that_torch_has_to_add_are_left_to_it(compiled):
    images = torch.randn(4, 3, 32, 32)
    for other in (images.double(), images.transpose(2, 3), images.bfloat16()):
        assert of_maps.advance_compiled(other, other.clone(memory_format=torch.contiguous_format)) is None
    assert of_maps.advance_compiled(images, images.bfloat16()) is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_other_types_are_measured_in_single_precision(dtype, monkeypatch):
    monkeypatch.setattr(of_maps, "PORTION", 1000)  # a sample or two at a time
    x = torch.randn(5, 3, 12, 12, dtype=dtype)
    wide = torch.view_as_real(x) if x.is_complex() else x.float()
    np.testing.assert_array_equal(plain_norms(x), plain_norms(wide))


def test_the_compiler_waits_for_a_large_map_or_for_many_small_ones(monkeypatch):
    monkeypatch.setattr(of_maps, "measured", type(of_maps.measured)())
    monkeypatch.setattr(of_maps, "MANY", 10000)
    small = np.dtype(np.float32)
    assert [of_maps.is_worth_compiling(1, small, 4000) for _ in range(4)] == [False, False, True, True]
    assert not of_maps.is_worth_compiling(2, small, 4000)  # another loop
    assert of_maps.is_worth_compiling(2, small, of_maps.LARGE)
    assert of_maps.is_worth_compiling(2, small, 1)


def norms_of_known_rows():
    """In single and in double precision, each compiled and by NumPy, as hexadecimal digits."""
    for dtype, length in itertools.product((np.float32, np.float64), (3, 700, 5000)):
        rows = ((np.arange(2 * length).reshape(2, length) * 40503 % 65536 - 16384) / 1000.0).astype(dtype)
        for norms in (of_maps.run_loop(rows)[0], measure_by_numpy(rows)):
            yield from (float(norm).hex() for norm in norms[:, 0])


def test_the_bits_are_those_of_every_other_machine():
    digest = hashlib.sha256(" ".join(norms_of_known_rows()).encode()).hexdigest()
    assert digest[:16] == "afe30379bf597fa3"


PROCESSORS = {"without wide vectors": {"NUMBA_CPU_NAME": "generic"}}
if platform.machine() in ("x86_64", "AMD64"):
    PROCESSORS["with AVX2"] = {"NUMBA_CPU_NAME": "haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
def test_another_processor_gives_the_same_bits(processor, tmp_path):
    changed = {"NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path), **PROCESSORS[processor]}
    code = "from tests.netbridge.recording.test_norms import norms_of_known_rows; print(*norms_of_known_rows())"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | changed, capture_output=True, text=True, timeout=HANGS, check=True
    )
    assert done.stdout.split() == list(norms_of_known_rows())
