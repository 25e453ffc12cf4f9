"""A page that holds everything: words, tables, and pictures inlined, so that the one file can be sent to somebody."""

import base64
import html
from pathlib import Path

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.55 Georgia, "Times New Roman", serif; color: #1b1b1b; background: #fff; margin: 0 auto;
  padding: 2.5rem 1.5rem 4rem; max-width: 56rem; }
p, ul, dl, figcaption, .finding { max-width: 44rem; }
h1, h2, h3, table, .verdict, figcaption, .notice, code, pre { font-family: system-ui, -apple-system, "Segoe UI",
  "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; padding-top: .6rem; border-top: 1px solid #ddd; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
.subtitle { color: #555; margin-top: 0; }
.notice { background: #fff4e5; border-left: 4px solid #d55e00; padding: .7rem 1rem; max-width: 43rem; }
.finding { border-left: 4px solid #999; padding: .1rem 1rem; margin: 1rem 0; }
.finding p { margin: .3rem 0; }
.finding.supported { border-color: #009e73; }
.finding.contradicted { border-color: #d55e00; }
.claim { font-style: italic; }
.verdict { font-size: .85rem; font-weight: 600; }
figure { margin: 1.4rem 0; }
figure img { display: block; width: 44rem; max-width: 100%; height: auto; }
figcaption { font-size: .85rem; line-height: 1.45; color: #333; margin-top: .4rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; border-bottom: 1px solid #888;
  border-top: 1px solid #888; }
caption { text-align: left; font-size: .85rem; color: #333; padding-bottom: .35rem; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 1px solid #888; }
th, td { padding: .22rem .8rem .22rem 0; }
td { white-space: nowrap; }
tbody tr:nth-child(even) { background: #f7f7f7; }
pre { background: #f5f5f5; padding: .8rem 1rem; overflow-x: auto; font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: .85rem; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 0; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } figure, tr { break-inside: avoid; } }
"""


class Report:
    """Collects the parts of the page in the order they are given."""

    def __init__(self, title: str, subtitle: str, notice: str = ""):
        self.title = title
        self.parts = [f"<h1>{html.escape(title)}</h1>", f'<p class="subtitle">{html.escape(subtitle)}</p>']
        if notice:
            self.parts.append(f'<p class="notice">{html.escape(notice)}</p>')

    def heading(self, words: str, level: int = 2):
        self.parts.append(f"<h{level}>{html.escape(words)}</h{level}>")

    def words(self, *paragraphs: str):
        self.parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in paragraphs]

    def code(self, text: str):
        self.parts.append(f"<pre><code>{html.escape(text)}</code></pre>")

    def finding(self, finding):
        """A claim, where the paper makes it, what these data say."""
        style = finding.verdict if finding.verdict in ("supported", "contradicted") else "undecided"
        self.parts.append(
            f'<div class="finding {style}"><p><span class="claim">{html.escape(finding.claim)}</span> '
            f"({html.escape(finding.where)})</p>"
            f'<p class="verdict">{html.escape(finding.verdict[0].upper() + finding.verdict[1:])}.</p>'
            f"<p>{html.escape(finding.words)}</p></div>"
        )

    def table(self, rows: list[dict], caption: str):
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows[0])
        body = "\n".join(
            f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in row.values())}</tr>" for row in rows
        )
        self.parts.append(
            f'<div class="table"><table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )

    def figure(self, picture: Path, caption: str):
        """A PNG file, inlined."""
        data = base64.b64encode(Path(picture).read_bytes()).decode()
        short = html.escape(caption.split(". ")[0], quote=True)
        self.parts.append(
            f'<figure><img alt="{short}" src="data:image/png;base64,{data}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )

    def facts(self, facts: dict):
        items = "".join(f"<dt>{html.escape(str(k))}</dt><dd>{html.escape(str(v))}</dd>" for k, v in facts.items())
        self.parts.append(f"<dl>{items}</dl>")

    def write(self, path: Path) -> Path:
        body = "\n".join(self.parts)
        path.write_text(
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(self.title)}</title>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<style>{CSS}</style></head>\n<body>\n{body}\n</body></html>\n",
            encoding="utf-8",
        )
        return path
