"""`loadgen telemetry`, as a process, with NVML replayed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from loadgen.store import RunDir
from tests.support.telemetry_child import TelemetryChild, environment
from tests.support.waiting import wait_for

TOKEN = "a-token-for-tests"


def command(*args: str, env: dict[str, str] | None = None, **knobs: object) -> list[Any]:
    return [
        [sys.executable, "-m", "loadgen.cli", "telemetry", *args],
        {**environment(**knobs), "INFLUXDB_URL": "", "LOADGEN_TELEMETRY_TOKEN": "", **(env or {})},
    ]


def run(cwd: Path, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    line, env = command(*args, **more)
    return subprocess.run(line, env=env, cwd=cwd, capture_output=True, text=True, timeout=90)


def recorded(cwd: Path) -> RunDir:
    (path,) = (cwd / "runs").glob("*_telemetry")
    return RunDir.open(path)


def rows(run: RunDir, kind: str) -> list[dict[str, Any]]:
    lines = (run.path / "gpu.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == kind]


def test_a_recording(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/latest").symlink_to("an-earlier-run")
    done = run(tmp_path, "--gpus", "1", "--interval", "0.1", "--duration", "0.5", gpus=2, start_s=9)
    assert (done.returncode, done.stderr) == (0, "")
    made = recorded(tmp_path)
    manifest = made.manifest()
    assert (manifest.scenario, manifest.state) == ("telemetry", "complete")
    assert [g["name"] for g in manifest.extra["gpus"]] == ["NVIDIA H200"]
    samples = rows(made, "sample")
    assert len(samples) >= 3
    assert {s["gpu"] for s in samples} == {1}
    assert {s["host"] for s in samples} == {manifest.host["name"]}
    assert "sw power cap in 100.0 % of them" in done.stdout
    assert os.readlink(tmp_path / "runs/latest") == "an-earlier-run"  # it is no run to summarise


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_told_to(tmp_path: Path, sign: signal.Signals) -> None:
    line, env = command("--interval", "0.1")
    with subprocess.Popen(
        line, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for(lambda: list(tmp_path.glob("runs/*_telemetry/gpu.jsonl")))
        wait_for(lambda: rows(recorded(tmp_path), "sample"))
        process.send_signal(sign)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"samples: runs/" in out
    assert recorded(tmp_path).manifest().state == "complete"


def test_no_gpu_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, errors="nvmlInit=12")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("loadgen telemetry: no GPU is sampled here: there is no NVIDIA driver here")
    assert list(tmp_path.glob("runs/*")) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--gpus", "a"], "--gpus 'a' is not a list of numbers"),
        (["--interval", "0"], "interval_s"),
        (["--duration", "0"], "--duration"),
        (["--listen"], "set the environment variable LOADGEN_TELEMETRY_TOKEN"),
        (["--agents", "http://h:1"], "set the environment variable LOADGEN_TELEMETRY_TOKEN"),
        (["--listen", "9467"], "is not HOST:PORT"),
        (["--dcgm", "http://node6:9400,node7"], "'node7' is not an address"),
    ],
)
def test_slips_are_one_sentence(tmp_path: Path, args: list[str], said: str) -> None:
    done = run(tmp_path, *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_agent_and_a_run_elsewhere(tmp_path: Path) -> None:
    """The agent serves; the telemetry process of a run collects; the token is in no output and no file."""
    line, env = command(
        "--listen", "127.0.0.1:0", "--interval", "0.1", env={"LOADGEN_TELEMETRY_TOKEN": TOKEN}, start_s=9
    )
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with subprocess.Popen(
        line, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as agent:
        assert agent.stdout
        said = [agent.stdout.readline().decode() for _ in range(2)]
        url = said[1].split()[-1].removesuffix("/v1/rows")
        assert requests.get(f"{url}/v1/rows", timeout=10).status_code == 401
        spec = {"gpu": "off", "agents": [url]}
        with TelemetryChild(run_dir, spec, env={"LOADGEN_TELEMETRY_TOKEN": TOKEN}) as child:
            assert [g["name"] for g in child.ready["gpus"]] == ["NVIDIA H200"]
            wait_for(lambda: len(child.rows("sample")) >= 5)
            assert child.ask({"cmd": "gpu"})["gpus"][0]["throttle_reasons"] == ["sw_power_cap"]
            assert child.stop() == 0
            collected = child.rows()
        agent.terminate()
        out, err = agent.communicate(timeout=60)
    assert (agent.returncode, err) == (0, b"")
    times = [r["t_ns"] for r in collected if r["kind"] == "sample"]
    assert times == sorted(set(times))
    assert list(tmp_path.iterdir()) == [run_dir]  # an agent keeps no directory
    written = (run_dir / "gpu.jsonl").read_text()
    assert TOKEN not in "".join([*said, out.decode(), written, json.dumps(child.ready)])


def test_it_needs_neither_locust_nor_gevent(tmp_path: Path) -> None:
    """A GPU host has neither installed, perhaps."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfor name in ('locust', 'gevent', 'httptools', 'scipy', 'numpy', 'influxdb_client'):\n"
        "    sys.modules[name] = None\n"
    )
    env = environment(start_s=9)
    path = f"{tmp_path}{os.pathsep}{env['PYTHONPATH']}"
    done = run(tmp_path, "--interval", "0.1", "--duration", "0.3", env={"PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (0, "")
