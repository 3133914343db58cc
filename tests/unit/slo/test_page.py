"""docs/slo.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from loadgen.slo import PRESETS
from loadgen.slo.expression import KINDS

PAGE = (Path(__file__).parents[3] / "docs" / "slo.md").read_text(encoding="utf-8")


def test_every_name_and_preset_is_on_the_page() -> None:
    cells = re.findall(r"^\| (`[^|]+`) \|", PAGE, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert names == [*(n for n in sorted(KINDS, key=names.index)), *PRESETS]


def test_presets_are_as_in_the_code() -> None:
    for name, texts in PRESETS.items():
        assert f"| `{name}` | {', '.join(f'`{t}`' for t in texts)} |" in PAGE
