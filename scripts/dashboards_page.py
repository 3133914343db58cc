"""Writes the tables of docs/dashboards.md from the dashboards themselves: every panel, and what it answers.

python scripts/dashboards_page.py            writes them
python scripts/dashboards_page.py --check    exit code 1 if the page and the dashboards differ
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grafana.dashboards import DASHBOARDS  # noqa: E402

PAGE = ROOT / "docs" / "dashboards.md"


def section(model: dict[str, Any]) -> str:
    """The panels of one dashboard, row by row."""
    lines = ["| panel | what it answers |\n|---|---|\n"]
    for panel in model["panels"]:
        if panel["type"] == "row":
            closed = " (closed until somebody opens it)" if panel["collapsed"] else ""
            lines.append(f"| **{panel['title']}**{closed} | |\n")
        for one in panel.get("panels") or [panel]:
            if one["type"] not in ("row", "text"):
                lines.append(f"| {one['title']} | {one['description']} |\n")
    return "".join(lines)


def filled(page: str) -> str:
    """The page with today's tables between its markers."""
    for name, make in DASHBOARDS.items():
        begin = f"<!-- {name}: made by scripts/dashboards_page.py -->\n"
        end = f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        assert closed, f"{PAGE} has no place for the panels of {name}"
        page = head + begin + section(make()) + end + tail
    return page


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    before = PAGE.read_text(encoding="utf-8")
    after = filled(before)
    if after == before:
        return 0
    if check:
        print(f"{PAGE} is not what the dashboards say: run scripts/dashboards_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
