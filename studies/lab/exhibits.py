"""Exhibits: of one claim, figure or table of a paper the rule, the judgement, the figure and the tables stand together.

A study ends with the tuple of its exhibits, in the order of the paper. `write` puts them on a page: the findings of all
of them first, then what each of them shows.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from studies.lab.page import Page
from studies.lab.verdicts import Finding


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """What a study shows of one claim, figure or table of a paper.

    heading  what stands above it on the page; "" where it goes on below the exhibit before it
    show     a function (page, evidence) that draws its figures and writes its tables and words; where it puts nothing
             on the page, the heading is left out
    judge    a function of the evidence, without any other effect, that gives the findings which rest on this exhibit;
             None where no claim does

    >>> from studies.lab.verdicts import SUPPORTED
    >>> claim = Finding("Attention raises NSI.", "Figure 2", SUPPORTED, "By 0.2.")
    >>> figure_2 = Exhibit("Figure 2", lambda page, evidence: page.words(f"NSI: {evidence}"), lambda evidence: [claim])
    >>> [finding.where for finding in judge((figure_2,), 1.2)]
    ['Figure 2']
    """

    heading: str
    show: Callable[[Page, Any], None]
    judge: Callable[[Any], Iterable[Finding]] | None = None


def judge(exhibits: Iterable[Exhibit], evidence) -> list[Finding]:
    """The findings that rest on these exhibits, in their order.

    exhibits  the exhibits of a study
    evidence  what its functions take: one object that holds all that was measured
    """
    return [finding for exhibit in exhibits if exhibit.judge for finding in exhibit.judge(evidence)]


def write(page: Page, exhibits: Iterable[Exhibit], evidence, *words: str) -> None:
    """Put exhibits on a page: all findings, then `words`, paragraphs that all of them are to be read with, then each.

    page      the page, open
    exhibits  the exhibits of a study, in order
    evidence  what its functions take
    words     paragraphs; empty ones are left out
    """
    exhibits = tuple(exhibits)
    page.findings(judge(exhibits, evidence))
    page.words(*words)
    show(page, exhibits, evidence)


def show(page: Page, exhibits: Iterable[Exhibit], evidence) -> None:
    """Put on a page what each of these exhibits shows, below its heading; no findings."""
    for exhibit in exhibits:
        before = len(page.parts)
        if exhibit.heading:
            page.heading(exhibit.heading)
        above = len(page.parts)
        exhibit.show(page, evidence)
        if len(page.parts) == above:
            del page.parts[before:]
