"""A run directory as a busy run fills it, and the shipper beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import orjson

from loadgen.store import Manifest, RunDir
from tests.support.influxdb import Bucket

ROOT = Path(__file__).resolve().parents[2]
T0 = 1_796_056_862_000_000_000
ENGINES = ("vllm", "llamacpp")


def new_run(runs_dir: Path, scenario: str = "concurrency") -> RunDir:
    run = RunDir.create(runs_dir, scenario)
    engines = [{"name": name, "model": "m"} for name in ENGINES]
    manifest = Manifest(run=run.name, scenario=scenario, start_ns=T0, engines=engines, host={"name": "h"})
    manifest.write(run.manifest_path)
    return run


def request(n: int, worker: str = "local", events: int = 8, **more: Any) -> bytes:
    """The n-th request of a worker: n is its sequence, and its time T0 + n us."""
    row = {
        "scenario": "concurrency", "engine": ENGINES[n % 2], "model": "m", "worker": worker, "user": n % 16,
        "sequence": n, "turn": n % 2, "block": 0, "phase": "measure", "pair": n // 2, "outcome": "ok",
        "status": 200, "point_ns": T0 + n * 1000, "sent_ns": T0 + n * 1000 - 10**9, "headers_ms": 1.25,
        "first_event_ms": 190.5, "ttft_ms": 190.5 + n % 7, "ttfa_ms": 190.5 + n % 7, "e2e_ms": 990.123456,
        "complete_ms": 991.5, "tpot_ms": 3.136362, "read_lag_ms": 0.052, "send_lag_ms": 0.1,
        "connection_reused": True, "prompt_tokens": 50, "output_tokens": events,
        "asked_output_tokens": events, "first_event_tokens": 1, "token_source": "usage",
        "response_bytes": 8127, "events": events + 1,
        "coalesced_events": 0, "response_id": f"chatcmpl-{n:016x}", "finish_reason": "length",
        "event_us": [190_500 + i * 10_000 + (i * 7919 + n) % 977 for i in range(events)], **more,
    }  # fmt: skip
    return orjson.dumps(row)


def window(n: int, **more: Any) -> bytes:
    row = {"t_ns": T0 + n * 10**6, "engine": ENGINES[n % 2], "worker": "local", "phase": "idle", "tokens": n,
           "in_flight": 16, "users": 16, "completions": 1, "failures": 0, "measured_s": 0.0,
           "loop_lag_ms": 0.25, "cpu_percent": 31.5}  # fmt: skip
    return orjson.dumps({**row, **more})


def gpu_facts() -> bytes:
    return orjson.dumps(
        {"kind": "facts", "host": "h", "gpu": 0, "name": "NVIDIA H200", "power_limit_w": 700.0}
    )


def gpu(n: int, **more: Any) -> bytes:
    row = {"kind": "sample", "t_ns": T0 + n * 1000, "host": "h", "gpu": 0, "source": "nvml", "power_w": 100.0,
           "energy_j": float(n), "sm_clock_mhz": 1470, "throttle_mask": 4,
           "throttle_reasons": ["sw_power_cap"]}  # fmt: skip
    return orjson.dumps({**row, **more})


def engine(n: int, **more: Any) -> bytes:
    row = {"t_ns": T0 + n * 1000, "engine": ENGINES[n % 2], "running": n, "waiting": 0, "kv_used_share": 0.5}
    return orjson.dumps({**row, **more})


def note(n: int, **more: Any) -> bytes:
    return orjson.dumps(
        {"t_ns": T0 + n * 1000, "mono_ns": n * 1000, "kind": "note", "text": f"note {n}", **more}
    )


class Shipper:
    """The real process. `status` is the last that it said."""

    def __init__(self, run: RunDir, bucket: Bucket, env: dict[str, str] | None = None) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("INFLUXDB_", "LOADGEN_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loadgen.sinks.shipper", str(run.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**clean, "PYTHONPATH": str(ROOT), "INFLUXDB_TOKEN": bucket.token, **(env or {})},
            text=True,
        )
        self.heard: list[dict[str, Any]] = []
        self.err = ""
        self._ears = [
            threading.Thread(target=self._hear, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._hear_errors, args=(self.process.stderr,), daemon=True),
        ]
        for ear in self._ears:
            ear.start()
        spec = {"url": bucket.url, "org": bucket.org, "bucket": bucket.name}
        self._say(json.dumps({"influxdb": spec}) + "\n")

    @property
    def status(self) -> dict[str, Any]:
        return self.heard[-1] if self.heard else {}

    def kill9(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, timeout_s: float = 90) -> int:
        """Tell it that the run is over, and wait for its exit code."""
        self._say("end\n")
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 90) -> int:
        try:
            return self.process.wait(timeout_s)
        finally:
            if self.process.poll() is None:
                self.kill9()
            for ear in self._ears:
                ear.join(10)

    def _say(self, text: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has stopped already; its status says why

    def _hear(self, out: IO[str]) -> None:
        for line in out:
            self.heard.append(json.loads(line))

    def _hear_errors(self, err: IO[str]) -> None:
        self.err = err.read()


def wait_until(what: Callable[[], Any], timeout_s: float = 60) -> Any:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"did not come true in {timeout_s:g} s: {what}")
