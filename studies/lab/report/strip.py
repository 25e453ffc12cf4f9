"""The strip of claims: each finding as one row of plain values, which record, page, terminal and index all show."""

import math
import re

MARKS = {  # of a verdict: the sign in its circle, and the class that colours it
    "supported": ("✓", "for"),
    "contradicted": ("✕", "against"),
    "no difference": ("=", "against"),
    "true of some, the rest undecided": ("◐", "for"),
    "false of some, the rest undecided": ("◐", "against"),
    "true of some, false of others": ("◐", "split"),
    "depends on the reading": ("↔", "split"),
    "undecided": ("?", "open"),
    "not run": ("-", "open"),
    "cannot be asked here": ("-", "open"),
}
WIDTH, HEIGHT = 120.0, 34.0  # of the drawn intervals of one claim
NUMBERS = ("value", "low", "high")  # of a case
LISTED = 2  # so many intervals are written out; of more, the range
LONGEST = 90  # characters of a sentence that stands in the strip for want of an interval


def row_of(finding) -> dict:
    """A finding as the strip shows it.

    finding  a `studies.lab.verdicts.Finding`

    Returns plain values: claim, where, paper (its number), here (the estimates with intervals), n, verdict, detail,
    decides (what would decide it), words, cases (each interval as it was measured) and rule (name, text, fixed, None).

    >>> from studies.lab.verdicts import Estimate, Finding, of_interval
    >>> verdict = of_interval(Estimate(0.5, -0.5, 1.5, n=3))
    >>> row = row_of(Finding("Attention helps.", "Table 1", verdict, "So far."))
    >>> row["here"], row["n"], row["verdict"], row["decides"]
    ('+0.50 [-0.50, +1.50]', '3', 'undecided', 'n = 12')
    """
    rule, verdict = finding.rule, finding.verdict
    cases = [plain_case(case) for case in verdict.cases]
    return {
        "claim": finding.claim,
        "where": finding.where,
        "paper": rule.paper if rule else "",
        "here": say_cases(cases, rule.unit if rule else "") or shorten(finding.words),
        "n": say_units(cases, finding),
        "verdict": verdict.kind,
        "detail": verdict.detail,
        "decides": say_what_decides(finding),
        "words": finding.words,
        "cases": cases,
        "rule": rule and {"name": rule.name, "text": rule.text, "fixed": rule.fixed},
    }


def plain_case(case) -> dict:
    """An interval as it was measured, None where there is no number; it is compared with the number `against`."""
    e = case.estimate
    ends = {name: float(x) if math.isfinite(x := getattr(e, name) + e.origin) else None for name in NUMBERS}
    return {"name": case.name, **ends, "against": float(e.origin), "n": int(e.n), "needed": case.needed}


def numbers(case: dict) -> list[float]:
    """The value and the ends of the interval, as far as they are known."""
    return [case[name] for name in NUMBERS if case[name] is not None]


def is_bare(case: dict) -> bool:
    """Is there no interval?"""
    return case["low"] is None or case["high"] is None


def say_cases(cases: list[dict], unit: str) -> str:
    """The intervals in words: up to LISTED of them one by one, more by the range of their values."""
    cases = [case for case in cases if case["value"] is not None]
    if not cases or (len(cases) > LISTED and len({case["against"] for case in cases}) > 1):
        return ""
    largest = max(abs(x) for case in cases for x in numbers(case))
    form = f"{'+' * (not any(case['against'] for case in cases))}.{3 if largest < 0.1 else 2 if largest < 20 else 1}f"
    unit = f" {unit}" if unit else ""
    if len(cases) > LISTED:
        least, most = (f"{of(case['value'] for case in cases):{form}}" for of in (min, max))
        bare = ", no interval" * all(map(is_bare, cases))
        return f"{least}{f' to {most}' * (least != most)}{unit} in {len(cases)} cases{bare}"
    return "; ".join(say_case(case, form) + unit for case in cases)


def say_case(case: dict, form: str) -> str:
    """One interval, or the value alone where there is none or it is known exactly."""
    if is_bare(case):
        return f"{case['value']:{form}}, no interval"
    if case["low"] == case["high"]:
        return f"{case['value']:{form}}"
    return f"{case['value']:{form}} [{case['low']:{form}}, {case['high']:{form}}]"


def shorten(words: str) -> str:
    """The first sentence, cut at a word where it is long."""
    first = re.split(r"(?<=[.;])\s", words, maxsplit=1)[0].rstrip(".;")
    return first if len(first) <= LONGEST else first[: LONGEST - 2].rsplit(" ", 1)[0] + " …"


def say_units(cases: list[dict], finding) -> str:
    """How many units there are, and of what; from the sentences where the verdict has no interval."""
    counts = sorted({case["n"] for case in cases if case["n"]})
    if not counts:
        counts = [int(n.replace(",", "")) for n in re.findall(r"\bn = (\d[\d,]*\d|\d)", finding.words)[:1]]
    if not counts:
        return ""
    number = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{number} {units_of(finding, counts[-1])}".strip()


def units_of(finding, count: int) -> str:
    """What `count` units are, such as seeds; "" where it is not certain that the rule's design and n count the same."""
    worlds = finding.rule.worlds if finding.rule else None
    if worlds is None:
        return ""
    counted = count in (worlds.n, worlds.now) or f"{count} {worlds.units}" in finding.words
    return worlds.units if counted else ""


def say_what_decides(finding) -> str:
    """What would turn the verdict into a decision; "" where it is one."""
    kind, rule = finding.verdict.kind, finding.rule
    if kind == "cannot be asked here":
        return "another question"
    if kind == "not run":
        return "a run"
    if kind == "depends on the reading":
        return "which reading is meant"
    if MARKS[kind][1] != "open" and "undecided" not in kind:
        return ""
    needed = max((case.needed for case in finding.verdict.cases if case.needed), default=None)
    if needed is None and rule:
        needed = max(rule.fewest or 0, rule.worlds.n if rule.worlds else 0) or None
    return f"n = {needed:,}" if needed and needed < 10_000 else "n above 10,000" if needed else "more of the same"


def drawn(cases: list[dict]) -> dict | None:
    """The intervals of a claim as a drawing of WIDTH x HEIGHT, around the number that they are compared with.

    cases  as `row_of` returns them

    Returns that number ("against"), where it stands ("zero"), and for each interval its height, both ends, value, name
    and words; None where there is nothing to draw on one scale.
    """
    cases = [case for case in cases if case["value"] is not None]
    against = {case["against"] for case in cases}
    if len(against) != 1:
        return None
    (limit,) = against
    every = [limit, *(x for case in cases for x in numbers(case))]
    low, high = min(every), max(every)
    if low == high:
        return None

    def place(x: float) -> float:
        return round(4 + (WIDTH - 8) * (min(max(x, low), high) - low) / (high - low), 1)

    gap = min(7.0, HEIGHT / len(cases))
    top = (HEIGHT - gap * (len(cases) - 1)) / 2
    marks = [
        {
            "y": round(top + gap * k, 1),
            "x": place(case["value"]),
            "ends": None if is_bare(case) else (place(case["low"]), place(case["high"])),
            "sure": not is_bare(case) and not case["low"] <= case["against"] <= case["high"],
            "name": case["name"],
            "words": ": ".join(filter(None, (case["name"], say_case(case, ".3g")))),
        }
        for k, case in enumerate(cases)
    ]
    return {"zero": place(limit), "against": f"{limit:.3g}", "marks": marks, "width": WIDTH, "height": HEIGHT}
