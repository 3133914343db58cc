"""agreement.py SUITE LOGS PART: what the servers say of the same requests, beside what the client saw.

SUITE is the directory of `experiment.sh PART`, LOGS holds metrics-PORT-PART-{before,after}.txt and
llamacpp.log. vLLM: the histograms of its /metrics. llama.cpp: `eval time` in its log, of answers as long as
the suite's. Both over all requests, warm-up included. GPU: energy counter against the integral of power.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import fmean

import numpy as np

HISTOGRAMS = {
    "TTFT": ("vllm:time_to_first_token_seconds", "ttft_ms"),
    "TPOT": ("vllm:request_time_per_output_token_seconds", "tpot_ms"),
    "end to end": ("vllm:e2e_request_latency_seconds", "e2e_ms"),
}
TIMED = re.compile(r"\| +(prompt eval|eval) time = +([0-9.]+) ms / +([0-9]+) (?:tokens|runs)")


def histogram(text: str, name: str) -> tuple[float, float]:
    """Sum in seconds and count of a histogram, all its series together."""
    total, count = (
        sum(map(float, re.findall(rf"^{name}_{part}\{{.*\}} (\S+)$", text, re.M)))
        for part in ("sum", "count")
    )
    return total, count


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def main(suite: Path, logs: Path, part: str) -> None:
    runs = sorted(p.parent for p in suite.glob("*/requests.jsonl"))
    records = {run: rows(run / "requests.jsonl") for run in runs}
    requests = [r for rs in records.values() for r in rs]
    before, after = ((logs / f"metrics-8000-{part}-{when}.txt").read_text() for when in ("before", "after"))
    ours = [r for r in requests if r["engine"] == "vllm"]
    print(f"vLLM, means in ms of {len(ours)} requests | server | client")
    for title, (name, field) in HISTOGRAMS.items():
        (s0, n0), (s1, n1) = histogram(before, name), histogram(after, name)
        client = fmean(r[field] for r in ours)
        print(f"{title} (n = {n1 - n0:.0f}) | {1000 * (s1 - s0) / (n1 - n0):.2f} | {client:.2f}")

    # Requests that count prompt tokens are in the log too; those of the suite have its answers' length.
    timed = TIMED.findall((logs / "llamacpp.log").read_text())
    theirs = [r for r in requests if r["engine"] == "llamacpp"]
    lengths = {r["output_tokens"] for r in theirs}
    decode = [float(ms) / (int(n) - 1) for kind, ms, n in timed if kind == "eval" and int(n) in lengths]
    client = fmean(r["tpot_ms"] for r in theirs[: len(decode)])
    said = f"llama.cpp, TPOT in ms, {len(theirs)} requests ({len(decode)} in its log)"
    print(f"{said} | {fmean(decode):.2f} | {client:.2f}")

    for run in runs:
        samples = [r for r in rows(run / "gpu.jsonl") if r["kind"] == "sample"]
        t = np.array([r["t_ns"] for r in samples]) / 1e9
        power = np.array([r["power_w"] for r in samples])
        integral = float(np.sum((power[1:] + power[:-1]) / 2 * np.diff(t)))
        counter = samples[-1]["energy_j"] - samples[0]["energy_j"]
        said = f"energy counter {counter:.0f} J, power integrated {integral:.0f} J"
        print(f"{run.name}: {said}, {integral / counter - 1:+.2%}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
