"""Exhibits on a page: findings come before what they rest on, and a heading does not stand above nothing."""

import pytest

from studies.lab import exhibits
from studies.lab.exhibits import Exhibit
from studies.lab.page import Page
from studies.lab.verdicts import SUPPORTED, UNDECIDED, Finding
from tests.studies.pages import Arguments


@pytest.fixture
def page(tmp_path):
    return Page("tricks", Arguments(tmp_path), "Title")


def finding(claim, verdict=SUPPORTED):
    return Finding(claim, "Figure 1", verdict, "Words.")


FIRST = Exhibit("First", lambda page, x: page.words(f"x is {x}"), lambda x: [finding("a"), finding("b", UNDECIDED)])
SECOND = Exhibit("Second", lambda page, x: page.words("more"))
EMPTY = Exhibit("Empty", lambda page, x: None, lambda x: [finding(f"c{x}")])


def contents(page):
    return [part.get("words") or part["finding"].claim for part in page.parts]


def test_findings_come_first_and_then_each_exhibit_in_its_order(page):
    exhibits.write(page, (FIRST, EMPTY, SECOND), 3, "", "With this.")
    assert contents(page) == ["a", "b", "c3", "With this.", "First", "x is 3", "Second", "more"]
    assert [one["claim"] for one in page.numbers["findings"]] == ["a", "b", "c3"]


def test_a_judgement_draws_nothing(page):
    said = exhibits.judge((FIRST, SECOND, EMPTY), 3)
    assert [one.verdict for one in said] == [SUPPORTED, UNDECIDED, SUPPORTED]
    assert not page.parts
