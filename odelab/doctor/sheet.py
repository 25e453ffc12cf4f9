"""One page in one file: sentences first, then sections with pictures and tables in them. It asks for nothing else."""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import odelab

FILE = "diagnosis.html"
DOTS = 110  # per inch

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1rem; margin: 2.2rem 0 .3rem }}
p {{ margin: .6rem 0 }} .answer {{ font-weight: 600 }} pre, code {{ font: .9em ui-monospace, monospace }}
pre {{ padding: .7rem; border: 1px solid #8886; overflow-x: auto; white-space: pre-wrap }}
img {{ display: block; max-width: 100%; background: white; border-radius: 4px }}
div.wide {{ overflow-x: auto }} table {{ border-collapse: collapse; font-size: .9rem }}
th, td {{ text-align: right; padding: .15rem .6rem; border-bottom: 1px solid #8884; white-space: nowrap }}
th:first-child, td:first-child {{ text-align: left }}
</style></head><body><h1>{title}</h1>
<p class="answer">{verdict}</p>{others}{call}
{sections}
<p><small>Written by odelab {version}.</small></p></body></html>
"""


def write(folder, title: str, sentences: Sequence[str], call: str, sections: Iterable[tuple[str, str, str]]) -> Path:
    """Write a page into a folder and return its path.

    sentences   the answer first
    call        code that is advised; empty for none
    sections    (title, caption, what is shown as HTML) of each
    """
    verdict, *others = map(html.escape, sentences)
    page = PAGE.format(
        title=html.escape(title),
        verdict=verdict,
        others="".join(f"<p>{sentence}</p>" for sentence in others),
        call=f"<pre>{html.escape(call)}</pre>" if call else "",
        sections="\n".join(
            f"<h2>{html.escape(title)}</h2><p>{html.escape(caption)}</p>{shown}" for title, caption, shown in sections
        ),
        version=odelab.__version__,
    )
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def image(drawing, words: str) -> str:
    """A figure as an element of a page."""
    data = io.BytesIO()
    drawing.savefig(data, format="png", dpi=DOTS)
    return f'<img alt="{html.escape(words)}" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as an element of a page, which scrolls by itself where it is wider."""
    lines = ["".join(f"<th>{html.escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return f'<div class="wide"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'
