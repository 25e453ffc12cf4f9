"""Every class of results, of both packages, draws itself, shows itself in a notebook, is a table, and can be kept."""

import inspect
import typing

import numpy as np
import pytest
import torch

import netbridge as nb
import odelab as ol
from odelab.files.saved import CLASSES, REGISTERED
from odelab.results import Result

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

# Returned by public functions to be handed to others: problems, methods, step sizes, networks. TnsParts is two numbers.
INPUTS = {
    "Controller", "JacobianOperator", "Problem", "StabilisedMethod", "SwitchingMethod", "Wrt", "Spec", "Monitor",
    "TnsParts",
}  # fmt: skip


def classes_in(hint):
    if isinstance(hint, type):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


def returned(package):
    """The classes of ours that public functions say they return."""
    for name, value in vars(package).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            hint = inspect.unwrap(value).__annotations__.get("return")
            hint = vars(inspect.getmodule(inspect.unwrap(value))).get(hint) if isinstance(hint, str) else hint
            yield from classes_in(hint)


def results_of(package):
    """Public classes whose objects users are given, and not made by users or handed on."""
    public = {value for name, value in vars(package).items() if inspect.isclass(value) and not name.startswith("_")}
    for cls in {*public, *returned(package)}:
        ours = cls.__module__.split(".")[0] in ("odelab", "netbridge")
        plain = issubclass(cls, tuple) and hasattr(cls, "_fields")  # a few values with names
        made = issubclass(cls, Exception | torch.nn.Module) or cls.__name__ in INPUTS
        if ours and not plain and not made and (cls in set(returned(package)) or package is nb):
            yield cls


@pytest.mark.parametrize("package", [ol, nb], ids=["odelab", "netbridge"])
def test_every_class_of_results_has_the_mixin(package):
    found = set(results_of(package))
    assert len(found) > 8
    assert {cls.__name__ for cls in found if not issubclass(cls, Result)} == set()


class Block(torch.nn.Linear):
    def forward(self, x):
        return x + 0.5 * torch.tanh(super().forward(x))


@pytest.fixture(scope="module")
def results():
    torch.manual_seed(0)
    net, images = nb.resnet(20, widths=(4, 4, 4), controller="se").eval(), torch.rand(3, 3, 8, 8)
    state = torch.rand(2, 4, 4)
    plain = nb.resnet(14, widths=(4, 4, 4), controller=nb.asr("se")).eval()

    return [
        nb.trace(net, images),
        nb.trace(net, images, of=("slope", "increment")),
        nb.trace(net, images, keep=True),
        nb.Monitor(net, images).step(),
        nb.gates(net, images)[0],
        nb.attention_values(nb.vit(depth=1), torch.rand(2, 3, 32, 32))[0],
        nb.explain(torch.nn.Sequential(Block(4, 4), Block(4, 4)), torch.rand(3, 4)),
        nb.perturbation_bound(plain, images, search=1),
        nb.slice_spectrum(nb.resnet(8, widths=(2, 2, 2)).eval().blocks[0], state),
        nb.diagnose(net, images),
        nb.pretrained(),
        ol.participation([[-1000.0, 1.0], [0.0, -1.0]])[0],
    ]


def test_each_of_netbridge_is_among_those_that_are_tried(results):
    assert {type(result).__name__ for result in results} >= {cls.__name__ for cls in results_of(nb)}


def test_each_has_figures_a_page_and_a_table(results):
    for result in results:
        assert result._repr_html_().count("<img") == bool(result.kinds), type(result)
        assert len({len(column) for column in result.table().values()}) == 1
        for kind in result.kinds:
            axes = Figure().subplots()
            assert result.plot(kind, ax=axes) is axes.figure
            assert axes.has_data() or axes.images
            assert result.plot(kind)._repr_png_().startswith(b"\x89PNG")


def test_one_without_figures_says_so(results):
    (explanation,) = (result for result in results if not result.kinds)
    with pytest.raises(ValueError, match="has no figure"):
        explanation.plot()


def equal(one, other) -> bool:
    """The same bits, in things of the same kind."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and equal(vars(one), vars(other))
    if isinstance(one, torch.Tensor | np.ndarray):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and np.asarray(one).tobytes() == np.asarray(other).tobytes()
        )
    return one == other or (one != one and other != other)


def test_those_of_netbridge_are_kept_in_files_with_the_same_bits(results, tmp_path):
    kept = [result for result in results if type(result).__name__ in REGISTERED]
    assert {type(result).__name__ for result in kept} == set(REGISTERED)
    for result in kept:
        assert equal(ol.load(ol.save(result, tmp_path / type(result).__name__)), result), type(result)


def test_a_class_that_is_not_known_yet_names_its_package(results, tmp_path, monkeypatch):
    path = ol.save(results[0], tmp_path / "record")
    monkeypatch.delitem(REGISTERED, "Record")
    with pytest.raises(ValueError, match="holds a Record of netbridge; import netbridge first"):
        ol.load(path)
    with pytest.raises(TypeError, match=f"must be one of {', '.join(CLASSES)}"):
        ol.save(results[0], path)
