"""Writes the dashboards' JSON from their Python source.

python grafana/build.py            writes grafana/json/*.json
python grafana/build.py --check    exit code 1 if they are not what the source says
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from grafana.dashboards import DASHBOARDS  # noqa: E402

FOLDER = HERE / "json"


def text(dashboard: dict[str, Any]) -> str:
    """The file's text: readable, and the same for the same source."""
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


def files() -> dict[Path, str]:
    """Every file there should be, and its text."""
    return {FOLDER / f"{name}.json": text(make()) for name, make in DASHBOARDS.items()}


def stale() -> list[Path]:
    """Files that differ from the source, are missing, or have no source."""
    wanted = files()
    differing = [p for p, body in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != body]
    return differing + [p for p in FOLDER.glob("*.json") if p not in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    if parser.parse_args().check:
        for path in stale():
            print(f"{path} is not what its source says: run python grafana/build.py", file=sys.stderr)
        return 1 if stale() else 0
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for path, body in files().items():
        path.write_text(body, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
