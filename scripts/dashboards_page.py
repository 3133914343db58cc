"""Writes the tables of docs/dashboards.md from the dashboards themselves: every panel, and what it answers.

python scripts/dashboards_page.py            writes them
python scripts/dashboards_page.py --check    exit code 1 if the page and the dashboards differ
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generated_page import write_page  # noqa: E402

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


if __name__ == "__main__":
    sys.exit(write_page("dashboards_page.py", __doc__, PAGE, filled))
