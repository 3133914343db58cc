from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.record import CANCELLED, RequestRecord
from loadgen.store import RunDir
from loadgen.webui.feed import KINDS, Feed
from loadgen.webui.figures import Figures
from loadgen.webui.history import History

T = 1_796_000_000


class Fed:
    def __init__(self, path: Path) -> None:
        self.dir = RunDir.create(path, "concurrency")
        self.history = History(KINDS)
        self.figures = Figures("concurrency", ["a", "b"])
        self.now = float(T)
        self.feed = Feed(self.dir, self.history, self.figures, lambda: self.now)

    def write(self, name: str, *rows: dict[str, Any], end: str = "\n") -> None:
        with open(self.dir.path / name, "a") as f:
            f.write("\n".join(json.dumps(r) for r in rows) + end)

    def track(self, kind: str, name: str) -> dict[str, Any]:
        self.feed.tick()
        tracks = self.history.since(0)["tracks"]
        return next((t for t in tracks if (t["kind"], t["name"]) == (kind, name)), {})

    def marks(self) -> list[dict[str, Any]]:
        self.feed.tick()
        return self.history.since(0)["marks"]


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    return Fed(tmp_path)


def second(t: int, engine: str = "a", **fields: Any) -> dict[str, Any]:
    known = {"worker": "local", "phase": "measure", "measured_s": 1.0, "tokens": 50, "in_flight": 4}
    return {"t_ns": (T + t) * 10**9, "engine": engine, "users": 4, **known, **fields}


def test_nothing_is_there_yet(fed: Fed) -> None:
    fed.feed.tick()
    assert fed.history.since(0)["tracks"] == []


def test_seconds_as_they_are_written(fed: Fed) -> None:
    fed.write("windows.jsonl", second(0), second(0, "b", phase="idle", in_flight=0), second(1))
    assert fed.track("engine", "a")["figures"]["tokens_per_s"] == [50, 50]
    assert fed.track("engine", "b") == {}  # a gap, not a zero, while it is not its turn
    fed.write("windows.jsonl", second(2), end="")  # still being written
    assert fed.track("engine", "a")["t"] == [T, T + 1]
    fed.write("windows.jsonl", {}, end="\n")
    fed.write("windows.jsonl", second(3, worker="w0"), second(3, worker="w1"))
    assert fed.track("engine", "a")["figures"]["in_flight"][-1] == 8


def test_what_is_no_row_is_passed_over(fed: Fed) -> None:
    with open(fed.dir.path / "windows.jsonl", "w") as f:
        f.write("nonsense\n[]\n3\n{}\n" + json.dumps(second(0)) + "\n")
    with open(fed.dir.path / "events.jsonl", "a") as f:
        f.write('{"kind": "turn_start"}\n{"kind": 1, "t_ns": "x"}\n')
    assert fed.track("engine", "a")["t"] == [T]


def test_engines_and_gpus(fed: Fed) -> None:
    engine = {"t_ns": T * 10**9, "engine": "a", "running": 3, "waiting": 5, "kv_used_share": 0.5}
    fed.write("engine.jsonl", engine, {"t_ns": T * 10**9, "engine": "a", "error": "gone"})
    assert fed.track("engine", "a")["figures"] == {"running": [3], "waiting": [5], "kv_used_share": [0.5]}
    sample = {"kind": "sample", "t_ns": T * 10**9, "host": "h", "gpu": 1, "power_w": 600.0}
    fed.write("gpu.jsonl", {"kind": "facts", "gpu": 1}, {**sample, "memory_used_bytes": 2**31})
    assert fed.track("gpu", "GPU 1 on h")["figures"] == {"power_w": [600.0], "memory_gb": [2.0]}


def test_rolling_percentiles_of_a_turn(fed: Fed) -> None:
    for n in range(1, 101):
        fed.feed.record(RequestRecord(engine="a", turn=0, ttft_ms=float(n)))
    fed.feed.record(RequestRecord(engine="a", ttft_ms=1e6, outcome=CANCELLED))
    fed.write("windows.jsonl", second(4))
    fed.now = T + 5.2
    found = fed.track("engine", "a")["figures"]
    assert [found[f"ttft_p{p}_ms"] for p in (50, 95, 99)] == [[50.0], [95.0], [99.0]]
    fed.feed.record(RequestRecord(engine="a", turn=2, ttft_ms=5000.0, phase="warmup"))
    fed.feed.record(RequestRecord(engine="a", turn=2, ttft_ms=7.0))
    fed.write("windows.jsonl", second(5))
    fed.now = T + 6.2
    assert fed.track("engine", "a")["figures"]["ttft_p50_ms"] == [50.0, 7.0]  # another turn begins anew
    fed.now = T + 20.0  # nothing is sent any more
    assert fed.track("engine", "a")["t"][-1] == T + 5


def test_turns_and_moments(fed: Fed) -> None:
    def event(kind: str, t: float, **fields: Any) -> dict[str, Any]:
        return {"t_ns": int((T + t) * 1e9), "kind": kind, **fields}

    fed.write("events.jsonl", event("run_start", 0), event("warmup_start", 1, engine="a"))
    fed.write("events.jsonl", event("turn_start", 2, engine="a", turn=0), event("note", 2, text="n"))
    fed.write("events.jsonl", event("level", 3, users=8), event("turn_end", 4, engine="a", turn=0))
    fed.write("events.jsonl", event("worker_lost", 4, worker="w1", text="<b>gone"))
    warmup, turn, level, lost = fed.marks()
    assert (warmup["kind"], warmup["open"]) == ("warmup", True)
    assert (turn["kind"], turn["engine"], turn["end"]) == ("turn", "a", T + 4)
    assert (level["kind"], level["text"]) == ("moment", "level: users 8")
    assert lost["text"] == "<b>gone"
    assert fed.figures.doubts == ["worker w1 was lost"]
