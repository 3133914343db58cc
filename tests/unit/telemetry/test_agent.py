"""An agent and who collects from it; the two clocks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from loadgen.config import ConfigError, TelemetrySpec
from loadgen.telemetry.agent import AgentServer, RowBuffer
from loadgen.telemetry.clockoffset import STEP_NS, ClockOffset
from loadgen.telemetry.collector import AgentCollector
from loadgen.telemetry.hub import make_hub
from loadgen.telemetry.rows import facts_row, note_row, sample_row
from tests.unit.telemetry.serving import serve

TOKEN = "a-token-for-tests"
MS = 10**6
AHEAD_NS = 90 * 10**9  # how far the agent's clock is ahead


def sample(t_ns: int, gpu: int = 0, **values: Any) -> dict[str, Any]:
    return sample_row(t_ns, "gpuhost", gpu, values, source="nvml")


class Agent:
    def __init__(self) -> None:
        self.ahead_ns = AHEAD_NS
        self.buffer = RowBuffer(keep=10, wall_ns=lambda: time.time_ns() + self.ahead_ns)
        self.server = AgentServer(("127.0.0.1", 0), TOKEN, self.buffer)
        self.server.start()
        self.buffer.write(facts_row(5, "gpuhost", 0, {"name": "H200"}, source="nvml"))


@pytest.fixture
def agent() -> Iterator[Agent]:
    agent = Agent()
    yield agent
    agent.server.stop()


def collector(agent: Agent, rows: list[Any], **more: Any) -> AgentCollector:
    return AgentCollector(agent.server.url, TOKEN, "generator", 1.0, rows.append, **more)


def test_samples_come_once_on_our_clock(agent: Agent) -> None:
    agent.buffer.write(sample(1))  # before the run: not wanted
    rows: list[Any] = []
    collecting = collector(agent, rows)
    facts, notes = collecting.open()
    assert [f["name"] for f in facts] == ["H200"]
    assert notes == []
    now = time.time_ns()
    for n in range(3):
        agent.buffer.write(sample(now + AHEAD_NS + n, power_w=float(n)))
    agent.buffer.write(note_row(now + AHEAD_NS, "gpuhost", "hello"))
    collecting.poll()
    collecting.poll()
    samples = [r for r in rows if r["kind"] == "sample"]
    assert [r["power_w"] for r in samples] == [0.0, 1.0, 2.0]
    assert samples[0]["t_ns"] == pytest.approx(now, abs=2000 * MS)
    assert [r["t_ns"] - samples[0]["t_ns"] for r in samples] == [0, 1, 2]
    texts = [r["text"] for r in rows if r["kind"] == "note"]
    assert texts[-1] == "hello"
    assert len(texts) == 2
    assert "is 90.0" in texts[0]
    assert "ahead of this machine's" in texts[0]
    assert len([r for r in rows if r["kind"] == "facts"]) == 1
    assert collecting.latest()[0]["power_w"] == 2.0


def test_what_was_lost_is_said(agent: Agent) -> None:
    agent.ahead_ns = 0
    rows: list[Any] = []
    collecting = collector(agent, rows)
    collecting.open()
    for n in range(25):
        agent.buffer.write(sample(n))
    collecting.poll()
    assert [r["t_ns"] for r in rows if r["kind"] == "sample"] == pytest.approx(list(range(15, 25)), abs=10**9)
    assert "15 rows of" in next(r["text"] for r in rows if r["kind"] == "note")


def test_an_agent_started_anew(agent: Agent) -> None:
    rows: list[Any] = []
    collecting = collector(agent, rows)
    collecting.open()
    agent.buffer.agent = "another"
    agent.buffer.write(sample(1))
    collecting.poll()
    agent.buffer.write(sample(2, power_w=7.0))
    collecting.poll()
    assert [r["power_w"] for r in rows if r["kind"] == "sample"] == [7.0]
    assert any("started anew" in r["text"] for r in rows if r["kind"] == "note")


def test_a_clock_that_was_set(agent: Agent) -> None:
    agent.ahead_ns = 0
    rows: list[Any] = []
    collecting = collector(agent, rows)
    collecting.open()
    assert [r for r in rows if r["kind"] == "note"] == []
    agent.ahead_ns = -3600 * 10**9
    collecting.poll()
    (note,) = [r["text"] for r in rows if r["kind"] == "note"]
    assert "was set: it now is 3600.0" in note.replace("3599.99", "3600.0")
    assert "behind" in note


def test_processes_get_our_names(agent: Agent) -> None:
    rows: list[Any] = []
    engines = [("fp8", "http://127.0.0.1:8000"), ("q4", "http://elsewhere.invalid:8001")]
    collecting = collector(agent, rows, engines=engines)
    collecting.open()
    there = [{"pid": 1, "port": 8000, "engine": "vllm"}, {"pid": 2, "port": 8001}, {"pid": 3}]
    agent.buffer.write(sample(1, processes=there))
    collecting.poll()
    assert rows[-1]["processes"] == [{"pid": 1, "port": 8000, "engine": "fp8"}, *there[1:]]


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_nothing_without_the_token(agent: Agent, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    reply = requests.get(f"{agent.server.url}/v1/rows", headers=headers, timeout=10)
    assert reply.status_code == 401
    assert b"H200" not in reply.content
    assert TOKEN.encode() not in reply.content


def test_an_agent_on_ipv6() -> None:
    try:
        server = AgentServer(("::1", 0), TOKEN, RowBuffer())
    except OSError:
        pytest.skip("there is no IPv6 here")
    server.start()
    try:
        assert server.url.startswith("http://[::1]:")
        assert requests.get(f"{server.url}/health", timeout=10).json() == {"status": "ok"}
    finally:
        server.stop()


def test_health_and_nonsense(agent: Agent) -> None:
    assert requests.get(f"{agent.server.url}/health", timeout=10).json() == {"status": "ok"}
    assert requests.get(f"{agent.server.url}/etc/passwd", timeout=10).status_code == 404
    auth = {"Authorization": f"Bearer {TOKEN}"}
    for query in ("since=x", "since=-1", "since=99999999999999999999", "since=7&agent=z", "since="):
        reply = requests.get(f"{agent.server.url}/v1/rows?{query}", headers=auth, timeout=10)
        assert reply.json()["rows"] == []
    assert requests.post(f"{agent.server.url}/v1/rows", headers=auth, timeout=10).status_code == 501


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"now_ns": "x", "next": 1, "agent": "a"}', "<html>"])
def test_a_server_that_is_no_agent(text: str) -> None:
    with serve(lambda path, headers: (200, text)) as server:
        collecting = AgentCollector(server.url, TOKEN, "generator", 1.0, lambda row: None)
        assert collecting.open() == ([], [f"{server.url} is no telemetry agent: its answer makes no sense"])


def test_a_wrong_token_is_said_without_it() -> None:
    with serve(lambda path, headers: (401, "")) as server:
        _, notes = AgentCollector(server.url, TOKEN, "generator", 1.0, lambda row: None).open()
    assert notes == [f"{server.url} refuses the token (HTTP 401)"]


def test_agents_want_a_token() -> None:
    spec = TelemetrySpec(gpu="off", agents=("http://gpuhost:9467",))
    with pytest.raises(ConfigError, match="LOADGEN_TELEMETRY_TOKEN"):
        make_hub(spec, [], "h", lambda row: None, env={})


def test_a_source_that_hangs_holds_up_nobody() -> None:
    class Hanging:
        name = "the NVIDIA driver"

        def open(self) -> tuple[list[Any], list[str]]:
            time.sleep(30)
            raise AssertionError

    hub = make_hub(TelemetrySpec(gpu="off", dcgm=("http://127.0.0.1:9/metrics",)), [], "h", lambda row: None)
    hub.sources = [Hanging(), *hub.sources]  # type: ignore[list-item]
    hub.open(timeout_s=1.0)
    assert hub.notes[0] == "the NVIDIA driver has not answered for 1 s: it is not sampled"
    assert "does not answer" in hub.notes[1]


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=50),
)
def test_the_offset_is_right_to_half_a_round_trip(offset: int, trips: list[tuple[int, int]]) -> None:
    """Whatever the way there and back take, each up to a second."""
    clock = ClockOffset()
    sent = 10**18
    for there, back in trips:
        assert not clock.add(sent, sent + there + back, sent + there + offset)
        sent += 10**9
    assert abs(clock.offset_ns - offset) <= clock.error_ns + 1
    assert clock.error_ns <= min((there + back) // 2 for there, back in trips[-32:])
    assert clock.ours(5 + clock.offset_ns) == 5


def test_a_step_is_seen_when_it_is_larger_than_the_round_trips() -> None:
    clock = ClockOffset()
    assert not clock.add(0, 2 * MS, 1 * MS)
    assert not clock.add(10 * MS, 12 * MS, 11 * MS + STEP_NS)
    assert clock.add(20 * MS, 22 * MS, 21 * MS + 3 * STEP_NS)
    assert clock.offset_ns == 3 * STEP_NS
    assert clock.matters
