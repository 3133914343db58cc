"""The processes beside a run: conversation, death, and what a person is told."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from loadgen.config import ConfigError, Settings
from loadgen.users import delivery, telemetry
from loadgen.users.delivery import Delivery
from loadgen.users.run import Run
from loadgen.users.sidecar import Sidecar
from loadgen.users.telemetry import Telemetry
from tests.unit.users.fakes import lane

MODULE = "tests.support.echo_sidecar"


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    with gevent.Timeout(seconds):
        while not (value := condition()):
            gevent.sleep(0.01)
        return value


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(telemetry, "MODULE", MODULE)
    monkeypatch.setattr(delivery, "MODULE", MODULE)
    made = Run(made_settings(tmp_path), [lane("a")], clock="kernel")
    yield made
    made.close("complete")


def made_settings(tmp_path: Path, **more: Any) -> Settings:
    return Settings(engines=(lane("a").engine.spec,), runs_dir=tmp_path, **more)


def test_orders_are_answered_and_the_end_of_input_ends_it(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = []
    sidecar = Sidecar("side", MODULE, tmp_path, {"first": 1}, said.append)
    sidecar.tell({"hello": "world"})
    until(lambda: len(said) == 2)
    assert said[0]["first"] == {"first": 1}
    assert said[1] == {"echo": {"hello": "world"}}
    sidecar.stop()
    assert sidecar.code == 0
    assert not sidecar.log_path.exists()  # it had nothing to say on standard error


def test_one_that_dies_leaves_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHO_PLAY", "dies")
    sidecar = Sidecar("side", MODULE, tmp_path, {}, print)
    assert sidecar.wait(20)
    assert sidecar.code == 3
    assert sidecar.last_words() == "OSError: libnvidia-ml.so.1 is broken"
    assert sidecar.tell({"more": 1}) is False
    sidecar.stop()
    assert sidecar.log_path.exists()


def test_one_that_hangs_is_killed(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = []
    sidecar = Sidecar("side", MODULE, tmp_path, {}, said.append)
    sidecar.tell({"cmd": "hang"})
    until(lambda: {"hanging": True} in said)
    sidecar.stop(seconds=0.05)
    assert sidecar.code == -9


def test_no_python_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    sidecar = Sidecar("side", MODULE, tmp_path, {}, print)
    assert (sidecar.running, sidecar.tell({}), sidecar.wait(1)) == (False, False, True)
    sidecar.stop()
    assert "side cannot be started: No such file or directory" in caplog.text


def test_gpus_and_notes_go_to_the_manifest(run: Run) -> None:
    watch = Telemetry(run)
    watch.check()
    watch.begin()
    watch.stop()
    assert run.manifest.extra["gpus"] == [{"gpu": 0, "name": "NVIDIA H200"}]
    assert "ECC is off" in run.manifest.notes


def test_a_machine_without_gpus_is_no_fault_of_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHO_PLAY", "nothing here")
    watch = Telemetry(run)
    watch.begin()
    watch.stop()
    assert (run.manifest.notes, run.manifest.extra) == ([], {})


def test_a_scrape_is_asked_of_the_process(run: Run) -> None:
    watch = Telemetry(run)
    assert watch.scrape("vllm") == 'up{engine="vllm"} 1\n'
    watch.stop()
    assert watch.scrape("vllm") is None


def test_the_rise_counts_from_the_first_turn(run: Run) -> None:
    watch = Telemetry(run)
    assert watch.degrees_above_start() is None
    watch.begin()  # 40 C
    assert watch.degrees_above_start() == 12.0  # 52 C
    assert watch.degrees_above_start() == 4.0  # 44 C
    watch.stop()


def test_gpus_that_were_asked_for_and_are_missing_refuse_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO_PLAY", "no gpu")
    run.settings = made_settings(tmp_path, telemetry={"gpu": "on"})
    watch = Telemetry(run)
    with pytest.raises(ConfigError, match="this machine has no NVIDIA GPU"):
        watch.check()
    watch.stop()


def test_a_process_that_dies_is_told_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHO_PLAY", "dies")
    watch = Telemetry(run)
    watch.begin()
    assert watch.scrape("a") is None
    watch.stop()
    notes = [n for n in run.manifest.notes if "telemetry process" in n]
    assert notes == [
        "the telemetry process has ended early, so GPU samples and engine counters are missing "
        "(OSError: libnvidia-ml.so.1 is broken)"
    ]


def test_nothing_to_watch_starts_nothing(run: Run, tmp_path: Path) -> None:
    run.settings = made_settings(tmp_path, telemetry={"gpu": "off", "engine_metrics": "off"})
    watch = Telemetry(run)
    watch.begin()
    watch.stop()
    assert (watch.running, run.manifest.notes) == (False, [])


def test_delivery_says_what_happens_once_and_what_is_left_in_the_end(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "loadgen")
    monkeypatch.setenv("ECHO_PLAY", "delivers")
    run.settings = made_settings(tmp_path, influxdb={"url": "http://db:8086"})
    shipper = Delivery(run)
    shipper.end()
    shipper.finish()
    shipper.finish()
    assert caplog.text.count("http://db:8086 does not answer") == 1
    assert "the run goes on" not in caplog.text  # it was over by then
    assert "InfluxDB answers again" in caplog.text
    assert "InfluxDB has all 10 points of this run" in caplog.text
    assert "1 line could not be delivered, see" in caplog.text


def test_a_shipper_that_dies_says_how_to_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ECHO_PLAY", "dies")
    run.settings = made_settings(tmp_path, influxdb={"url": "http://db:8086"})
    Delivery(run).finish()
    assert f"nothing is lost: loadgen ship {run.name}" in caplog.text
    assert os.path.exists(run.dir.path / "delivery.log")


def test_without_an_address_nothing_is_started(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    shipper = Delivery(run)
    shipper.end()
    shipper.finish()
    assert caplog.text == ""
