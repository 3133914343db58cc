"""`loadgen check` and `loadgen runs` after a run."""

from __future__ import annotations

import hashlib
import json

from tests.e2e.conftest import SHORT
from tests.support.locust_run import run_loadgen


def test_a_run_is_listed_and_checked(runs, both):
    here = ("--runs-dir", str(runs))
    run = run_loadgen(runs, "run", "single_user", *both, *SHORT, *here, "--blocks", "6", "--duration", "5m")
    assert run.code == 0, run.err

    listed = run_loadgen(runs, "runs", "--json", *here)
    assert listed.code == 0, listed.err
    (row,) = json.loads(listed.out)
    assert (row["scenario"], row["state"]) == ("single_user", "complete")
    summary = json.loads((runs / "latest" / "summary.json").read_text())["single_user"]
    for name, figures in row["engines"].items():
        assert figures["ttft_ms_p50"] == summary[name]["ttft_ms"]["p50"]
        assert (figures["requests"], figures["failed"], figures["simulated"]) == (48, 0, True)

    def check(*objectives: str) -> tuple[int, str]:
        done = run_loadgen(runs, "check", *(a for o in objectives for a in ("--slo", o)), *here)
        return done.code, done.out

    code, out = check("ttft_p50<60s", "failures<=0", "goodput>50%,ttft<60s", "throughput>0.1")
    assert code == 0, out
    code, out = check("ttft_p50<1us")
    assert code == 1, out
    code, out = check("ttft_p99<60s")
    assert code == 2, out
    assert "too few samples for a bound on that side; about 381 requests might decide" in " ".join(
        out.split()
    )
    assert check("ttft_p99")[0] == 3


def test_a_run_that_a_time_limit_cut(runs, both):
    """It is judged by its complete turns, and says so; its manifest knows the prompt file by its bytes."""
    prompts = runs.parent / "prompts.jsonl"
    prompts.write_text('{"prompt": "the sea"}\n{"prompt": "the wind"}\n')
    here = ("--runs-dir", str(runs))
    flags = (*SHORT, *here, "--blocks", "400", "--prompt-file", str(prompts))
    run = run_loadgen(runs, "run", "single_user", *both, *flags, "--duration", "4s")
    assert run.code == 0, run.err
    manifest = json.loads((runs / "latest" / "manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert manifest["prompts"]["file_sha256"] == hashlib.sha256(prompts.read_bytes()).hexdigest()

    done = run_loadgen(runs, "check", "--slo", "ttft_p50<60s", "--slo", "failures<=0", *here)
    assert done.code == 0, done.out
    assert "the run was cut short, or still goes on: judged by " in " ".join(done.out.split())
    done = run_loadgen(runs, "report", "--slo", "ttft_p50<60s", "-o", str(runs / "page.html"), *here)
    assert done.code == 0, done.err
    assert "ttft_p50&lt;60s" in (runs / "page.html").read_text(encoding="utf-8")
