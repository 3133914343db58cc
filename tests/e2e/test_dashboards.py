"""A real run in a real database, on the dashboards: nothing is empty, the numbers are the summary's.

Both engines are simulated (one refuses some requests), NVML is a recording, a dcgm-exporter's page is made
up; all else is the product, in its own processes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from grafana.build import FOLDER
from loadgen.report.summary import compute
from loadgen.sim.launch import SimProcess
from loadgen.store import resolve
from tests.e2e.conftest import engine_flags
from tests.support.grafana import Dashboard
from tests.support.influxdb import Bucket, InfluxServer
from tests.support.locust_run import LocustRun
from tests.support.telemetry_child import environment
from tests.unit.telemetry.serving import serve

FLAGS = (
    *("-u", "4", "--turn-requests", "12", "--blocks", "6", "--output-tokens", "24"),
    *("--warmup-requests", "1", "--cooldown", "0"),
)
LOG = Path(__file__).parent.parent / "fixtures" / "enginelog" / "vllm_h200.log"
GIB = 2**30
# What neither the simulated engines nor an H200 gives; tests/unit/grafana asks for it with made-up points.
NOT_GIVEN = {"Fan"}
DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": 97,
    "DCGM_FI_DEV_XID_ERRORS": 0,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.6,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.2,
    "DCGM_FI_PROF_SM_ACTIVE": 0.9,
    "DCGM_FI_PROF_NVLINK_TX_BYTES": 1e6,
    "DCGM_FI_PROF_NVLINK_RX_BYTES": 1e6,
}


class Delivered(NamedTuple):
    bucket: Bucket
    run: str
    summary: dict[str, Any]
    run_start_ms: float
    start_ms: int
    end_ms: int

    def open(self, name: str, **chosen: str) -> Dashboard:
        path = FOLDER / f"{name}.json"
        return Dashboard.open(path, self.bucket, self.start_ms, self.end_ms, **chosen)


@pytest.fixture(scope="module")
def delivered(influxdb: InfluxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    home = tmp_path_factory.mktemp("dashboards")
    influxdb.create("a_real_run")
    bucket = Bucket(influxdb, "a_real_run")
    page = "".join(
        f'{name}{{gpu="0",UUID="GPU-0",modelName="Tesla V100",Hostname="node"}} {value}\n'
        for name, value in DCGM.items()
    )
    start_ms = int(time.time() * 1000) - 1000
    with (
        SimProcess("vllm", speed=20) as vllm,
        SimProcess("llamacpp", speed=20, fault=["503@0.1"], seed=1) as llamacpp,
        serve(lambda path, headers: (200, page)) as exporter,
    ):
        (home / "loadgen.toml").write_text(
            f'[telemetry]\ninterval_s = 0.2\ndcgm = ["{exporter.url}/metrics"]\n'
            f'[engines.vllm]\nkind = "vllm"\nurl = "{vllm.url}"\nlog = "{LOG}"\n'
        )
        env = {**environment(gpus=2, start_s=7, pids=f"{vllm.pid},{llamacpp.pid}"), **bucket.env}
        command = [
            sys.executable,
            "-m",
            "loadgen.cli",
            "run",
            "concurrency",
            *engine_flags(vllm=vllm, llamacpp=llamacpp),
            *FLAGS,
        ]
        run = LocustRun([*command, "--runs-dir", str(home / "runs")], home / "runs", env).wait()
    assert run.code in (0, 1), run.err
    end_ms = int(time.time() * 1000) + 1000
    target = resolve("latest", home / "runs")
    summary = compute(target)["concurrency"]
    run_start_ms = target.manifest().start_ns / 1e6
    yield Delivered(bucket, target.name, summary, run_start_ms, start_ms, end_ms)
    influxdb.drop("a_real_run")


@pytest.mark.parametrize("name", ["comparison", "live", "gpu", "trend"])
def test_nothing_is_empty(delivered, name):
    board = delivered.open(name, **({"simulated": "1", "worst": "2"} if name == "trend" else {}))
    assert all(board.found.values()), board.found
    answers = list(board.answers())
    assert [(a.panel, a.error) for a in answers if a.error] == []
    assert {a.panel for a in answers if not a.values} <= NOT_GIVEN
    turns = next(board.annotations(), None)
    assert turns is None or turns.values


def test_the_numbers_are_those_of_the_summary(delivered):
    board = delivered.open("comparison")
    assert board.chosen["run"] == [delivered.run]
    for engine, figures in delivered.summary.items():
        for panel, metric in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("End to end", "e2e_ms")):
            row = next(r for r in board.answer(panel).rows if r["engine"] == engine)
            for p in ("p50", "p95", "p99"):
                assert row[p] == pytest.approx(figures[metric][p], rel=1e-9), (panel, p)
        (throughput,) = [r for r in board.answer("Throughput").rows if r["engine"] == engine]
        window = figures["window"]["throughput_tokens_per_s"]
        assert throughput["tokens/s"] == pytest.approx(window, rel=1e-6)
        failed = sum(
            r["requests"]
            for r in board.answer("Failures by kind").rows
            if r["engine"] == engine and r["phase"] == "measure"
        )
        assert failed == figures["counts"]["failed"]


def test_the_table_of_figures_is_the_summary(delivered):
    rows = delivered.open("comparison").answer("The run's own summary").rows
    for row in rows:
        figures = delivered.summary[row["engine"]]
        if row["metric"] in figures:
            assert row["value"] == pytest.approx(figures[row["metric"]]["p50"], rel=1e-9)
            assert row["n"] == figures[row["metric"]]["n"]
    assert {"ttft_ms", "tpot_ms", "throughput_tokens_per_s"} <= {r["metric"] for r in rows}
    assert {r["blocks"] for r in rows if r["metric"] == "ttft_ms"} == {6}


def test_memory_is_what_log_and_nvml_tell(delivered):
    """The log is a real vLLM's on an H200: 7.26 GiB of weights, 33.67 GiB of KV cache."""
    rows = {r["engine"]: r for r in delivered.open("gpu").answer("What the memory is for").rows}
    assert rows["vllm"]["weights"] == round(7.26 * GIB)
    assert rows["vllm"]["KV cache"] == round(33.67 * GIB)
    for engine, figures in delivered.summary.items():
        assert rows[engine]["held"] == figures["gpu"]["peak_memory_bytes"] > 0


def test_the_banner_says_what_the_checks_found(delivered):
    board = delivered.open("comparison")
    level = board.answer("May it be believed?").series[0]["values"][0][1]
    (why,) = board.answer("Why").rows
    assert why["validity"] == ("valid", "suspect", "void")[int(level)]
    assert level >= 1, "a tenth of one engine's requests failed"
    assert "failed" in why["reasons"]
    assert why["simulated"] == 1


def test_turns_laid_over_each_other_begin_at_the_start_of_the_run(delivered):
    answer = delivered.open("comparison").answer("Throughput since the turn began")
    for series in answer.series:
        first = next(t for t, v in series["values"] if v is not None)
        assert abs(first - delivered.run_start_ms) <= 1000


def test_the_link_of_a_run_shows_all_of_it(delivered):
    (run,) = delivered.open("trend").answer("Runs").rows
    linked = delivered._replace(start_ms=int(run["start"]), end_ms=int(run["end"]))
    for name in ("comparison", "gpu"):
        board = linked.open(name, run=run["run"])
        assert {a.panel for a in board.answers() if not a.values} <= NOT_GIVEN
