"""docs/compare.md says what the code does, and its numbers are those of the recording."""

import json
import re
from pathlib import Path

import pytest

from loadgen.compare.assess import judged
from loadgen.compare.enginelog import log_memory
from loadgen.compare.figures import FIGURES
from loadgen.compare.kvuse import ENOUGH
from loadgen.compare.memory import NUMBERS, TITLES, MemorySources, engine_memory
from loadgen.compare.ratios import MARGIN
from loadgen.compare.uses import LONG, LONG_FROM, MANY, SINGLE, Use
from loadgen.report.comparison.cells import memory_cells
from tests.unit.compare.compared import TTFT, comparison, row

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


@pytest.mark.parametrize("use", [SINGLE, LONG, MANY], ids=lambda use: use.name)
def test_uses_and_their_figures(use: Use) -> None:
    titles = {f.name: f.title for f in FIGURES}
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {use.title} |"))
    assert line.endswith(f"| {', '.join(titles[name] for name in use.figures)} |")


def test_limits_in_the_text() -> None:
    assert f"{LONG_FROM:,} tokens or more" in TEXT
    assert f"`--margin {MARGIN - 1:.0%}`" in TEXT
    assert ENOUGH == 10
    assert "ten readings in use or more" in TEXT


def test_memory_numbers_are_named_and_those_of_the_recording() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert [title for title in rows if title in TITLES.values()] == [TITLES[key] for key in NUMBERS]
    log = (ROOT / "tests/fixtures/enginelog/vllm_h200.log").read_text().splitlines()
    recording = ROOT / "tests/fixtures/nvml/two_engines.jsonl"
    held = [dict(json.loads(line)["procs"]) for line in recording.read_text().splitlines()]
    # The gauge's highest reading in the same recording's /metrics.
    known = MemorySources(
        {"total_context": 245_200}, max(h[4596] for h in held), log_memory(log), 0.02094753328112764
    )
    one = comparison(row(TTFT, 0.5), parts={"memory": {"a": engine_memory(known)}})
    # "33.7 (245,200 tokens)" in the table, where the row says GiB.
    cells = [re.sub(r"^([\d.]+)", r"\1 GiB", own[0]) for _, own in memory_cells(one)]
    assert f"| {' | '.join(cells)} |" in PAGE


def test_the_shape_of_the_json() -> None:
    found = judged([comparison(row(TTFT, 0.5))], None).to_dict()
    (one,) = found["comparisons"]
    for names in (one, one["rows"][0], one["verdict"]["pairs"][0], found["overall"]["verdicts"][0]):
        assert [name for name in names if f'"{name}"' not in TEXT and f"`{name}`" not in TEXT] == []
    assert set(found["overall"]["advice"][0]) == {"use", "engine", "sentence", "because"}
