"""Every figure is drawn and not blank; what it shows is what the data says."""

import numpy as np
import pytest

import odelab as ol
from odelab import plot
from odelab.plot import style


def ink(drawing, tmp_path):
    """The share of pixels that are not white, from the file a reader would open."""
    from matplotlib.image import imread

    (png,) = style.save(drawing, tmp_path / "figure", ("png",))
    return float((imread(png)[..., :3] < 0.9).any(axis=-1).mean())


@pytest.fixture(scope="module")
def run():
    return ol.solve(ol.problems.van_der_pol(mu=5.0).replace(t_span=(0.0, 20.0)), ol.DOPRI5)


def test_trajectory(run, tmp_path):
    drawing = run.plot()
    assert ink(drawing, tmp_path) > 0.01
    solution, steps = drawing.axes[:2]
    assert len(solution.lines) == 2
    assert steps.get_yscale() == "log"
    np.testing.assert_allclose(solution.lines[0].get_ydata()[-1], run.u[-1, 0])


def test_a_figure_that_is_written_by_hand_has_the_pixels_of_the_others(tmp_path):
    """Saved by `figure.savefig` it had half of them."""
    from matplotlib.image import imread

    drawing = plot.stability_region(ol.RK4, size=20)
    drawing.savefig(tmp_path / "by_hand.png")
    (ours,) = style.save(drawing, tmp_path / "ours", ("png",))
    assert imread(tmp_path / "by_hand.png").shape == imread(ours).shape


def test_trajectory_of_many_components_is_an_image(tmp_path):
    run = ol.solve(ol.problems.heat_1d(n=20).replace(t_span=(0.0, 0.01)), ol.DOPRI5)
    assert ink(run.plot(), tmp_path) > 0.05


def test_trajectory_backwards_and_on_a_logarithmic_axis(tmp_path):
    problem = ol.problems.dahlquist()
    backwards = ol.solve(problem.replace(t_span=(1.0, 0.0)), ol.DOPRI5)
    assert ink(backwards.plot(), tmp_path) > 0.01
    forwards = ol.solve(problem.replace(t_span=(0.0, 1.0)), ol.DOPRI5)
    drawing = forwards.plot(log_time=True)
    assert drawing.axes[1].get_xscale() == "log"
    assert ink(drawing, tmp_path) > 0.01


def test_stability_region_and_cloud(run, tmp_path):
    drawing = plot.stability_region([ol.DOPRI5, ol.RK4], run)
    assert ink(drawing, tmp_path) > 0.05
    cloud = drawing.axes[0].collections[-1].get_offsets()
    assert len(cloud) == 2 * 200
    left, right = drawing.axes[0].get_xlim()
    assert left < -ol.DOPRI5.real_boundary < right


@pytest.mark.parametrize("method", [ol.EULER, ol.RK4, ol.DOPRI5, ol.RKF45], ids=lambda method: method.name)
def test_a_bounded_region_lies_within_its_frame(method):
    """With its islands, such as those of DOPRI5 beside the imaginary axis: no step of an edge is stable."""
    plane = plot.stability_region(method, size=60).axes[0]
    (left, right), (low, high) = plane.get_xlim(), plane.get_ylim()
    x, y = np.linspace(left, right, 400), np.linspace(low, high, 400)
    edges = np.concatenate([left + 1j * y, right + 1j * y, x + 1j * low, x + 1j * high])
    assert (np.abs(method.stability(edges)) > 1.0).all()


def test_stability_regions_of_stabilised_and_implicit_methods(tmp_path):
    drawing = plot.stability_region([ol.RKC2, ol.RK4], stages=6)
    assert ink(drawing, tmp_path) > 0.05
    left, _ = drawing.axes[0].get_xlim()
    assert left < -ol.RKC2.boundary(6)
    assert [text.get_text() for text in drawing.axes[0].get_legend().get_texts()] == ["RKC2, 6 stages", "RK4"]
    for method in (ol.BDF, ol.LSODA, "RK4"):
        with pytest.raises(TypeError, match="`method` must be a method with a stability function"):
            plot.stability_region(method)


