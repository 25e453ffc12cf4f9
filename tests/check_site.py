"""Every page of the documentation site in a browser, from files: `python -m tests.check_site FOLDER [PICTURES]`.

Nothing is asked of a network, no script complains, every picture shows, links lead to files and to places in them, no
page has to be scrolled sideways on a telephone, and the search finds a method by its name.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

from tests import browser

TELEPHONE = 400
THEME = "[PST]: "  # how the theme begins to tell of what it does
NOT_PAGES = ("_modules", "_static", "_downloads")
IDS = "[...document.querySelectorAll('[id], a[name]')].flatMap(one => [one.id, one.name]).filter(Boolean)"
LINKS = "[...document.querySelectorAll('a[href]')].map(one => one.href)"
BROKEN = """(async () => {
  for (const image of document.images) { image.loading = 'eager'; await image.decode().catch(() => {}); }
  return [...document.images].filter(image => !image.naturalWidth).map(image => image.src);
})()"""
WIDTH = "document.documentElement.scrollWidth"
WIDEST = """[...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)
  .slice(-1).map(one => one.outerHTML.slice(0, 120))"""
FOUND = """(async () => {
  for (let wait = 0; wait < 100; wait++) {
    const found = [...document.querySelectorAll('ul.search li')];
    if (found.some(one => one.querySelector('p'))) return found.map(one => one.innerText);
    await new Promise(done => setTimeout(done, 100));
  }
  return [];
})()"""


def complaints(site: Path, pictures: Path | None = None) -> Iterator[str]:
    """What is wrong with a site, a sentence each; with a folder for pictures, a photograph of every page in it."""
    site = site.resolve()
    pages = [p for p in sorted(site.rglob("*.html")) if not set(NOT_PAGES) & set(p.relative_to(site).parts)]
    ids: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    with browser.tab() as tab:
        for page in pages:
            name = page.relative_to(site)
            tab.complaints.clear()
            tab.open(page)
            ids[page] = set(tab.run(IDS))
            links += [(page, link) for link in tab.run(LINKS)]
            yield from (f"{name}: the picture {source} does not show" for source in tab.run(BROKEN))
            if pictures:
                tab.photograph(pictures / f"{str(name).replace('/', '_')}.png")
            tab.open(page, width=TELEPHONE)
            if (wide := tab.run(WIDTH)) > TELEPHONE:
                yield f"{name}: {wide} pixels wide on a telephone: {tab.run(WIDEST)}"
            if pictures:
                tab.photograph(pictures / f"{str(name).replace('/', '_')}.400.png")
            yield from (f"{name}: a script says {said[:300]}" for said in tab.complaints if THEME not in said)
        outside = {request for request in tab.requests if urlparse(request).scheme not in ("file", "data", "blob")}
        yield from (f"the site asks for {request}" for request in sorted(outside))
        for page, link in links:
            address, place = urldefrag(link)
            if urlparse(address).scheme == "file":
                target = Path(unquote(urlparse(address).path))
                if not target.is_file():
                    yield f"{page.relative_to(site)}: a dead link, {link}"
                elif place and target in ids and unquote(place) not in ids[target]:
                    yield f"{page.relative_to(site)}: a link to a place that is not there, {link}"
        yield from search(tab, site, "RODAS4")


def search(tab: browser.Tab, site: Path, word: str) -> Iterator[str]:
    """What is wrong with the search for a word: results with excerpts that hold it."""
    tab.open(site / "search.html", query=f"?q={word}")
    found = tab.run(FOUND)
    if not any(word in text for text in found):
        yield f"the search for {word} finds {found[:3]}"


if __name__ == "__main__":
    wrong = list(complaints(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None))
    print(*wrong, f"{len(wrong)} complaints", sep="\n")
    sys.exit(bool(wrong))
