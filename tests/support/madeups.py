"""Runs made, not run: two engines with a known ratio, turns, GPUs and failures, as a run leaves them on disk.

Requests of a turn share its luck (`SPREAD_OF_TURNS`), as real ones do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.store import EventsWriter, Manifest, RunDir, Suite

S = 10**9
START_NS = 1_796_000_000 * S
SPREAD_OF_TURNS = 0.01
SPREAD_OF_REQUESTS = 0.05
GIB = 2**30


@dataclass(frozen=True)
class Made:
    """An engine as it shall be: medians of its requests. `failing`: every so many requests end with
    `error_text`, 0 for none."""

    name: str
    ttft_ms: float
    tpot_ms: float
    simulated: bool = False
    failing: int = 0
    error_text: str = "the server said no"
    error: str = "http_500"
    model: str = "Qwen3-8B"
    server: str = "vLLM"
    facts: dict[str, Any] = field(default_factory=dict)


FAST = Made("vllm", 180.0, 23.8)
SLOW = Made("llamacpp", 95.0, 17.2, server="llama.cpp")


def made_run(
    runs_dir: Path,
    engines: Sequence[Made] = (FAST, SLOW),
    *,
    scenario: str = "concurrency",
    blocks: int = 8,
    users: int = 16,
    requests: int = 32,
    tokens: int = 64,
    gpus: int = 1,
    held_back: Iterable[str] = (),
    suite: Suite | None = None,
    state: str = "complete",
    seed: int = 1,
) -> RunDir:
    """A run directory with manifest, journal, events, and samples of `gpus`. `held_back` are throttle reasons
    that every sample under load shows."""
    run = RunDir.create(runs_dir, scenario, suite)
    rng = np.random.default_rng(seed)
    events = EventsWriter(run.events_path)
    mono = START_NS // 1000

    def tell(kind: str, at: float, **more: Any) -> None:
        events.append(kind, t_ns=START_NS + int(at * S), mono_ns=mono + int(at * S), **more)

    tell("run_start", 0.0)
    at, turn, sequence, busy = 2.0, 0, 0, []
    with open(run.journal_path, "wb") as journal:
        for block in range(blocks):
            for made in engines if block % 2 == 0 else engines[::-1]:
                luck = rng.normal(0, SPREAD_OF_TURNS)
                free = np.full(users, at)
                rows = []
                for n in range(requests):
                    user = int(free.argmin())
                    row = _request(made, rng, luck, tokens, free[user])
                    row |= {"run": run.name, "scenario": scenario, "turn": turn, "block": block, "user": user}
                    row |= {"pair": block * requests + n, "sequence": sequence}
                    if made.failing and n % made.failing == made.failing - 1:
                        _fail(row, made)
                    free[user] += row["complete_ms"] / 1e3
                    sequence += 1
                    rows.append((free[user], row))
                for end, row in sorted(rows, key=lambda r: r[0]):
                    row["point_ns"] = START_NS + int(end * S) + row["sequence"]
                    journal.write(_line(row))
                where = {"engine": made.name, "turn": turn, "block": block}
                tell("turn_start", at, users=users, **where)
                end = float(free.max())
                tell("turn_end", end, complete=True, **where)
                busy.append((at, end, made.name))
                at, turn = end + 3.0, turn + 1
    tell("run_end", at)
    events.close()
    if gpus:
        _gpu_rows(run, rng, at, busy, gpus, list(held_back))
    manifest = Manifest(
        run=run.name, scenario=scenario, state=state, start_ns=START_NS, end_ns=START_NS + int(at * S)
    )
    manifest.engines = [
        {"name": m.name, "kind": "openai", "server": m.server, "version": "1.0", "model": m.model}
        | {"simulated": m.simulated, "context": 8192, "facts": m.facts}
        for m in engines
    ]
    manifest.settings = {"scenario": scenario, "users": users, "blocks": blocks, "turn_requests": requests}
    manifest.settings |= {"prompt_tokens": 50, "output_tokens": tokens, "arrival": "burst", "salt": "on"}
    manifest.host = {"name": "load", "cpu": "a processor", "cores": 8}
    manifest.write(run.manifest_path)
    return run


def made_suite(runs_dir: Path, engines: Sequence[Made] = (FAST, SLOW), **more: Any) -> Suite:
    """The three workloads of the reference experiment."""
    suite = Suite.create(runs_dir)
    long = [Made(m.name, m.ttft_ms * (7 if m.name == FAST.name else 29), m.tpot_ms) for m in engines]
    made_run(runs_dir, engines, scenario="single_user", users=1, requests=8, suite=suite, seed=1, **more)
    made_run(runs_dir, long, scenario="long_prompt", users=1, requests=6, suite=suite, seed=2, **more)
    many = [Made(m.name, m.ttft_ms * 2, m.tpot_ms * (1.6 if m.name == FAST.name else 4.2)) for m in engines]
    made_run(runs_dir, many, suite=suite, seed=3, **more)
    return suite


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def _request(made: Made, rng: np.random.Generator, luck: float, tokens: int, at: float) -> dict[str, Any]:
    slow = float(np.exp(luck + rng.normal(0, SPREAD_OF_REQUESTS)))
    ttft = made.ttft_ms * slow
    gaps = made.tpot_ms * np.exp(luck + rng.normal(0, 0.15, tokens - 1))
    gaps[rng.random(tokens - 1) < 0.002] *= 12  # now and then it stalls
    event_us = np.round(np.concatenate(([ttft], ttft + np.cumsum(gaps))) * 1000).astype(int)
    e2e = event_us[-1] / 1000
    return {
        "engine": made.name,
        "model": made.model,
        "worker": "local",
        "phase": "measure",
        "outcome": "ok",
        "status": 200,
        "finish_reason": "length",
        "sent_ns": START_NS + int(at * S),
        "headers_ms": ttft / 3,
        "first_event_ms": ttft - 0.5,
        "ttft_ms": event_us[0] / 1000,
        "ttfa_ms": event_us[0] / 1000,
        "e2e_ms": e2e,
        "complete_ms": e2e + 0.3,
        "tpot_ms": (e2e - event_us[0] / 1000) / (tokens - 1),
        "read_lag_ms": 0.1,
        "clock": "kernel",
        "prompt_tokens": 50,
        "output_tokens": tokens,
        "asked_output_tokens": tokens,
        "cached_tokens": 0,
        "first_event_tokens": 1,
        "token_source": "usage",
        "events": tokens,
        "event_us": event_us.tolist(),
    }


def _fail(row: dict[str, Any], made: Made) -> None:
    for name in (
        "ttft_ms",
        "ttfa_ms",
        "e2e_ms",
        "tpot_ms",
        "first_event_ms",
        "output_tokens",
        "finish_reason",
    ):
        row.pop(name)
    row |= {"outcome": "failed", "error": made.error, "error_text": made.error_text, "status": 500}
    row |= {"events": 0, "event_us": [], "complete_ms": 20.0, "response_id": "<b>id</b>"}


def _gpu_rows(
    run: RunDir,
    rng: np.random.Generator,
    end: float,
    busy: list[tuple[float, float, str]],
    gpus: int,
    held: list[str],
) -> None:
    with open(run.gpu_path, "wb") as f:
        for gpu in range(gpus):
            about = {"t_ns": START_NS, "host": "gpu-host", "gpu": gpu, "source": "nvml", "uuid": f"GPU-{gpu}"}
            facts = {"name": "NVIDIA H200", "power_limit_w": 700.0, "max_sm_clock_mhz": 1980, "driver": "580"}
            f.write(_line({"kind": "facts", **about, **facts, "memory_total_bytes": 141 * GIB}))
        energy, heat = np.zeros(gpus), np.full(gpus, 35.0)
        for second in range(int(end) + 1):
            engine = next((e for a, b, e in busy if a <= second <= b), None)
            for gpu in range(gpus):
                power = (620.0 if engine else 90.0) + rng.normal(0, 8)
                energy[gpu] += power
                heat[gpu] += ((68.0 if engine else 34.0) - heat[gpu]) * 0.2
                row = {"kind": "sample", "t_ns": START_NS + second * S, "host": "gpu-host", "gpu": gpu}
                row |= {
                    "source": "nvml",
                    "power_w": power,
                    "energy_j": energy[gpu],
                    "temperature_c": round(heat[gpu]),
                }
                row |= {"sm_clock_mhz": (1700 if engine else 345) + int(rng.normal(0, 10))}
                row |= {"utilization_percent": 97 if engine else 0, "memory_used_bytes": 60 * GIB}
                row |= {"throttle_reasons": (held or ["sw_power_cap"]) if engine else ["gpu_idle"]}
                row |= {
                    "processes": [
                        {"pid": 7, "memory_bytes": 40 * GIB, "engine": e} for e in {b[2] for b in busy}
                    ]
                }
                f.write(_line(row))
