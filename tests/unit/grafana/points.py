"""Made-up points for every measurement and field that a dashboard may ask for, as line protocol.

Two runs of 40 s, a day apart, each of two engines that take turns of 10 s in the order A B B A. The figures
are chosen so that a reader can say what a query must answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadgen.sinks.lineprotocol import line
from loadgen.sinks.schema import THROTTLE_REASONS

DAY_S = 86_400
START_S = 1_796_050_000
RUNS = {"2026-11-29T10-00-00_concurrency": START_S - DAY_S, "2026-11-30T10-00-00_concurrency": START_S}
FIRST, LAST = RUNS
START_MS, END_MS = START_S * 1000, (START_S + 60) * 1000
ENGINES = ("vllm", "llamacpp")
TURNS = ((0, "vllm"), (10, "llamacpp"), (20, "llamacpp"), (30, "vllm"))
LENGTH_S, TURN_S = 40, 10
TOKENS_PER_S = {"vllm": 380.0, "llamacpp": 210.0}
TTFT_MS = {"vllm": 180.0, "llamacpp": 95.0}
GIB = 2.0**30
COUNTERS = ("preemptions", "cache_queries", "cache_hits", "draft_tokens", "accepted_tokens")


def lines() -> Iterator[str | None]:
    for run, start_s in RUNS.items():
        common = {"run": run, "scenario": "concurrency"}
        yield from _requests(common, start_s)
        yield from _windows(common, start_s)
        yield from _machine(run, start_s)
        yield from _events(common, start_s)
        yield from _summary(common, start_s)


def _requests(common: dict[str, str], start_s: int) -> Iterator[str | None]:
    """Four measured requests a turn (TTFT in steps of 1 ms from the engine's own), a warm-up, a failure."""
    for turn, (offset, engine) in enumerate(TURNS):
        tags = {**common, "engine": engine, "model": "m", "host": "h", "worker": "local"}
        for k in range(6):
            sent_ns = (start_s + offset) * 10**9 + k * 10**6
            phase, outcome = ("warmup" if k == 4 else "measure"), ("failed" if k == 5 else "ok")
            fields: dict[str, Any] = {"sent_ns": sent_ns, "turn": float(turn), "complete_ms": 9_000.0 + k}
            if outcome == "ok":
                fields |= {
                    "failed": 0.0,
                    "ttft_ms": TTFT_MS[engine] + (k if k < 4 else 500),
                    "tpot_ms": 20.0 + k,
                    "e2e_ms": 5_000.0 + k,
                    "decode_tokens_per_s": 50.0,
                }
            else:
                fields |= {"failed": 1.0, "status": 503.0, "error_text": 'no slot: "busy"'}
            error = {"error": "http_503"} if outcome == "failed" else {}
            at = sent_ns + 9_000 * 10**6
            yield line("llm_request", {**tags, "phase": phase, "outcome": outcome, **error}, fields, at)


def _windows(common: dict[str, str], start_s: int) -> Iterator[str | None]:
    """The last second of a turn is half measured, with half the tokens; idle engines have rows of zeros."""
    for second in range(LENGTH_S):
        offset, whose = TURNS[second // TURN_S]
        for engine in ENGINES:
            mine = engine == whose
            part = (0.5 if second - offset == TURN_S - 1 else 1.0) if mine else 0.0
            tags = {**common, "engine": engine, "model": "m", "host": "h", "worker": "local"}
            fields: dict[str, Any] = {
                "tokens": TOKENS_PER_S[engine] * part,
                "tokens_per_s": TOKENS_PER_S[engine] * part,
                "measured_s": part,
                "in_flight": 16.0 * part,
                "completions": 1.0 if mine else 0.0,
                "failures": 0.0,
                "users": 16.0,
                "read_lag_ms": 0.5 if mine else None,
                "loop_lag_ms": 1.0,
                "cpu_percent": 30.0,
                "phase": "measure" if mine else "idle",
                "provisional": 0.0,
                "turn": float(second // TURN_S) if mine else None,
                "ttft_ms": TTFT_MS[engine] if mine else None,
            }
            yield line("llm_window", tags, fields, (start_s + second) * 10**9)
            if mine:
                moved = (start_s + second - offset) * 10**9 + second // TURN_S
                yield line("llm_window_aligned", tags, {**fields, "turn_s": float(second - offset)}, moved)


def _machine(run: str, start_s: int) -> Iterator[str | None]:
    """Two GPUs (the second is throttled by heat for one second) and both engines' counters."""
    for second in range(LENGTH_S):
        at = (start_s + second) * 10**9
        for gpu in ("0", "1"):
            hot = gpu == "1" and second == 20
            tags = {"run": run, "host": "gpu host", "gpu": gpu, "gpu_name": "Tesla V100", "source": "nvml"}
            flags = {f"throttle_{name}": 0.0 for name in THROTTLE_REASONS}
            flags |= {"throttle_sw_power_cap": 1.0, "throttle_hw_thermal_slowdown": float(hot)}
            fields: dict[str, Any] = {
                "utilization_percent": 97.0,
                "memory_busy_percent": 60.0,
                "memory_used_bytes": 20 * GIB,
                "memory_total_bytes": 32 * GIB,
                "temperature_c": 70.0 + hot * 15,
                "sm_clock_mhz": 1380.0,
                "memory_clock_mhz": 877.0,
                "power_w": 250.0,
                "power_limit_w": 300.0,
                "max_sm_clock_mhz": 1530.0,
                "energy_j": 250.0 * second,
                "throttle_reasons": "sw_power_cap",
                **flags,
                "dram_active": 0.7,
                "tensor_active": 0.1,
                "sm_active": 0.9,
                **dict.fromkeys(("ecc_corrected", "ecc_uncorrected", "xid", "pstate"), 0.0),
                "pcie_generation": 3.0,
                "pcie_width": 16.0,
                "fan_percent": 40.0,
                "cost_ms": 46.0,
            }
            for name in ("pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx"):
                fields[f"{name}_bytes_per_s"] = 1e6
            yield line("gpu", tags, fields, at)
            held = {"run": run, "host": "gpu host", "gpu": gpu, "engine": ENGINES[int(gpu)]}
            yield line("gpu_process", held, {"memory_bytes": 19 * GIB}, at)
        for engine in ENGINES:
            counters = {f"{name}_total": 10.0 * second for name in COUNTERS}
            gauges = {
                "running": 4.0,
                "waiting": 12.0,
                "kv_used_share": 0.5,
                "prompt_tokens_per_s": 50.0,
                "generation_tokens_per_s": 380.0,
                "scrape_ms": 3.0,
            }
            yield line("engine", {"run": run, "engine": engine}, {**gauges, **counters}, at)


def _events(common: dict[str, str], start_s: int) -> Iterator[str | None]:
    for kind, title, at in (("run_start", "run begins", 0), ("run_end", "run ends", LENGTH_S)):
        fields = {"title": title, "tags": kind, "start_ms": (start_s + at) * 1000.0}
        yield line("run_event", {**common, "kind": kind}, fields, (start_s + at) * 10**9)
    note = {"title": "note", "text": "a cable was pulled", "tags": "note", "start_ms": (start_s + 5) * 1000.0}
    yield line("run_event", {**common, "kind": "note"}, note, (start_s + 5) * 10**9)
    for turn, (offset, engine) in enumerate(TURNS):
        begin = start_s + offset
        for kind, since, until in (("warmup", begin, begin + 1), ("turn", begin + 1, begin + TURN_S)):
            fields = {
                "title": f"{engine}: turn {turn}",
                "tags": f"{kind},{engine}",
                "turn": float(turn),
                "start_ms": since * 1000.0,
                "end_ms": until * 1000.0,
            }
            tags = {**common, "engine": engine, "kind": kind}
            yield line("run_event", tags, fields, since * 10**9)


def _summary(common: dict[str, str], start_s: int) -> Iterator[str | None]:
    """The newer run is suspect."""
    for engine in ENGINES:
        sizes = {"reserved": 40, "weights": 8, "kv_capacity": 30, "kv_used": 3, "least_needed": 13}
        fields = {f"{name}_bytes": size * GIB for name, size in sizes.items()}
        yield line("engine_memory", {**common, "engine": engine}, fields, start_s * 10**9)
    level = 1.0 if start_s == START_S else 0.0
    figures = {
        "throughput_tokens_per_s": (TOKENS_PER_S, 1.0, "vllm"),
        "ttft_ms": (TTFT_MS, 0.0, "llamacpp"),
        "tpot_ms": ({"vllm": 21.0, "llamacpp": 21.0}, 0.0, "no difference"),
        "decode_tokens_per_s": ({"vllm": 50.0, "llamacpp": 50.0}, 1.0, "no difference"),
        "e2e_ms": ({"vllm": 5001.0, "llamacpp": 5001.0}, 0.0, "no difference"),
        "failures": ({"vllm": 2.0, "llamacpp": 2.0}, 0.0, "not decidable"),
    }
    for metric, (values, higher, better) in figures.items():
        for engine, other in (ENGINES, ENGINES[::-1]):
            ratio = values[engine] / values[other]
            fields = {
                "value": values[engine],
                **dict.fromkeys(("mean", "p50", "p95", "p99"), values[engine]),
                "n": 8.0,
                "higher_is_better": higher,
                "baseline": other,
                "ratio": ratio,
                "ratio_low": ratio * 0.98,
                "ratio_high": ratio * 1.02,
                "blocks": 6.0,
                "better": better,
                "verdict": f"{better}, by so much",
                "validity": "suspect" if level else "valid",
                "validity_level": level,
                "validity_reasons": "the GPU was hot" if level else "",
                "simulated": 0.0,
            }
            yield line("run_summary", {**common, "engine": engine, "metric": metric}, fields, start_s * 10**9)
