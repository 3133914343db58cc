"""Columns from Parquet are those from the journals; where they might not be, the journals are read."""

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from loadgen.metrics.columns import Columns
from loadgen.report import parquet as reading
from loadgen.report.load import RunData, load_run
from loadgen.store import RunDir, parquet
from tests.unit.metrics.rows import FIVE, T0, row
from tests.unit.report.made import make_run

pytest.importorskip("pyarrow.parquet")

ROWS = [
    *FIVE,
    row(0, 1, engine="f", phase="warmup", event_us=[5, 6], event_tokens=[1, 1], scheduled_ns=T0 - 1500),
    row(1, 2, engine="e", outcome="failed", error="http_500", error_text="no", clock="read"),
    row(2, 3, engine="f", outcome="failed", error="http_500", error_text="never", clock_step=True),
    row(2, 3, engine="e", outcome="failed", error="http_500", error_text="not again"),
    row(3, 4, engine="f", event_us=[10, 20, 30], event_tokens=[1], output_tokens=7, turn=3, block=1),
    {**row(4, 5, engine="e"), "a newer field": [1]},
]


@pytest.fixture(autouse=True)
def _no_run_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE", 0)
    monkeypatch.setattr(parquet, "BATCH_EVENTS", 4)
    monkeypatch.setattr(parquet, "BATCH_REQUESTS", 3)


def loaded(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> tuple[RunData, bool]:
    """The run, and whether it came from Parquet."""
    seen: list[Any] = []
    real = reading.read_parquet

    def read(run: RunDir) -> Any:
        seen.append(real(run))
        return seen[-1]

    monkeypatch.setattr("loadgen.report.load.read_parquet", read)
    return load_run(run), seen[0] is not None


def plain(data: RunData) -> dict[str, Any]:
    """All that a run's journals say, in a form that can be compared."""

    def of(columns: Columns) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for field in fields(columns):
            value = getattr(columns, field.name)
            parts = value if isinstance(value, dict) else {"": value}
            out |= {field.name + name: list(map(repr, np.asarray(v).tolist())) for name, v in parts.items()}
        return out

    engines = {name: (of(e.columns), e.examples, e.turns) for name, e in data.engines.items()}
    return {
        "engines": engines,
        "scenario": data.scenario,
        "warnings": data.warnings,
        "order": list(data.engines),
    }


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [],
        [row(0, 1, engine="e")],  # no events at all
        [row(0, 1, engine="e", event_us=[7, 2**33], event_tokens=[70_000, 1])],
        [row(k, k + 1, engine="e", event_us=[1, 2, 3], event_tokens=[1, 1, 1]) for k in range(9)],
    ],
    ids=["mixed", "nothing", "silent", "wide", "single tokens"],
)
def test_both_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    run = make_run(tmp_path, rows, engines=[])
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine":')
    journal, stored = loaded(run, monkeypatch)
    assert not stored
    parquet.export(run)
    again, stored = loaded(run, monkeypatch)
    assert stored
    assert plain(again) == plain(journal)
    assert any("cut short" in w for w in again.warnings)
    for name, engine in again.engines.items():
        if name == "e" and len(rows) == 9:
            assert engine.columns.event_tokens.strides == (0,)  # one token an event takes no room


def test_a_workers_own_journal_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, [{**r, "point_ns": k} for k, r in enumerate(FIVE, 1)])
    more = [{**r, "point_ns": k} for k, r in enumerate([*FIVE, FIVE[0]], 1)]
    run.worker_journal_path("local").write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in more))
    journal, _ = loaded(run, monkeypatch)
    parquet.export(run)
    again, stored = loaded(run, monkeypatch)
    assert stored
    assert len(again.engines["e"].columns) == 6
    assert plain(again) == plain(journal)


def append(run: RunDir) -> None:
    with open(run.journal_path, "ab") as f:
        f.write(orjson.dumps(FIVE[0]) + b"\n")
    # The same time as the Parquet files, as on a file system that tells whole seconds only.
    made = run.requests_parquet.stat().st_mtime_ns
    os.utime(run.journal_path, ns=(made, made))


def touch(run: RunDir) -> None:
    later = run.requests_parquet.stat().st_mtime_ns + 1
    os.utime(run.journal_path, ns=(later, later))


def more_journals(run: RunDir) -> None:
    run.worker_journal_path("w").write_bytes(b"")


def damage(run: RunDir) -> None:
    run.chunk_events_parquet.write_bytes(run.chunk_events_parquet.read_bytes()[:-30])


def without_a_stamp(run: RunDir) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(run.requests_parquet).replace_schema_metadata(None), run.requests_parquet)


def of_an_older_version(run: RunDir) -> None:
    """Without a column that came later."""
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(run.requests_parquet).drop_columns(["traffic_class"]), run.requests_parquet)


def of_another_run(run: RunDir) -> None:
    """Files that don't belong together."""
    other = make_run(run.path.parent, [*FIVE, FIVE[0]])
    other.journal_path.write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in FIVE))
    parquet.export(other)
    run.chunk_events_parquet.unlink()


def small(run: RunDir) -> None:
    reading.LARGE = 10**6


def no_pyarrow(run: RunDir) -> None:
    sys.modules["pyarrow"] = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "change",
    [
        append,
        touch,
        more_journals,
        damage,
        without_a_stamp,
        of_an_older_version,
        of_another_run,
        small,
        no_pyarrow,
    ],
)
def test_else_the_journals_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    run = make_run(tmp_path, FIVE)
    parquet.export(run)
    assert loaded(run, monkeypatch)[1]
    monkeypatch.setitem(sys.modules, "pyarrow", sys.modules["pyarrow"])  # put back afterwards
    change(run)
    data, stored = loaded(run, monkeypatch)
    assert not stored
    assert len(data.engines["e"].columns) == (6 if change is append else 5)


@pytest.mark.parametrize(
    "odd",
    [
        {"turn": None},
        {"turn": 1.5},
        {"ttft_ms": "x"},
        {"ttft_ms": True},
        {"event_us": [1, "2"]},
        {"engine": 7},
        {"sent_ns": 2**63},
        {"prompt_tokens": 5.5},
        {"clock_step": 1},
        {"event_us": [2**60]},
    ],
    ids=str,
)
def test_a_value_of_a_wrong_type_is_the_journals_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    run = make_run(tmp_path, [*FIVE, {**FIVE[0], **odd}])
    parquet.export(run)
    assert not loaded(run, monkeypatch)[1]
