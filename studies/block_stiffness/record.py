"""What the last large run of the study found: rows of its tables, shipped with their date, commit and network.

A large run takes hours, a quick one shows beside its own tables what the large one left here.
"""

import datetime
import hashlib
import json
import math
from pathlib import Path

from odelab.files import replacing
from studies.block_stiffness.measures import ROOMS
from studies.lab.results import as_json, source

SHIPPED = Path(__file__).parent / "shipped"
TABLES = (  # of a run with --ship: those that are shown again, and the evidence that rules judge
    "by_block", "readings", "activity", "variance", "precision", "inputs", "flows", "depths", "tolerances", "swapped",
    "evidence: components", "evidence: relations", "evidence: turned", "evidence: errors", "evidence: orders",
    "evidence: fits",
)  # fmt: skip
DIGITS = 5  # significant


def path_of(dataset: str) -> Path:
    return SHIPPED / f"full-{dataset}.jsonl"


def write(about: dict, tables: dict[str, list[dict]], path: Path) -> None:
    """One line about the run, then one for each row: the name of its table and its cells."""
    about = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **source(measured=ROOMS)} | about
    lines = [about, *([name, shorten(row)] for name in TABLES for row in tables.get(name, ()))]
    with replacing(path) as unfinished, unfinished.open("w") as file:
        for line in lines:
            file.write(json.dumps(as_json(line), allow_nan=False, separators=(",", ":")) + "\n")


def shorten(row: dict) -> dict:
    """The row with numbers of DIGITS significant digits."""
    return {
        name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value
        for name, value in row.items()
    }


def read(path: Path) -> tuple[dict, dict[str, list[dict]]] | None:
    """What `write` has written: about the run, and the rows of every table; None where there is no such file."""
    if not path.is_file():
        return None
    about, *lines = (json.loads(line) for line in path.read_text().splitlines())
    tables: dict[str, list[dict]] = {}
    for name, row in lines:
        tables.setdefault(name, []).append({key: math.nan if cell is None else cell for key, cell in row.items()})
    return about, tables


def digest_of(net) -> str:
    """Twelve hexadecimal digits that name the network's weights."""
    total = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        total.update(name.encode() + tensor.cpu().numpy().tobytes())
    return total.hexdigest()[:12]
