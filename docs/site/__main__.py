"""Builds the documentation site: `python -m docs.site [FOLDER]`, `make docs`. It needs no network, nor do readers."""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from docs import snippets
from docs.site import catalogue, commands, live, reference

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
REPORT = ROOT / "studies" / "lab" / "report"
OUTSIDE = {"../README.md": "index.md", "../CHANGELOG.md": "changelog.md", "../CONTRIBUTING.md": "contributing.md"}


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__.split(":")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs", help="where to; build/docs")
    folder = parser.parse_args(arguments).folder.resolve()
    source, site = folder / "source", folder / "site"
    collect(source)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", str(source), str(site)]
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode == 0:
        print(f"The site is at {(site / 'index.html').as_uri()}")
    return done.returncode


def collect(source: Path) -> None:
    """Everything the site is made of, in one folder; what stays the same keeps its time, and figures are kept."""
    for path in pages():
        if path.parent.name == "learn":
            tutorial(path, source / "learn")
        else:
            put(source / path.relative_to(DOCS), linked(path.read_text(), path.parent))
    for path in (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"):
        put(source / path.name.lower(), linked(path.read_text(), ROOT))
    put(source / "_static" / "live_data.js", live.script())
    for name in live.BORROWED:
        copied(REPORT / name, source / "_static" / name)
    for path in [*DOCS.glob("*.png"), *(DOCS / "gallery").iterdir(), *(HERE / "_static").iterdir(), HERE / "conf.py"]:
        folder = {"gallery": "gallery", "_static": "_static"}.get(path.parent.name, "")
        copied(path, source / folder / path.name)
    for path in (HERE / "extensions").iterdir():
        if path.suffix == ".py":
            copied(path, source / "extensions" / path.name)
    made = {
        "reference": reference.pages(),
        "problems": catalogue.pages(source / "problems"),
        "commands": commands.pages(),
    }
    for folder, texts in made.items():
        for name, text in texts.items():
            put(source / folder / name, text)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def copied(path: Path, target: Path) -> None:
    if path.is_file() and (not target.is_file() or target.read_bytes() != path.read_bytes()):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def pages() -> list[Path]:
    """The pages of docs/, without what the site itself is made of."""
    return sorted(path for path in DOCS.rglob("*.md") if not {"site", "gallery"} & set(path.relative_to(DOCS).parts))


def linked(text: str, folder: Path) -> str:
    """Links of a page in this folder as the site has them: pages outside of docs/ lie at its top."""
    if folder == ROOT:
        return text.replace("](docs/", "](").replace("](README.md", "](index.md")
    up = "../" * len(folder.relative_to(DOCS).parts)
    for before, after in OUTSIDE.items():
        text = text.replace(f"]({up}{before}", f"]({up}{after}")
    return text


def tutorial(path: Path, folder: Path) -> None:
    """A page whose code is run where it has changed: figures stand below their blocks, a notebook lies beside it."""
    page = linked(path.read_text(), path.parent)
    stamp, made_of = folder / f"{path.stem}.run", hashlib.sha256(page.encode()).hexdigest()
    if "```python" not in page:
        put(folder / path.name, page)
        return
    if not stamp.is_file() or stamp.read_text().split()[0] != made_of:
        ran = list(snippets.run(path))
        false = [snippet for snippet in ran if not snippet.as_said]
        if false:
            raise SystemExit(f"{path}: a block prints {false[0].printed!r}, and the page says {false[0].expected!r}")
        put(folder / f"{path.stem}.ipynb", snippets.notebook(page, ran))
        shown = [str(number) for number, snippet in enumerate(ran) if snippet.picture]
        for number in shown:
            (folder / f"{path.stem}-{number}.png").write_bytes(ran[int(number)].picture)
        put(stamp, " ".join([made_of, *shown]))
    ends = [block.end() for block in snippets.BLOCK.finditer(page)]
    for number in reversed(stamp.read_text().split()[1:]):
        place = ends[int(number)]
        page = f"{page[:place]}\n![what the block draws]({path.stem}-{number}.png)\n{page[place:]}"
    heading, rest = page.split("\n", 1)
    put(
        folder / path.name, f"{heading}\n\n{{download}}`As a notebook <{path.stem}.ipynb>`, which has been run.\n{rest}"
    )


if __name__ == "__main__":
    sys.exit(main())
