"""The report of a study: the same parts in the same order as report.html, which holds everything, and report.md."""

import base64
import re
from collections.abc import Iterable
from pathlib import Path

import jinja2
import markupsafe

from studies.lab import calibration, verdicts
from studies.lab.results import Results, cell_text

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=jinja2.select_autoescape(["html.j2"]),
    trim_blocks=True,
    lstrip_blocks=True,
)
SMOKE = "A smoke run: it shows that everything works, and its numbers say nothing."


def with_code(words: str) -> markupsafe.Markup:
    """Words for HTML, in which what stands between backticks is code."""
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(words))))


def upper_first(words: str) -> str:
    """The words with a capital letter at the beginning; the rest stays as it is."""
    return words[:1].upper() + words[1:]


def say_rule(rule: verdicts.Rule | None) -> str:
    """What a page folds away below a verdict: the rule, when it was fixed, and how often it decides about nothing."""
    if rule is None:
        return ""
    return f"{rule.text} Written {rule.fixed}. {calibration.sentence(rule)}"


def as_record(finding: verdicts.Finding) -> dict:
    """A finding in plain values: the verdict and its detail apart, and the rule by its name and text."""
    rule = finding.rule and {"name": finding.rule.name, "text": finding.rule.text, "fixed": finding.rule.fixed}
    plain = {"claim": finding.claim, "where": finding.where, "words": finding.words, "rule": rule}
    verdict = finding.verdict
    return plain | {"verdict": verdict.kind, "detail": verdict.detail}


TEMPLATES.filters |= {
    "upper_first": upper_first,
    "shown": cell_text,
    "cell": lambda value: cell_text(value).replace("|", "\\|"),
    "prose": with_code,
}


class Page(Results):
    """Collects the parts of a report in order; each figure and table is also written to files of its own.

    `close` writes the report and the record.

    study, arguments  as `Results` takes them
    title, subtitle   what stands at the head of the report
    notice            a warning that comes before everything else, or ""; that a run is a smoke run is added to it
    """

    def __init__(self, study: str, arguments, title: str, subtitle: str = "", notice: str = ""):
        super().__init__(study, arguments)
        notice = " ".join(filter(None, (notice, SMOKE if arguments.smoke else "")))
        self.title, self.subtitle, self.notice = title, subtitle, notice
        self.parts: list[dict] = []
        self.last_words: list[str] = []
        if notice:
            self.numbers["notice"] = notice

    def add(self, kind: str, **content) -> None:
        """The next part of the page; the two templates say how each kind looks."""
        self.parts.append({"kind": kind, **content})

    def heading(self, words: str) -> None:
        self.add("heading", words=words)

    def words(self, *paragraphs: str) -> None:
        for paragraph in filter(None, paragraphs):
            self.add("words", words=paragraph)

    def warn(self, words: str) -> None:
        """A paragraph that stands out; it is printed as well."""
        self.add("notice", words=words)
        print(f"{words}\n", flush=True)

    def findings(self, found: list) -> None:
        """The claims of a paper with the verdicts of these data; they are printed again at the end of the run."""
        self.numbers["findings"] = [as_record(finding) for finding in found]
        for finding in found:
            self.add("finding", finding=finding, rule=say_rule(finding.rule))
            verdict = f"{upper_first(str(finding.verdict))}. {finding.words}"
            self.last_words += [f"- {finding.claim} ({finding.where})", f"  {verdict}"]

    def conclusions(self, sentences: list[str]) -> None:
        """The conclusions, one sentence each; they are printed again at the end of the run."""
        self.numbers["conclusions"] = sentences
        self.heading("Conclusions")
        self.add("list", items=sentences)
        self.last_words += [f"- {sentence}" for sentence in sentences]

    def figure(self, drawing, name: str, caption: str) -> None:
        picture = self.save_figure(drawing, name)
        data = base64.b64encode(picture.read_bytes()).decode()
        self.add("figure", name=name, caption=caption, short=caption.split(". ")[0], data=data)

    def table(self, name, rows: Iterable[dict], title: str, caption: str = "", printed=True, told=True) -> list[dict]:
        """A table, in files and in the record always; `printed` on the terminal, `told` in the report.

        Returns the rows as a list; without rows there is no table.
        """
        rows = list(rows)
        if not rows:
            return rows
        self.save_table(name, rows, title, printed)
        table = {"kind": "table", "rows": rows, "title": title, "caption": caption}
        path = self.out / f"{name}.md"
        path.write_text(TEMPLATES.get_template("report.md.j2").render(parts=[table]).lstrip())
        self.files.append(path)
        if told:
            self.parts.append(table)
        return rows

    def close(self) -> None:
        """Write the report in both forms and the record; print the conclusions and where everything is."""
        print("\n" + "\n".join(self.last_words))
        written, self.files = len(self.files), []
        for ending in ("html", "md"):
            path = self.out / f"report.{ending}"
            path.write_text(TEMPLATES.get_template(f"{path.name}.j2").render(vars(self) | {"made": self.provenance()}))
            self.files.append(path)
        print(f"\n{written} files hold the figures (PNG, SVG) and tables (Markdown, CSV); report.html shows them all.")
        self.write_record()
