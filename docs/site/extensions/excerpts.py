"""Excerpts in the search of a site opened from files, where browsers forbid to fetch pages: a script has them."""

import json
import re
from pathlib import Path

SHIM = """if (location.protocol === "file:") {
  const real = window.fetch;
  window.fetch = url => {
    const parts = decodeURIComponent(String(url)).split(/[?#]/)[0].split("/");
    for (let k = 1; k <= parts.length; k++) {
      const text = PAGES[parts.slice(-k).join("/")];
      if (text !== undefined) return Promise.resolve(new Response(text));
    }
    return real(url);
  };
}"""


def write(app, error):
    if error or app.builder.name != "html":
        return
    out, pages = Path(app.outdir), {}
    for name in app.env.found_docs:
        text = (out / f"{name}.html").read_text()
        main = re.search(r'(<(?:article|div)[^>]*role="main".*?)(?:<footer|</article>|</main>)', text, re.DOTALL)
        body = re.sub(r"<(script|style|svg|nav).*?</\1>", "", main[1] if main else text, flags=re.DOTALL)
        body = re.sub(r"<(?!/?(?:section|h[1-6]|p|dt|dd|li|div role)\b)[^>]*>", "", body)
        pages[f"{name}.html"] = re.sub(r"<(\w+)(?: class=\"[^\"]*\")?", r"<\1", f'<div role="main">{body}</div>')
    script = f"const PAGES={json.dumps(pages, ensure_ascii=False)};\n{SHIM}"
    (out / "_static" / "pages.js").write_text(script)


def add(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file("pages.js", priority=100)


def setup(app):
    app.connect("html-page-context", add)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
