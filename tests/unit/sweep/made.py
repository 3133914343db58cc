"""Figures of a step, and sweeps, made by hand."""

from __future__ import annotations

from typing import Any

from loadgen.sweep.plan import Plan
from loadgen.sweep.record import StepRecord, Sweep


def figures(rate: float | None = 100.0, ttft_ms: float = 50.0, **values: Any) -> dict[str, Any]:
    """Those of an engine that gave `rate` tokens/s, valid unless `values` say otherwise."""
    times = {"n": 64, "p50": ttft_ms / 2, "p95": ttft_ms, "p99": ttft_ms}
    return {
        "throughput_tokens_per_s": rate,
        "requests_per_s": None if rate is None else rate / 10,
        "concurrency": 1.0,
        "turns_tokens_per_s": [rate, rate],
        "ttft_ms": times,
        "tpot_ms": times,
        "e2e_ms": times,
        "requests": 64,
        "failed": 0,
        "failed_by_kind": {},
        "validity": "valid",
        "findings": [],
        "server": "vLLM 0.32.0 m",
        **values,
    }


def sweep(
    curve: dict[int, dict[str, Any]], *, name: str = "a", plan: Plan | None = None, **values: Any
) -> Sweep:
    """One engine, with these figures by load."""
    steps = [StepRecord(load, f"run_{load}", {name: one}, seconds=10.0) for load, one in curve.items()]
    flags = {name: f"{name}=vllm:http://127.0.0.1:8000"}
    plan = plan or Plan(tuple(sorted(curve)))
    return Sweep("s", "concurrency", plan, engines=flags, steps=steps, **values)


VOID = [{"check": "generator", "level": "void", "evidence": "the generator was busy", "advice": "wait"}]
