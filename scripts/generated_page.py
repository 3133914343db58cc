"""What the scripts that write parts of a page of docs/ have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def write_page(script: str, description: str | None, page: Path, filled: Callable[[str], str]) -> int:
    """Writes what `filled` makes of the page. With --check it writes nothing: 1 if it would have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    before = page.read_text(encoding="utf-8")
    after = filled(before)
    if after == before:
        return 0
    if check:
        print(f"{page} is not what the code says: run scripts/{script}", file=sys.stderr)
        return 1
    page.write_text(after, encoding="utf-8")
    return 0
