"""`odelab.maths`: one spelling for numbers, arrays, tensors and compiled code, with one answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab import maths
from tests.without import needs_numba

ELEMENTARY = ("exp", "log", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "sqrt", "abs", "sign")
PYTHONS = {"arctan": math.atan, "abs": math.fabs, "sign": lambda x: math.copysign(1.0, x) if x else 0.0}
PAIRS = ("maximum", "minimum")
numbers = st.floats(-20.0, 20.0)
every_function = pytest.mark.parametrize("name", ELEMENTARY)


def domain(name, x):
    return abs(x) + 0.1 if name in ("log", "sqrt") else x


@every_function
@given(x=numbers)
def test_numbers(name, x):
    x = domain(name, x)
    expected = PYTHONS.get(name, getattr(math, name, None))(x)
    assert getattr(maths, name)(x) == pytest.approx(expected, rel=1e-14, abs=1e-300)


@every_function
@given(x=st.lists(numbers, min_size=1, max_size=5))
def test_arrays_are_numbers_one_by_one(name, x):
    function = getattr(maths, name)
    x = [domain(name, v) for v in x]
    np.testing.assert_allclose(function(np.array(x)), [function(v) for v in x], rtol=1e-14)


@every_function
@settings(max_examples=30)
@given(x=st.lists(numbers, min_size=1, max_size=5))
def test_tensors_are_arrays(name, x):
    torch = pytest.importorskip("torch")
    function = getattr(maths, name)
    x = np.array([domain(name, v) for v in x])
    answer = function(torch.from_numpy(x))
    assert isinstance(answer, torch.Tensor)
    np.testing.assert_allclose(answer.numpy(), function(x), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", PAIRS)
@given(x=numbers, y=numbers)
def test_the_larger_and_the_smaller(name, x, y):
    torch = pytest.importorskip("torch")
    function, expected = getattr(maths, name), {"maximum": max, "minimum": min}[name](x, y)
    assert function(x, y) == expected
    assert function(np.array([x, y]), y).tolist() == [expected, y]
    for pair in ((torch.tensor(x, dtype=torch.float64), y), (x, torch.tensor(y, dtype=torch.float64))):
        answer = function(*pair)
        assert answer.dtype == torch.float64
        assert float(answer) == expected


@given(x=numbers, y=numbers, condition=st.booleans())
def test_where(x, y, condition):
    torch = pytest.importorskip("torch")
    expected = x if condition else y
    assert maths.where(condition, x, y) == expected
    assert np.ndim(maths.where(condition, x, y)) == 0
    assert maths.where(np.array([condition, not condition]), x, y).tolist() == [expected, y if condition else x]
    flag = torch.tensor(condition)
    tensor = torch.tensor(x, dtype=torch.float64)
    for answer in (maths.where(flag, tensor, y), maths.where(condition, tensor, y), maths.where(flag, x, y)):
        assert answer.dtype == torch.float64
        assert float(answer) == expected


@pytest.mark.parametrize("name", PAIRS)
def test_nan_is_passed_on(name):
    torch = pytest.importorskip("torch")
    function = getattr(maths, name)
    for pair in ((math.nan, 1.0), (1.0, math.nan)):
        assert math.isnan(function(*pair))
        assert math.isnan(function(np.array([pair[0]]), pair[1])[0])
        assert math.isnan(float(function(torch.tensor(pair[0]), torch.tensor(pair[1]))))


def test_gradients_pass():
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    maths.where(x > 0.0, maths.exp(x), maths.maximum(x, -0.5) * 3.0).sum().backward()
    np.testing.assert_allclose(x.grad, [math.exp(0.3), 0.0])


def everything(x, y):
    """One function of all of them, so that the compiler is called once."""
    return (
        maths.exp(x),
        maths.log(maths.abs(x) + 0.1),
        maths.sin(x),
        maths.cos(x),
        maths.tan(x),
        maths.arctan(x),
        maths.sinh(x),
        maths.cosh(x),
        maths.tanh(x),
        maths.sqrt(maths.abs(x)),
        maths.abs(x),
        maths.sign(x),
        maths.maximum(x, y),
        maths.minimum(x, y),
        maths.where(x > y, x, y),
        maths.pi * x,
    )


@needs_numba
def test_compiled_code_agrees():
    from odelab.engines.numba.jit import jit

    compiled = jit(everything)
    rng = np.random.default_rng(0)
    for x, y in [*rng.uniform(-5.0, 5.0, (40, 2)), (0.0, 0.0), (1.0, 1.0)]:
        np.testing.assert_allclose(compiled(x, y), everything(x, y), rtol=1e-14, atol=1e-300)
    for pair in ((math.nan, 1.0), (1.0, math.nan)):
        assert np.isnan(compiled(*pair)[12:14]).all()


def test_without_torch_nothing_asks_for_it(monkeypatch):
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    assert maths.exp(0.0) == 1.0
    assert isinstance(maths.exp(0.0), float)
