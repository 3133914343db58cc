"""What a delivery does with a run directory, over processes that come and go; the database is made up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.config import InfluxdbSpec
from loadgen.sinks import delivery as module
from loadgen.sinks.deadletter import read_letters
from loadgen.sinks.delivery import Delivery, finish
from loadgen.sinks.influxdb import Refusal, WriteError
from loadgen.sinks.sending import GaveUp
from loadgen.sinks.source import missing_lines, needs_derived
from loadgen.store import RunDir, StoreError
from tests.support import shipping
from tests.support.shipping import T0


class Database:
    """Keeps what it is given; refuses lines with `poison` in them; `down`: answers nothing."""

    spec = InfluxdbSpec(url="http://db")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.down: WriteError | None = None

    def write(self, lines: Sequence[str], timeout_s: float) -> None:
        if self.down:
            raise self.down
        if any("poison" in line for line in lines):
            raise WriteError(Refusal.SPLIT, "400: poison")
        self.lines += lines

    def of(self, measurement: str) -> list[str]:
        return [line for line in self.lines if line.startswith(measurement + ",")]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return shipping.new_run(tmp_path)


@pytest.fixture
def database() -> Database:
    return Database()


def deliverer(run: RunDir, database: Database, *, over: bool = True, **more: Any) -> Delivery:
    """A new process, as it were."""
    ending = threading.Event()
    if over:
        ending.set()
    writer: Any = database
    return Delivery(run, writer, ending=ending, **more)


def append(path: Path, *lines: bytes) -> None:
    with open(path, "ab") as f:
        f.writelines(line + b"\n" for line in lines)


def drain(delivery: Delivery) -> None:
    while delivery.deliver_new():
        pass


def test_a_new_process_goes_on_and_knows_what_earlier_rows_said(run: RunDir, database: Database) -> None:
    gpu, events = run.path / "gpu.jsonl", run.events_path
    at = {"engine": "vllm", "turn": 0, "block": 0}
    append(gpu, shipping.gpu_facts(), shipping.gpu(1))
    append(events, orjson.dumps({"t_ns": T0, "kind": "turn_start", **at}))
    drain(deliverer(run, database))
    append(gpu, shipping.gpu(2))
    append(events, orjson.dumps({"t_ns": T0 + 10**9, "kind": "turn_end", "complete": True, **at}))
    again = deliverer(run, database)
    drain(again)
    assert again.lines == 2
    first, second = database.of("gpu")
    assert first.split(" energy_j")[0].split(",power")[0] == second.split(" energy_j")[0].split(",power")[0]
    assert "gpu_name=NVIDIA\\ H200" in second
    start, end = database.of("run_event")
    assert start.rsplit(" ", 1)[1] == end.rsplit(" ", 1)[1] == str(T0)
    assert "end_ms=" in end


def test_a_journal_that_was_replaced_begins_anew(run: RunDir, database: Database) -> None:
    append(run.journal_path, *(shipping.request(n) for n in range(3)))
    one = deliverer(run, database)
    drain(one)
    new = run.path / "new"
    append(new, *(shipping.request(n) for n in range(10, 15)))
    os.replace(new, run.journal_path)
    drain(one)
    assert [line.split("sequence=")[1].split(",")[0] for line in database.of("llm_request")] == [
        *"012", "10", "11", "12", "13", "14",
    ]  # fmt: skip


def test_derived_windows_come_again_after_windows_that_came_late(run: RunDir, database: Database) -> None:
    derived = run.path / "derived.jsonl"
    append(run.path / "windows.jsonl", shipping.window(1))
    append(derived, orjson.dumps({"measurement": "m", "time_ns": T0, "tags": {"a": "b"}, "fields": {"v": 1}}))
    finish(deliverer(run, database))
    finish(deliverer(run, database))
    assert len(database.of("m")) == 1
    append(run.path / "windows.jsonl", shipping.window(2))
    finish(deliverer(run, database))
    assert [line.split(",")[0] for line in database.lines[-2:]] == ["llm_window", "m"]


def test_derived_points_are_made_once_there_are_requests(run: RunDir, database: Database) -> None:
    append(run.path / "gpu.jsonl", shipping.gpu(1))
    assert not needs_derived(run)
    append(run.journal_path, shipping.request(1))
    assert needs_derived(run)
    finish(deliverer(run, database))
    assert not needs_derived(run)
    assert database.of("run_summary")
    os.utime(run.journal_path, ns=(2**62, 2**62))
    assert needs_derived(run)


def test_what_is_left_is_counted_in_lines(run: RunDir, database: Database) -> None:
    append(run.journal_path, *(shipping.request(n) for n in range(7)), b"no json", b"")
    append(run.path / "engine.jsonl", *(shipping.engine(n) for n in range(5)))
    one = deliverer(run, database)
    assert one.left() == 14
    assert missing_lines(run, "http://db loadgen loadgen") == {"requests.jsonl": 9, "engine.jsonl": 5}
    append(run.journal_path, shipping.request(8))
    assert one.left() == 15
    drain(one)
    assert (one.left(), one.lines, one.dead) == (0, 13, 1)
    append(run.journal_path, shipping.request(9))
    assert (one.left(), deliverer(run, database).left()) == (1, 1)
    assert missing_lines(run, "elsewhere") == {"requests.jsonl": 11, "engine.jsonl": 5}


def test_rows_and_lines_that_are_refused(run: RunDir, database: Database) -> None:
    rows = [
        shipping.request(1),
        b"[1]",
        b'{"engine": "vllm"}',
        shipping.request(2, error_text="poison"),
        b" ",
    ]
    append(run.journal_path, *rows, shipping.request(3))
    one = deliverer(run, database)
    drain(one)
    assert (len(database.of("llm_request")), one.dead) == (2, 3)
    letters = read_letters(run.path / "dead-letter.jsonl")
    assert [(letter.offset, letter.why) for letter in letters] == [
        (len(rows[0]) + 1, "it is not a JSON object"),
        (len(rows[0]) + 1 + 4, "it has no point_ns"),
        (len(rows[0]) + 1 + 4 + 19, "400: poison"),
    ]
    assert letters[2].line.startswith("llm_request,")


def test_a_stop_in_the_middle_loses_nothing(run: RunDir, database: Database, monkeypatch: Any) -> None:
    """Two files: the first batch fails while the second has been read already."""
    append(run.path / "engine.jsonl", *(shipping.engine(n) for n in range(5)))
    append(run.journal_path, *(shipping.request(n) for n in range(5)))
    database.down = WriteError(Refusal.STOP, "401")
    one = deliverer(run, database)
    with pytest.raises(WriteError, match="401"):
        drain(one)
    assert (one.left(), one.lines) == (10, 0)
    database.down = None
    drain(one)
    assert (len(database.lines), one.left()) == (10, 0)


class _Disk:
    """A disk that is full for some time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
        self.left = times
        original: Callable[..., None] = getattr(module, name)
        method = {"DeadLetterFile": "add", "DeliveryState": "save"}[name]
        real = getattr(original, method)

        def full(this: Any, *args: Any) -> None:
            self.left -= 1
            if self.left >= 0:
                raise OSError(28, "No space left on device") if method == "add" else StoreError("disk full")
            real(this, *args)

        monkeypatch.setattr(original, method, full)


