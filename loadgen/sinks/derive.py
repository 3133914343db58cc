"""derived.jsonl: the points that exist only when a run is over, made from its journals any time.

    {"measurement": "llm_window", "time_ns": 1796056862000000000,
     "tags": {"run": "...", "engine": "vllm", ...}, "fields": {"tokens": 381.0, ...}}

llm_window (exact, for every second and engine), llm_window_aligned, run_summary and engine_memory;
docs/schema.md says what their fields mean. A run that was killed gives the points of what there is of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from loadgen.compare.facts import engine_facts
from loadgen.compare.memory import NUMBERS
from loadgen.metrics.seconds import LONGEST_S, SECOND_NS
from loadgen.report.judge import judge
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import classes, summarise_data
from loadgen.sinks.context import RunContext
from loadgen.sinks.derive_summary import summary_rows
from loadgen.sinks.derive_windows import aligned_rows, window_rows
from loadgen.store.errors import StoreError
from loadgen.store.events import RUN_END, RUN_START
from loadgen.store.jsonl import Damage, read_rows
from loadgen.store.rundir import RunDir

DERIVED = "derived.jsonl"


def write_derived(run: RunDir) -> Path:
    """Make the run's derived.jsonl and put it in place in one step; its path. Raises StoreError."""
    path = run.path / DERIVED
    part = path.with_name(f".{DERIVED}.{os.getpid()}")
    data = load_run(run)
    try:
        with open(part, "wb") as f:
            f.writelines(_lines(run, data))
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except OSError as e:
        raise StoreError(f"{path} cannot be written: {e.strerror or e}") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def _lines(run: RunDir, data: RunData) -> Iterator[bytes]:
    context = RunContext.of(run)
    start_ns = start_of(data)
    summary = summarise_data(data)
    tags = {"run": context.run, "scenario": context.scenario or data.scenario}
    validity = judge(run, data, summary)
    for name, metric, fields in summary_rows(data, summary, validity):
        yield _point("run_summary", start_ns, {**tags, "engine": name, "metric": metric}, fields)
    for traffic_class, engines in classes(summary.engines).items():
        own = {**tags, "scenario": f"{tags['scenario']}: {traffic_class}", "class": traffic_class}
        part = data.of_class(traffic_class), replace(summary, engines=engines)
        for name, metric, fields in summary_rows(*part, validity):
            yield _point("run_summary", start_ns, {**own, "engine": name, "metric": metric}, fields)
    for name, facts in engine_facts(run, data, summary).items():
        if sizes := _sizes(facts.memory):
            yield _point("engine_memory", start_ns, {**tags, "engine": name}, sizes)
    workers = _live_workers(run)

    def windows(measurement: str, rows: Iterable[tuple[int, str, str, dict[str, Any]]]) -> Iterator[bytes]:
        for t_ns, engine, worker, fields in rows:
            tags = context.load_tags(engine, worker=worker, host=workers.get(worker))
            yield _point(measurement, t_ns, tags, fields)

    if data.engines:
        yield from windows("llm_window", window_rows(data.engines, workers).rows(_course(data)))
        yield from windows("llm_window_aligned", aligned_rows(data.engines, start_ns, workers))


def _sizes(memory: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of `engine_memory` that are known in bytes, as fields."""
    known = {name: memory.get(name, {}).get("bytes") for name in NUMBERS}
    return {f"{name}_bytes": float(value) for name, value in known.items() if value is not None}


def _point(measurement: str, time_ns: int, tags: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    row = {
        "measurement": measurement,
        "time_ns": time_ns,
        "tags": {k: v for k, v in tags.items() if v},
        "fields": {k: v for k, v in fields.items() if v is not None},
    }
    return orjson.dumps(row) + b"\n"


def start_of(data: RunData) -> int:
    """When the run began, as its manifest says; else its first event, else its first turn; else 0."""
    first = next((e.get("t_ns") for e in data.events if e.get("kind") == RUN_START), None)
    turns = [t.start_ns for e in data.engines.values() for t in e.turns if t.start_ns]
    manifest = data.manifest.start_ns if data.manifest else 0
    return manifest or (first if isinstance(first, int) else 0) or min(turns, default=0)


def _course(data: RunData) -> range:
    """The whole seconds from the run's start to its end, or to the last that is known of it.

    The length is the monotonic clock's, so a clock that is set doesn't make a run of years.
    """
    events = [e for e in data.events if isinstance(e.get("t_ns"), int)]
    start = next((e for e in events if e.get("kind") == RUN_START), None)
    if start is None:
        return range(0)
    last = next((e for e in events if e.get("kind") == RUN_END), events[-1])
    length_ns = last["t_ns"] - start["t_ns"]
    if isinstance(start.get("mono_ns"), int) and isinstance(last.get("mono_ns"), int):
        length_ns = last["mono_ns"] - start["mono_ns"]
    if not 0 <= length_ns <= LONGEST_S * SECOND_NS:
        return range(0)
    begin = start["t_ns"] // SECOND_NS * SECOND_NS
    return range(begin, start["t_ns"] + length_ns + 1, SECOND_NS)


def _live_workers(run: RunDir) -> dict[str, str | None]:
    """Workers that kept live windows, and the host that each names: their provisional points are replaced
    though they sent nothing, so the tags must be the same."""
    workers: dict[str, str | None] = {}
    for path in sorted(run.path.glob("windows*.jsonl")):
        for row in read_rows(path, Damage()):
            workers[str(row.get("worker") or "local")] = row.get("host")
    return workers


def main() -> None:
    """`python -m loadgen.sinks.derive RUN_DIRECTORY`"""
    try:
        print(write_derived(RunDir.open(Path(sys.argv[1]))))
    except StoreError as e:
        sys.exit(f"loadgen: {e}")


if __name__ == "__main__":
    main()
