"""One page over all reports that are there: every claim of the papers in one row, with its verdict and a link."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from studies.lab import calibration
from studies.lab.page import TEMPLATES, say_rule
from studies.lab.report import strip, terminal
from studies.lab.verdicts import NOT_RUN, Finding, Rule


def write(folder: Path, papers: Mapping[str, Sequence[str]], rules: Mapping[str, Iterable[Rule]] | None = None) -> Path:
    """Write `folder`/index.html and print how many claims it holds.

    folder  where the reports are, each in a folder of its own; the newest of each study counts, smoke runs do not
    papers  the names of the studies of each paper, in its order
    rules   of each study those whose claims are shown as not run where no report has them; by default all of them

    Returns the path of the page.
    """
    if rules is None:
        rules = {study: calibration.rules(study).values() for studies in papers.values() for study in studies}
    reports = newest_reports(folder)
    claims = {
        paper: [row for study in studies for row in rows_of(study, reports.get(study), rules.get(study, ()))]
        for paper, studies in papers.items()
    }
    parts = {paper: rows for paper, rows in claims.items() if rows}
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(TEMPLATES.get_template("index.html.j2").render(parts=parts, reports=len(reports)))
    every = [row for rows in parts.values() for row in rows]
    print(*terminal.wrapped(f"{len(reports)} reports. {terminal.count_verdicts(every)}"), sep="\n")
    print(page.resolve().as_uri())
    return page


def newest_reports(folder: Path) -> dict[str, dict]:
    """The record of the newest report of each study below a folder, with "page", its place relative to the folder."""
    found: dict[str, dict] = {}
    for path in sorted(folder.glob("*/record.json")):
        page, record = path.with_name("report.html"), json.loads(path.read_text())
        if page.is_file() and not record["arguments"].get("smoke"):
            newer = record["study"] not in found or record["date"] > found[record["study"]]["date"]
            if newer:
                found[record["study"]] = record | {"page": str(page.relative_to(folder))}
    return found


def rows_of(study: str, record: dict | None, rules: Iterable[Rule]) -> list[dict]:
    """The claims of a study as rows of the strip: those of its report, then those that no report has."""
    findings = record["numbers"].get("findings", []) if record else []
    rows = [
        finding | {"link": f"{record['page']}#claim-{number}", "command": record["command"], "rule": text_of(finding)}
        for number, finding in enumerate(findings, 1)
        if record
    ]
    judged = {finding["rule"]["name"] for finding in findings if finding["rule"]}
    for rule in rules:
        if rule.name not in judged:
            words = f"n = 0: {'this report does not ask it' if record else 'there is no report of this study'}."
            row = strip.row_of(Finding(rule.claim, rule.where, NOT_RUN, words, rule))
            rows.append(row | {"link": "", "command": f"python -m studies.{study}", "rule": say_rule(rule)})
    return rows


def text_of(finding: dict) -> str:
    return f"{finding['rule']['text']} Written {finding['rule']['fixed']}." if finding["rule"] else ""