def test_a_full_disk_does_not_stop_delivery(
    run: RunDir, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    _Disk(monkeypatch, "DeliveryState", 10**6)
    append(run.journal_path, *(shipping.request(n) for n in range(5)))
    one = deliverer(run, database, tell=lambda *said: told.append(said))
    drain(one)
    append(run.journal_path, shipping.request(5))
    drain(one)
    assert (len(database.lines), one.left()) == (6, 0)  # each once: this process knows where it is
    assert ("delivering", "disk full") in told
    monkeypatch.undo()
    drain(deliverer(run, database))
    assert (len(database.lines), len(set(database.lines))) == (
        12,
        6,
    )  # the next one does not, and it matters not


def test_a_line_that_cannot_be_buried_is_not_passed_over(
    run: RunDir, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(module, "RETRY_OWN_S", 0.01)
    append(run.journal_path, shipping.request(1, error_text="poison"), shipping.request(2))
    disk = _Disk(monkeypatch, "DeadLetterFile", 3)
    one = deliverer(run, database, over=False, tell=lambda *said: told.append(said))
    drain(one)
    assert (disk.left, one.dead, one.left()) == (-1, 1, 0)
    assert any(state == "waiting" and "No space left" in why for state, why in told)

    append(run.journal_path, shipping.request(3, error_text="poison"))
    disk.left = 10**6
    with pytest.raises(GaveUp, match="No space left"):
        drain(deliverer(run, database))
    disk.left = 0
    last = deliverer(run, database)
    drain(last)
    assert (last.dead, last.left()) == (2, 0)


def test_again_forgets_everything(run: RunDir, database: Database) -> None:
    append(run.journal_path, shipping.request(1), b"no json")
    one = deliverer(run, database)
    drain(one)
    one.again()
    assert (one.left(), one.dead, (run.path / "dead-letter.jsonl").exists()) == (2, 0, False)
    drain(one)
    assert len(database.lines) == 2


def test_files_that_are_no_journals_are_left_alone(run: RunDir, database: Database) -> None:
    for name in ("summary.jsonl", "requests.jsonl.bak", "requestsx.jsonl", "dead-letter.jsonl", "gpu.json"):
        append(run.path / name, shipping.request(1))
    assert not deliverer(run, database).deliver_new()
    append(run.path / "requests-w1.jsonl", shipping.request(1, "w1"))
    append(run.path / "gpu-host2.jsonl", shipping.gpu(1))
    drain(deliverer(run, database))
    assert {line.split(",")[0] for line in database.lines} == {"llm_request", "gpu"}
