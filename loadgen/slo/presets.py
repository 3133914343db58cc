"""Objectives by the names that people know them by."""

from __future__ import annotations

# MLPerf Inference, server and interactive scenarios of its language models: p99 of TTFT and of TPOT. Llama 2
# 70B came with v4.0, its interactive limits with v5.0, Llama 3.1 8B with v5.1 (mlcommons.org); limits change
# between versions, so whoever submits must look them up.
PRESETS: dict[str, tuple[str, ...]] = {
    "interactive": ("ttft_p95<500ms",),
    "llama2-70b-server": ("ttft_p99<=2000ms", "tpot_p99<=200ms"),
    "llama2-70b-interactive": ("ttft_p99<=450ms", "tpot_p99<=40ms"),
    "llama3.1-8b-server": ("ttft_p99<=2000ms", "tpot_p99<=100ms"),
    "llama3.1-8b-interactive": ("ttft_p99<=500ms", "tpot_p99<=30ms"),
}
MEANINGS = {
    "interactive": "answers begin while a person still waits: 500 ms",
    "llama2-70b-server": "MLPerf Inference, Llama 2 70B, server",
    "llama2-70b-interactive": "MLPerf Inference, Llama 2 70B, interactive",
    "llama3.1-8b-server": "MLPerf Inference, Llama 3.1 8B, server",
    "llama3.1-8b-interactive": "MLPerf Inference, Llama 3.1 8B, interactive",
}
