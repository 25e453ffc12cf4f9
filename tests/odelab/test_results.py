"""What every result can do: figures of its own, into given axes too, a page of a notebook, and a table."""

import sys

import numpy as np
import pytest

import odelab as ol
from odelab.results import Result

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

RELAXATION = ol.problems.van_der_pol(mu=10.0)


@pytest.fixture(scope="module")
def results():
    sol = ol.solve(RELAXATION, ol.DOPRI5)
    starts = np.random.default_rng(0).uniform(1.0, 2.0, (20, 2))
    stack = -np.arange(1.0, 4.0)[:, None, None] * np.eye(2) * [1.0, 1000.0]
    return [
        sol,
        ol.solve(RELAXATION),
        ol.solve(ol.Problem(lambda t, u, params: (1j * u[0],), [1.0 + 0.0j], (0.0, 1.0))),
        ol.indicators(RELAXATION, sol, every=50),
        ol.ensemble(RELAXATION, ol.RODAS4, u0=starts, t_eval=np.linspace(0.0, 10.0, 11)),
        ol.ensemble(ol.problems.dahlquist(), ol.DOPRI5, u0=np.ones((5, 1))),
        ol.spectrum(np.diag([-1.0, -2.0, -3.0])),
        ol.spectrum(np.ones((3, 2))),
        ol.pseudospectrum([[-1.0, 10.0], [0.0, -2.0]], points=20),
        ol.theorem2(np.diag([-1000.0, -1.0]), [1.0, 1.0], [-1000.0, -1.0]),
        ol.theorem2(stack, np.ones((3, 2)), np.ones((3, 2))),
        ol.work_precision(ol.problems.rigid_body(), ol.DOPRI5, rtol=(1e-3, 1e-5), engine="python"),
        ol.observed_order(ol.RK4, ol.problems.rigid_body(), engine="python"),
        ol.global_error(sol),
        ol.modes(RELAXATION),
        ol.lyapunov(ol.problems.lorenz(), ol.DOPRI5, t=10.0),
        ol.diagnose(RELAXATION),
    ]


@pytest.mark.slow
def test_every_class_of_results_has_figures_a_page_and_a_table(results):
    for result in results:
        assert isinstance(result, Result)
        assert result._repr_html_().count("<img") == 1, result
        assert len({len(column) for column in result.table().values()}) == 1


@pytest.mark.slow
def test_every_figure_draws_into_axes_of_the_users_or_says_which_do(results):
    for result in results:
        for kind, path in result.kinds.items():
            if (kind, result) == ("fan", results[5]) or (kind == "phase" and result is results[2]):
                continue
            axes = Figure().subplots()
            if kind not in ("overview", "costs", "steps") or ":draw_" in path:
                assert result.plot(kind, ax=axes) is axes.figure
                assert axes.has_data() or axes.patches
            else:
                with pytest.raises(ValueError, match="figures of one panel"):
                    result.plot(kind, ax=axes)
            assert result.plot(kind)._repr_png_().startswith(b"\x89PNG")  # a notebook shows it without pyplot


def test_an_unknown_figure_names_the_known_ones(results):
    with pytest.raises(ValueError, match="'overview', 'solution', 'steps'"):
        results[0].plot("nonsense")


def test_quantiles_over_time_need_times(results):
    with pytest.raises(ValueError, match="t_eval"):
        results[5].plot("fan")


def test_a_table_needs_pandas_and_says_so(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        results[0].to_dataframe()


def test_a_table_holds_the_numbers_of_the_result(results):
    sol = results[0]
    table = sol.table()
    assert (table["t"] == sol.step_t).all()
    assert (table["u1"] == sol.step_u[:, 1]).all()
    assert (table["h"][1:] == sol.h).all()


def test_without_matplotlib_a_notebook_gets_the_sentences(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = results[0]._repr_html_()
    assert "<img" not in shown
    assert "held back" in shown or "reached t" in shown
