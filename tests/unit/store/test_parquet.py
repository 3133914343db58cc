"""requests.parquet and chunk_events.parquet say what the journal says."""

import sys
from pathlib import Path

import pytest

from loadgen.record import RequestRecord
from loadgen.store import JournalWriter, RunDir, StoreError, parquet

pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir.create(tmp_path, "a")
    journal = JournalWriter(run.journal_path)
    journal.append(
        RequestRecord(
            engine="e",
            sequence=1,
            sent_ns=10**18,
            ttft_ms=1.5,
            event_us=[1500, 2500, 4000],
            event_tokens=[1, 2, 1],
            coalesced=[1],
            server_timings={"prompt_ms": 3.5},
        )
    )
    journal.append(RequestRecord(engine="e", sequence=2, outcome="failed", error="http_500"))
    journal.append(RequestRecord(engine="e", sequence=3, sent_ns=10**18 + 5, event_us=[7]))
    journal.close()
    return run


def test_one_row_a_request(run: RunDir) -> None:
    assert parquet.export(run) == [run.requests_parquet, run.chunk_events_parquet]
    first, failed, _ = pq.read_table(run.requests_parquet).to_pylist()
    assert (first["sequence"], first["ttft_ms"], first["outcome"], first["phase"]) == (
        1,
        1.5,
        "ok",
        "measure",
    )
    assert first["server_timings"] == '{"prompt_ms":3.5}'
    assert first["point_ns"] > 0
    assert (failed["error"], failed["ttft_ms"]) == ("http_500", None)
    assert "event_us" not in first


def test_one_row_an_event(run: RunDir) -> None:
    parquet.export(run)
    rows = pq.read_table(run.chunk_events_parquet).to_pylist()
    assert [(r["sequence"], r["index"], r["event_us"], r["tokens"], r["exact"]) for r in rows] == [
        (1, 0, 1500, 1, True),
        (1, 1, 2500, 2, False),
        (1, 2, 4000, 1, True),
        (3, 0, 7, None, True),
    ]
    assert rows[2]["t_ns"] == 10**18 + 4_000_000


def test_values_of_wrong_types_become_null(run: RunDir) -> None:
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine":7,"turn":1.5,"ttft_ms":"x","event_us":[1,"2"],"sent_ns":18446744073709551615}\n')
    parquet.export(run)
    odd = pq.read_table(run.requests_parquet).to_pylist()[-1]
    assert (odd["engine"], odd["turn"], odd["ttft_ms"], odd["sent_ns"]) == (None, None, None, None)
    assert pq.read_table(run.chunk_events_parquet).num_rows == 4


def test_an_empty_journal_gives_files_with_columns(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "b")
    parquet.export(run)
    assert pq.read_table(run.requests_parquet).num_rows == 0
    assert "exact" in pq.read_schema(run.chunk_events_parquet).names


def test_many_batches(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_EVENTS", 2)
    monkeypatch.setattr(parquet, "BATCH_REQUESTS", 1)
    parquet.export(run)
    assert pq.read_table(run.chunk_events_parquet).num_rows == 4
    assert pq.read_table(run.requests_parquet).num_rows == 3


def test_without_pyarrow_one_sentence(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match="Parquet needs pyarrow: pip install"):
        parquet.export(run)


def test_a_directory_that_cannot_be_written(run: RunDir) -> None:
    run.requests_parquet.mkdir()
    (run.requests_parquet / "x").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        parquet.export(run)
    assert not list(run.path.glob(".requests*"))
