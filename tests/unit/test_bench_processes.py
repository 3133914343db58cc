"""What processes.py says of runs whose answer is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import processes
from pairs import Change


def run(cost: float, master: float | None = None) -> dict[str, Any]:
    return {
        "us_per_event": cost,
        "master_us_per_event": master,
        "events_per_s": 10_000.0,
        "rss_mb": 100.0,
        "ttft_ms": {50: 200.1, 95: 201.0, 99: 202.0},
        "ttft_p50_ms": 0.01,
        "ttft_p99_ms": 0.03,
        "gap_p99_ms": 0.01,
        "coalesced": 12,
    }


def test_scaling_is_the_cost_alone_over_the_cost_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [8.0, 9.0, 8.5, 8.6, 8.4, 8.5]
    costs = {1: iter(alone), 2: iter(alone), 4: iter([2 * x for x in alone])}
    made: list[int] = []

    def measure(count: int, load: Any) -> dict[str, Any]:
        made.append(count)
        return run(next(costs[count]), 0.4 if count > 1 else None)

    monkeypatch.setattr(processes, "measure", measure)
    outcome = processes.bench(processes.Load(200, 2, 256, processes.Timing()), [1, 2, 4], 6)
    assert made == [1, 2, 4, 4, 2, 1] * 3
    assert outcome["scaling"]["2"].mean == pytest.approx(2.0)
    assert outcome["scaling"]["4"].mean == pytest.approx(2.0)
    text = processes.table(outcome)
    assert "2 processes on 2 cores: x 2.00 (2.00 to 2.00) the events/s of one" in text
    assert "at least 1.8 by two: holds" in text
    one, two, four = text.splitlines()[5:8]
    assert one.split() == ["1", "10,000", "8.50", "-", "200.1", "202.0", "0.030", "12"]
    assert two.split()[:4] == ["2", "10,000", "8.50", "0.40"]
    assert four.split()[2] == "17.00"


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (1.81, 1.95, "holds"),
        (1.70, 1.79, "does not hold"),
        (1.75, 1.90, "not decided"),
        (None, None, "not decided"),
    ],
)
def test_only_a_whole_interval_decides(low: float | None, high: float | None, says: str) -> None:
    assert processes._verdict(Change(6, 1.85, low, high)) == says
