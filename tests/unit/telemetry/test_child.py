"""The telemetry process as a run uses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.telemetry_child import ROOT, TelemetryChild
from tests.support.waiting import wait_for


def test_a_conversation(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, gpus=2, start_s=6) as child:
        assert child.ready["ready"] is True
        assert child.ready["notes"] == []
        assert [(g["gpu"], g["name"]) for g in child.ready["gpus"]] == [
            (0, "NVIDIA H200"),
            (1, "NVIDIA H200"),
        ]
        assert child.ready["gpus"][0]["unsupported"] == ["fan_percent"]
        wait_for(lambda: len(child.rows("sample")) >= 6)
        latest = child.ask({"cmd": "gpu"})["gpus"]
        assert [g["gpu"] for g in latest] == [0, 1]
        assert {"power_w", "energy_j", "pcie_tx_bytes_per_s"} <= set(latest[0])
        assert child.ask({"cmd": "scrape", "engine": "e"})["text"] is None
        assert "error" in child.ask({"cmd": "dance"})
        assert child.stop() == 0
        assert child.stderr == ""
        rows = child.rows()
    assert [r["kind"] for r in rows[:2]] == ["facts", "facts"]
    assert {r["host"] for r in rows} == {"gpuhost"}
    for gpu in (0, 1):
        times = [r["t_ns"] for r in rows if r["kind"] == "sample" and r["gpu"] == gpu]
        assert times == sorted(set(times))
        energy = [r["energy_j"] for r in rows if r["kind"] == "sample" and r["gpu"] == gpu]
        assert energy == sorted(energy)
    slow = [r for r in rows if "pcie_tx_bytes_per_s" in r and r["gpu"] == 0]
    assert slow[0]["t_ns"] == min(r["t_ns"] for r in rows if r["kind"] == "sample" and r["gpu"] == 0)


def test_only_the_gpus_asked_for(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, {"gpus": [2, 9]}, gpus=4) as child:
        assert [g["gpu"] for g in child.ready["gpus"]] == [2]
        assert child.ready["notes"] == ["there is no GPU 9 here, GPUs 0 to 3"]
        assert child.stop() == 0
        assert [r["text"] for r in child.rows("note")] == child.ready["notes"]


def test_without_a_gpu_a_run_goes_on_and_no_file_is_made(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, errors="nvmlInit=12") as child:
        assert child.ready["gpus"] == []
        assert "no NVIDIA driver" in child.ready["notes"][0]
        assert child.ask({"cmd": "gpu"}) == {"gpus": []}
        assert child.stop() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gpus", [(), (5,)])
def test_gpu_on_refuses_a_machine_without(tmp_path: Path, gpus: tuple[int, ...]) -> None:
    knobs = {} if gpus else {"errors": "nvmlInit=9"}
    with TelemetryChild(tmp_path, {"gpu": "on", "gpus": list(gpus)}, **knobs) as child:
        expected = "there is no GPU 5 here" if gpus else "not loaded"
        assert expected in child.ready["error"]
        assert child.process.wait(30) == 1


def test_off_is_off(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, {"gpu": "off"}) as child:
        assert child.ready == {"ready": True, "gpus": [], "notes": []}
        assert child.stop() == 0


def test_the_end_of_stdin_ends_it_and_ctrl_c_does_not(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path) as child:
        child.process.send_signal(signal.SIGINT)
        assert child.ask({"cmd": "gpu"})["gpus"] is not None
        assert child.process.stdin
        child.process.stdin.close()
        assert child.process.wait(30) == 0


def test_sigterm_ends_it_well(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path) as child:
        wait_for(lambda: child.rows("sample"))
        child.process.terminate()
        assert child.process.wait(30) == 0


def test_a_stuck_driver_holds_up_neither_the_other_gpu_nor_the_end(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, gpus=2, hang="nvmlDeviceGetPowerUsage@1#0.5") as child:
        note = wait_for(lambda: child.rows("note"))[0]["text"]
        assert note == "gpu-1: the driver has not answered for 5 s"
        before = len([r for r in child.rows("sample") if r["gpu"] == 0])
        wait_for(lambda: len([r for r in child.rows("sample") if r["gpu"] == 0]) > before + 3)
        assert child.stop() == 0


def test_a_lost_gpu_is_said_once(tmp_path: Path) -> None:
    with TelemetryChild(tmp_path, gpus=2, errors="nvmlDeviceGetPowerUsage=15@0#0.5") as child:
        note = wait_for(lambda: child.rows("note"))[0]
        assert note["gpu"] == 0
        assert "fallen off the bus" in note["text"]
        assert [g["gpu"] for g in child.ask({"cmd": "gpu"})["gpus"]] == [1]
        assert child.stop() == 0
        assert len(child.rows("note")) == 1


def test_nonsense_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadgen.telemetry.child", str(tmp_path)],
        input=b"hello\n",
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 1
    assert b'"error":"the telemetry process was not told what to do' in done.stdout
    assert done.stderr == b""


def test_it_needs_neither_gevent_nor_locust_nor_numpy() -> None:
    code = (
        "import sys, loadgen.telemetry.child, loadgen.telemetry.engine_metrics\n"
        "print([m for m in ('locust', 'gevent', 'numpy', 'scipy', 'pynvml') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout == "[]\n", done.stderr
