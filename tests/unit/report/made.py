"""A run directory as a run leaves it, made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from loadgen.store import EventsWriter, Manifest, RunDir, Suite
from tests.unit.metrics.rows import FIVE, T0

S = 10**9


def make_run(
    runs_dir: Path,
    rows: Iterable[dict[str, Any]] = FIVE,
    *,
    scenario: str = "concurrency",
    suite: Suite | None = None,
    engines: Iterable[dict[str, Any]] = ({"name": "e"},),
    turns: Iterable[tuple[str, int, float, float, bool]] = (("e", 0, 0.0, 10.0, True),),
    state: str = "complete",
    notes: Iterable[str] = (),
    in_server: Iterable[tuple[float, int, int]] = (),
    **settings: Any,
) -> RunDir:
    """`turns` are (engine, turn, start, end, complete), in seconds from T0; `in_server` are (time, running,
    waiting) of the engine e, in its own words."""
    run = RunDir.create(runs_dir, scenario, suite)
    run.journal_path.write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in rows))
    events = EventsWriter(run.events_path)
    for engine, turn, start, end, complete in turns:
        at = {"engine": engine, "turn": turn, "block": turn // 2}
        events.append("turn_start", t_ns=T0 + int(start * S), mono_ns=int(start * S), **at)
        events.append("turn_end", t_ns=T0 + int(end * S), mono_ns=int(end * S), complete=complete, **at)
    if state != "running":
        events.append("run_end")
    events.close()
    manifest = Manifest(
        run=run.name, scenario=scenario, state=state, engines=list(engines), notes=list(notes)
    )
    manifest.settings = settings
    manifest.write(run.manifest_path)
    if in_server:
        rows = ({"t_ns": T0 + int(t * S), "engine": "e", "running": r, "waiting": w} for t, r, w in in_server)
        (run.path / "engine.jsonl").write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in rows))
    return run


def watched(run: RunDir, engine: str = "e", watts: float = 400.0, gpus: int = 1) -> RunDir:
    """Samples of GPUs from a second before T0 until 12 s after it; `engine` holds 1 GiB on each."""
    with open(run.gpu_path, "wb") as f:
        for t in range(-1, 13):
            for gpu in range(gpus):
                row = {"kind": "sample", "t_ns": T0 + t * S, "host": "h", "gpu": gpu, "source": "nvml"}
                held = [{"pid": 7, "memory_bytes": 2**30, **({"engine": engine} if engine else {})}]
                f.write(orjson.dumps({**row, "energy_j": watts * t, "processes": held}) + b"\n")
    return run
