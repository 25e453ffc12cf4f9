"""The report of a study: the same parts in the same order as report.html, which answers, and report.md.

The page begins with the strip of all claims and one figure; what they rest on is folded below, a fold for every
heading. A study hands over its parts in the order of the paper and says nothing of their place:

    lead                    the best news, above everything else
    findings, conclusions   the claims with their verdicts; a verdict brings its intervals along
    heading, words, warn    a heading opens a fold; a warning stands on top of the page
    figure, chart           pictures; with `reading`, only the one of the switch's reading is shown
    table                   a table of more than LONG rows is a link to its CSV
    switch                  which readings there are

What of it becomes text, bytes and lines of the terminal is in `studies.lab.report`.
"""

import base64
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2
import markupsafe

import studies
from studies.lab import calibration
from studies.lab.report import drawn, strip, terminal
from studies.lab.results import Results, as_json, cell_text

ROOT = Path(studies.__file__).parent.parent
HERE = Path(__file__).parent
FILES = HERE / "report"
LONG = 20  # rows; a longer table is shown as a link
SHADES = 128  # of a picture on the page; the file beside it has them all
STEPNET_PAPER = "Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023)"
SMOKE = "A smoke run: it shows that everything works, and its numbers say nothing."


def with_code(words: str) -> markupsafe.Markup:
    """Words for HTML, in which what stands between backticks is code."""
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(words))))


def upper_first(words: str) -> str:
    """The words with a capital letter at the beginning; the rest stays as it is."""
    return words[:1].upper() + words[1:]


def source(name: str) -> markupsafe.Markup:
    """A style sheet or a script of ours, to stand within a page."""
    return markupsafe.Markup((FILES / name).read_text())


def as_data(values) -> markupsafe.Markup:
    """Values as JSON within a page: nothing in it can end the element it stands in."""
    return markupsafe.Markup(json.dumps(as_json(values), separators=(",", ":")).replace("<", "\\u003c"))


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FILES),
    autoescape=jinja2.select_autoescape(["html.j2"]),
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "upper_first": upper_first,
    "shown": cell_text,
    "cell": lambda value: cell_text(value).replace("|", "\\|"),
    "prose": with_code,
    "data": as_data,
    "drawn": strip.drawn,
}
TEMPLATES.globals |= {"source": source, "marks": strip.MARKS, "long": LONG}


def say_rule(rule) -> str:
    """What a page folds away below a verdict: the rule, when it was fixed, and how often it decides about nothing."""
    if rule is None:
        return ""
    return f"{rule.text} Written {rule.fixed}. {calibration.sentence(rule)}"


