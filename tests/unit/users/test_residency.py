import locust  # noqa: F401

import time

import pytest

from loadgen.engines import EngineError
from loadgen.users.residency import Residency
from tests.unit.users.fakes import FakeEngine


def engine(name, tmp_path, start="sleep 60", **spec):
    return FakeEngine(name, dead="down", start=f"echo {name} up >> {tmp_path}/log; {start}", **spec)


def log(tmp_path):
    return (tmp_path / "log").read_text().split("\n")[:-1]


@pytest.fixture
def residency(tmp_path):
    residency = Residency(tmp_path, ready_timeout_s=20)
    yield residency
    residency.stop()


def test_one_engine_at_a_time_and_none_twice_in_a_row(residency, tmp_path):
    a = engine("a", tmp_path, ready=f"grep -q a {tmp_path}/log", stop=f"echo a down >> {tmp_path}/log")
    b = engine("b", tmp_path, ready=f"grep -q b {tmp_path}/log")
    assert residency.switch_to(a) is True
    assert residency.switch_to(a) is False
    first = residency._process
    assert residency.switch_to(b) is True
    assert first.poll() is not None
    assert log(tmp_path) == ["a up", "a down", "b up"]
    second = residency._process
    residency.stop()
    assert second.poll() is not None
    assert not residency.resident(b)


def test_a_start_command_that_fails_is_told_with_its_last_words(residency, tmp_path):
    bad = engine("a", tmp_path, "echo out of memory; exit 7", ready="false")
    with pytest.raises(EngineError, match=r"start command ended with 7 \(out of memory") as e:
        residency.switch_to(bad)
    assert "engine-a.log" in str(e.value)


def test_a_start_command_may_leave_its_server_in_the_background(residency, tmp_path):
    daemon = engine(
        "a", tmp_path, f"(sleep 0.3; touch {tmp_path}/ready) & ", ready=f"test -e {tmp_path}/ready"
    )
    assert residency.switch_to(daemon) is True


def test_waiting_for_an_engine_has_an_end(tmp_path):
    impatient = Residency(tmp_path, ready_timeout_s=0.2)
    began = time.monotonic()
    try:
        with pytest.raises(EngineError, match=r"not ready 0\.2 s after its start command"):
            impatient.switch_to(engine("a", tmp_path, ready="false"))
    finally:
        impatient.stop()
    assert time.monotonic() - began < 15


def test_a_server_that_runs_already_is_not_taken_for_the_one_to_start(residency, tmp_path):
    a = engine("a", tmp_path)
    a.dead = ""
    with pytest.raises(
        EngineError, match=r"answers at http://127\.0\.0\.1:9 before its start command was run"
    ):
        residency.switch_to(a)
    assert not (tmp_path / "log").exists()


def test_the_next_engine_is_not_started_beside_one_that_did_not_stop(residency, tmp_path, monkeypatch):
    monkeypatch.setattr("loadgen.users.residency.STOP_S", 0.2)
    a, b = engine("a", tmp_path, ready="true"), engine("b", tmp_path, ready="true")
    residency.switch_to(a)
    a.dead = ""
    with pytest.raises(EngineError, match=r"engine a: it still answers at .* after it was stopped"):
        residency.switch_to(b)
    assert log(tmp_path) == ["a up"]
