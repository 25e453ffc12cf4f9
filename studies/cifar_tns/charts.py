"""The charts of the page of `cifar_tns`, from the numbers that its figures show."""

import numpy as np

from studies.cifar_tns.figures import row_name
from studies.lab.figures import looks
from studies.lab.report.charts import DepthChart, Line, NetworksChart, Point, SurfaceChart
from studies.lab.statistics import Estimate, interval_text
from studies.lab.stiffness import KINDS, QUANTITIES
from studies.lab.verdicts import of_kinds

IMAGES = 6  # single images that the slider along depth has
SHARES = {"delta": "images", "proportion": "blocks"}


def colours_of(results) -> dict[str, str]:
    return {name: colour for name, (colour, _) in looks([one.subject for one in results]).items()}


def ends(e: Estimate) -> tuple[float, float, float]:
    return e.value, e.low, e.high


def networks_chart(results, relations, errors) -> NetworksChart:
    """Figures 2 and 7: TNS, scale and shape of every network, and its accuracy against them.

    errors  below and above each accuracy
    """
    points = [
        Point(
            one.name,
            row_name(one),
            one.subject.source,
            (one.accuracy, one.accuracy - below, one.accuracy + above),
            {what: {reading: ends(e) for reading, e in by.items()} for what, by in one.stiffness.items()},
        )
        for one, (below, above) in zip(results, errors, strict=True)
    ]
    notes = {
        what: {
            reading: f"Kendall's tau {interval_text(found.whole.kendall, '+.2f')} over {found.whole.n} kinds of "
            f"networks: {of_kinds(found).kind}."
            for reading, found in by.items()
        }
        for what, by in relations.items()
    }
    assert notes.keys() == QUANTITIES.keys()
    plain = next((one.name for one in results if one.subject.controller == "constant"), "")
    return NetworksChart(points, colours_of(results), "accuracy, %", plain, notes)


def surface_chart(results, surfaces) -> SurfaceChart:
    """Figures 2 and 6: shares of stiff images and blocks over both degrees; `surfaces` by share and reading."""
    readings = {reading: found for (which, reading), found in surfaces.items() if which == "delta"}
    return SurfaceChart(
        {reading: m1 for reading, (m1, _, _) in readings.items()},
        {reading: m2 for reading, (_, m2, _) in readings.items()},
        {words: {reading: surfaces[which, reading][2] for reading in readings} for which, words in SHARES.items()},
        colours_of(results),
    )


def depth_chart(results) -> DepthChart:
    """Figures 1, 3 and 10: NSI of every network at every block, averaged over the images and of single ones."""
    lines = [
        Line(
            one.name,
            row_name(one),
            {(of,): np.vstack([one.records[of].nsi.mean(0), one.records[of].nsi[:IMAGES]]) for of in KINDS},
        )
        for one in results
    ]
    return DepthChart(lines, results[0].records[KINDS[0]].first, colours_of(results), "NSI")