class Page(Results):
    """Collects the parts of a report in order; each figure and table is also written to files of its own.

    `close` writes the report and the record.

    study, arguments  as `Results` takes them; with `arguments.verbose`, tables are printed
    title, subtitle   what is asked and of which networks, at the head of the report; both are printed
    notice            a warning that comes before everything else, or "", printed by whoever gives it
    """

    def __init__(self, study: str, arguments, title: str, subtitle: str = "", notice: str = ""):
        super().__init__(study, arguments)
        notice = " ".join(filter(None, (notice, SMOKE if arguments.smoke else "")))
        self.title, self.subtitle, self.notice, self.best = title, subtitle, notice, ""
        self.verbose = getattr(arguments, "verbose", False)
        self.printed = len(terminal.wrapped(notice)) + 1 if notice else 0  # by who gives notice, before any work
        self.parts: list[dict] = []
        self.claims: list[dict] = []
        self.factors: Mapping[str, Mapping[str, str]] = {}
        if notice:
            self.numbers["notice"] = notice
        self.say(title, most=1)
        self.say(subtitle, most=3)

    def say(self, words: str, most: int = 4) -> None:
        """Print words in the columns and in some of the lines that a run has."""
        lines = terminal.wrapped(words, most)
        self.printed += len(lines)
        print(*lines, sep="\n", end="\n" if lines else "", flush=True)

    def add(self, kind: str, **content) -> None:
        """The next part of the page; the two templates say how each kind looks."""
        self.parts.append({"kind": kind, **content})

    def switch(self, factors: Mapping[str, Mapping[str, str]]) -> None:
        """The readings that the reader of the page can choose from.

        factors  for each question that a reading answers, its possible answers: the word that stands in a reading, and
                 what the switch calls it
        """
        self.factors = factors

    def heading(self, words: str) -> None:
        self.add("heading", words=words)

    def words(self, *paragraphs: str) -> None:
        for paragraph in filter(None, paragraphs):
            self.add("words", words=paragraph)

    def warn(self, words: str) -> None:
        """A paragraph that stands out, on top of the page; it is printed as well."""
        self.add("notice", words=words)
        self.say(words)

    def lead(self, words: str) -> None:
        """The best news of the study in a sentence, which stands above the strip and is printed."""
        self.numbers["lead"] = self.best = words
        self.say(words, most=2)

    def findings(self, found: list) -> None:
        """The claims of a paper with the verdicts of these data: the strip, which is printed at the end of the run."""
        rows = [strip.row_of(finding) for finding in found]
        self.numbers["findings"] = rows
        for row, finding in zip(rows, found, strict=True):
            self.add("finding", finding=finding, rule=say_rule(finding.rule))
            self.claims.append(row | {"rule": say_rule(finding.rule)})

    def conclusions(self, sentences: list[str]) -> None:
        """The conclusions, one sentence each; they stand below the first figure and are printed at the end."""
        self.numbers["conclusions"] = sentences
        self.heading("Conclusions")
        self.add("list", items=sentences)

    def figure(self, drawing, name: str, caption: str, reading: tuple[str, ...] = (), hero: bool = False) -> None:
        """A figure of matplotlib.

        drawing  the figure
        name     of its files: NAME.png, NAME.svg and, with what it draws, data/NAME.csv
        caption  in sentences; the first is what a reader is told who cannot see it
        reading  the reading that it shows; it is hidden while the switch stands on another one
        hero     whether it is the figure that stands below the strip; without one, and without a chart, the first does
        """
        picture = self.save_figure(drawing, name)
        self.save_rows(name, drawn.rows_of(drawing))
        self.add("figure", name=name, caption=caption, short=caption.split(". ")[0], data=embedded(picture),
                 reading=" ".join(reading), hero=hero, code=calling_line())  # fmt: skip

    def chart(self, chart, name: str, caption: str, hero: bool = False) -> None:
        """A chart that answers to the switch, to sliders and to the pointer.

        chart  one of `studies.lab.report.charts`
        name   of its CSV, data/NAME.csv, and of its numbers in the record
        caption, hero  as of a figure
        """
        self.numbers.setdefault("charts", {})[name] = chart.data()
        self.save_rows(name, chart.rows())
        self.add("chart", name=name, caption=caption, hero=hero, code=calling_line())

    def save_rows(self, name: str, rows: Iterable[dict]) -> None:
        """Write what a figure draws as data/NAME.csv; it is in no table and not in the record."""
        rows = list(rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["nothing"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        path = self.out / "data" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.getvalue())
        self.files.append(path)

    def table(self, name, rows: Iterable[dict], title: str, caption: str = "", printed=True, told=True) -> list[dict]:
        """A table, in files and in the record always; `printed` on the terminal with --verbose, `told` in the report.

        Returns the rows as a list; without rows there is no table.
        """
        rows = list(rows)
        if not rows:
            return rows
        self.save_table(name, rows, title, printed and self.verbose)
        table = {"kind": "table", "name": name, "rows": rows, "title": title, "caption": caption}
        path = self.out / f"{name}.md"
        path.write_text(TEMPLATES.get_template("page.md.j2").render(parts=[table]).lstrip())
        self.files.append(path)
        if told:
            self.parts.append(table)
        return rows

    def close(self) -> None:
        """Write the report in both forms and the record; print the strip and where the page is."""
        made = self.provenance()
        content = {name: getattr(self, name) for name in ("title", "subtitle", "notice", "parts", "claims", "factors")}
        charts = self.numbers.get("charts", {})
        content |= {"made": made, "best": self.best, "charts": charts, **self.arranged()}
        for ending in ("html", "md"):
            path = self.out / f"report.{ending}"
            path.write_text(TEMPLATES.get_template(f"page.{ending}.j2").render(content))
            self.files.append(path)
        self.write_record(listed=self.verbose)
        self.print_end(made["seconds"])

    def arranged(self) -> dict:
        """The parts in the order of the page: warnings on top, one figure, conclusions, then a fold for each heading.

        A figure, table or sentence before the first heading, and what stands between claims, is in a fold as well.
        """
        warnings = [part for part in self.parts if part["kind"] == "notice"]
        pictures = [part for part in self.parts if part["kind"] in ("figure", "chart")]
        heroes = [part for part in pictures if part["hero"]] or pictures[:1]
        lists = [part for part in self.parts if part["kind"] == "list"]
        above = [id(part) for part in (*warnings, *heroes, *lists)]
        folds: list[dict] = [{"title": "", "parts": []}]
        for part in self.parts:
            if part["kind"] == "heading":
                folds.append({"title": part["words"], "parts": []})
            elif part["kind"] != "finding" and id(part) not in above:
                folds[-1]["parts"].append(part)
        folds = [fold | {"exhibits": exhibits_of(fold["title"])} for fold in folds if fold["parts"]]
        for claim in self.claims:
            asked = exhibits_of(claim["where"])
            claim["fold"] = next((k for k, fold in enumerate(folds, 1) if asked & fold["exhibits"]), None)
        return {"warnings": warnings, "heroes": heroes, "lists": lists, "folds": folds}

    def print_end(self, seconds: float) -> None:
        """The strip or the conclusions, as far as there is room, and the address of the page."""
        claims, room = self.numbers.get("findings", []), terminal.LINES - self.printed - 5
        lines = terminal.strip_lines(claims, room)
        if not claims:
            said = [terminal.wrapped(f"- {one}", 3) for one in self.numbers.get("conclusions", [])]
            lines = [line for sentence in said for line in sentence][:room]
        print("", *lines, "", sep="\n")
        files = f"{len(self.files) + 1} files with figures, tables and numbers in {self.out}/"
        counted = f"{terminal.count_verdicts(claims)} " if claims else ""
        print(*terminal.wrapped(f"{counted}{self.study} took {seconds:.0f} s; {files}", 2), sep="\n")
        print((self.out / "report.html").resolve().as_uri(), flush=True)


def exhibits_of(words: str) -> set[str]:
    """The figures, tables and sections that some words name, such as {"Figure 2", "Figure 6"} of "Figures 2 and 6"."""
    number = r"(?:\d+[a-z]?|[A-Z])(?:\.\d+)*(?!\w)"
    several = rf"{number}(?:(?:, | and | to |-){number})*"
    found = set()
    for kind, named in re.findall(rf"(Figure|Table|Section|Appendix|Theorem)s?\s+({several})", words):
        for part in re.split(", | and ", named):
            first, *last = re.split(" to |-", part)
            whole = bool(last) and (first + last[0]).isdigit()
            found |= {f"{kind} {k}" for k in (range(int(first), int(last[0]) + 1) if whole else (first, *last))}
    return found


def embedded(picture: Path) -> str:
    """A picture for the page, in base 64 and in SHADES colours, which makes it a quarter as large."""
    from PIL import Image

    with Image.open(picture) as image:
        small = image.quantize(SHADES, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    data = io.BytesIO()
    small.save(data, "png")
    return base64.b64encode(data.getvalue()).decode()


def calling_line() -> str:
    """The line of a study that put the part on the page, as `studies/NAME.py:LINE`; "" where no study did."""
    frame = sys._getframe(1)
    while frame.f_back and Path(frame.f_code.co_filename).is_relative_to(HERE):
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(ROOT)}:{frame.f_lineno}" if path.is_relative_to(ROOT) else ""
