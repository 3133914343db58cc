"""Writes the tables of docs/schema.md from the schema itself.

python scripts/schema_page.py            writes them
python scripts/schema_page.py --check    exit code 1 if the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path

from generated_page import write_page

from loadgen.sinks.schema import MEASUREMENTS, Measurement

PAGE = Path(__file__).resolve().parent.parent / "docs" / "schema.md"
BEGIN, END = "<!-- measurements: made by scripts/schema_page.py -->\n", "<!-- end of measurements -->"
TYPES = {"float": "", "integer": "integer", "string": "string"}


def section(m: Measurement) -> str:
    tags = "".join(f"| `{t.name}` | tag | | {t.meaning} |\n" for t in m.tags)
    fields = "".join(f"| `{f.name}` | {TYPES[f.kind]} | {f.unit} | {f.meaning} |\n" for f in m.fields)
    return (
        f"## {m.name}\n\n{m.meaning}\n\nTime: {m.time}. Made from: {m.source}.\n\n"
        f"| name | type | unit | meaning |\n|---|---|---|---|\n{tags}{fields}\n"
    )


def filled(page: str) -> str:
    """The page with today's tables between its markers."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert end, f"{PAGE} has no place for the tables"
    return head + begin + "\n" + "".join(map(section, MEASUREMENTS)) + end + tail


if __name__ == "__main__":
    sys.exit(write_page("schema_page.py", __doc__, PAGE, filled))