def test_what_an_implicit_method_leaves_out_is_in_the_frame(tmp_path):
    """All but a bounded part of the right half plane is stable, and the frame holds that part."""
    methods = [ol.ROS2, ol.RODAS4, ol.RODAS5P, ol.RADAU]
    drawing = plot.stability_region(methods, size=100)
    assert ink(drawing, tmp_path) > 0.05
    left, right = drawing.axes[0].get_xlim()
    height = drawing.axes[0].get_ylim()[1]
    for method in methods:
        edge = np.concatenate([right + 1j * np.linspace(0, height, 50), np.linspace(left, right, 50) + 1j * height])
        assert (np.abs(method.stability(edge)) <= 1.0).all()
        assert np.abs(method.stability(np.array([0.5 + 0j]))) > 1.0
        assert np.abs(method.stability(-1e9)) < 1e-7
    both = plot.stability_region([ol.DOPRI5, ol.RODAS4], size=60)
    assert both.axes[0].get_xlim()[0] < -ol.DOPRI5.real_boundary
    turns = plot.stability_region(ol.AUTO, size=60)
    assert [text.get_text() for text in turns.axes[0].get_legend().get_texts()] == ["DOPRI5", "RODAS4"]


@pytest.mark.slow
@pytest.mark.parametrize("J", [[[-1.0, 10.0], [0.0, -2.0]], np.diag([-1.0, -2.0]), [[-3.0]], np.zeros((2, 2))])
def test_pseudospectrum(J, tmp_path):
    found = ol.pseudospectrum(J, points=15)
    drawing = found.plot()
    assert ink(drawing, tmp_path) > 0.02
    plane, bar = drawing.axes
    np.testing.assert_array_equal(plane.lines[-1].get_xdata(), found.eigenvalues.real)
    assert "change" in bar.get_ylabel()
    assert ink(plot.pseudospectrum(found, levels=[-1.0, -0.5, 0.0]), tmp_path) > 0.02


def test_work_precision(tmp_path):
    data = ol.work_precision(ol.problems.brusselator(), [ol.RK4, ol.DOPRI5], rtol=(1e-3, 1e-5, 1e-7))
    assert ink(data.plot(), tmp_path) > 0.01


def test_costs_are_named_one_by_one_or_together():
    data = ol.work_precision(ol.problems.rigid_body(), ol.DOPRI5, rtol=(1e-3, 1e-5), engine="python")
    assert [axis.get_xlabel() for axis in data.plot(against="steps").axes] == ["steps"]
    with pytest.raises(ValueError, match=r"`against` must name costs among .*, got 'time'"):
        data.plot(against=("steps", "time"))


def test_orders(tmp_path):
    problem = ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
    found = {method.name: ol.observed_order(method, problem, engine="python") for method in (ol.HEUN, ol.RODAS4)}
    drawing = plot.orders(found)
    assert ink(drawing, tmp_path) > 0.01
    axis = drawing.axes[0]
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), found["HEUN"].error)
    reference = axis.lines[1]
    slope = np.diff(np.log(reference.get_ydata())) / np.diff(np.log(reference.get_xdata()))
    np.testing.assert_allclose(slope, found["HEUN"].order)
    assert len(plot.orders(found["RODAS4"]).axes[0].lines) == 2
    with pytest.raises(TypeError, match="`found` must be"):
        plot.orders([ol.RK4])


def test_every_method_has_a_region_of_its_own():
    """Beyond the eighth, methods were left out without a word."""
    methods = {**ol.METHODS, "RODAS4": ol.RODAS4, "RADAU": ol.RADAU}
    assert len(methods) > len(style.COLOURS)
    drawing = plot.stability_region(methods, size=40)
    handles = drawing.legends[0].legend_handles
    assert len({(line.get_color(), line.get_linestyle()) for line in handles}) == len(methods)


def test_indicators(run, tmp_path):
    ind = ol.indicators(run.problem, run)
    drawing = plot.indicators(ind, run)
    assert ink(drawing, tmp_path) > 0.01
    assert [axis.get_ylabel() for axis in drawing.axes] == ["u", "step size h", "stiffness"]


def test_the_same_figure_twice_is_the_same_file(tmp_path):
    first, second = (style.save(plot.stability_region(ol.RK4, size=20), tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    png, svg = first
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text().startswith("<?xml")
