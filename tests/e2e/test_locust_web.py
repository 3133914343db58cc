"""The same through Locust's web UI: start, stop, start again, and mistakes in the form."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.locust_run import start_locust


class Web:
    def __init__(self, runs, *flags, env=None, scenario="concurrency"):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        flags = ("--web-host", "127.0.0.1", "-P", str(self.port), *flags)
        self.run = start_locust(runs, *flags, env=env, scenario=scenario)
        self.run.wait_for(lambda _: self.state() == "ready")

    def get(self, path: str, data: dict | None = None) -> str:
        body = urllib.parse.urlencode(data).encode() if data is not None else None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=20) as r:
                return r.read().decode()
        except urllib.error.HTTPError as e:
            return e.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return "{}"

    def stats(self) -> dict:
        return json.loads(self.get("/stats/requests"))

    def state(self) -> str:
        return self.stats().get("state", "")

    def swarm(self, **fields: object) -> str:
        return self.get("/swarm", {"user_count": 2, "spawn_rate": 100, **fields})

    def stop(self) -> None:
        if "Method Not Allowed" in self.get("/stop", {}):  # Locust 2.46, the last for Python 3.10
            self.get("/stop")

    def shows(self, expected: dict[str, int]) -> None:
        """Until the page shows these numbers of requests (Locust renews its figures every two seconds)."""
        self.run.wait_for(
            lambda _: {s["name"]: s["num_requests"] for s in self.stats()["stats"]} == expected, 20
        )

    def problems(self) -> list[str]:
        return [e["msg"] for e in json.loads(self.get("/exceptions"))["exceptions"]]

    def runs(self) -> list[str]:
        folder = self.run.runs_dir
        return sorted(p.name for p in folder.iterdir() if p.name != "latest") if folder.exists() else []


@pytest.fixture
def web(runs, both):
    started = Web(runs, *both, *SHORT)
    yield started
    started.run.stop()


def finished(web, runs: int):
    return lambda r: (
        len(web.runs()) == runs and r.manifest.get("state") == "complete" and web.state() == "stopped"
    )


def test_runs_one_after_the_other_each_with_what_the_form_said(web):
    page = web.get("/")
    options = json.loads(re.search(r'"?extra_options"?: (\{.*?\}\}), ', page.replace("\n", " ")).group(1))
    assert options["turn_requests"]["default_value"] == 8
    assert options["arrival"]["choices"][:2] == ["burst", "staggered"]
    assert options["engine"]["default_value"].count("=") == 2
    assert "loadgen_config" not in options

    web.swarm(turn_requests=6)
    web.run.wait_for(finished(web, 1))
    web.shows({"a concurrency (simulated)": 6, "b concurrency (simulated)": 6, "Aggregated": 12})

    one = options["engine"]["default_value"].split(",")[1].replace("b=", "only=")
    web.swarm(turn_requests=4, engine=one, user_count=3)
    web.run.wait_for(finished(web, 2))
    web.shows({"only concurrency (simulated)": 4, "Aggregated": 4})
    assert web.run.manifest["settings"]["users"] == 3

    web.run.send(signal.SIGINT)
    web.run.wait()
    assert web.run.code == 0, web.run.err
    assert "Traceback" not in web.run.err


def test_a_mistake_in_the_form_starts_nothing_and_the_server_stays(web):
    web.swarm(turn_requests=0)
    web.run.wait_for(lambda _: web.problems())
    assert web.problems() == ["--turn-requests: Input should be greater than or equal to 1"]
    if sys.version_info >= (3, 11):  # Locust 2.46, the last for Python 3.10, falls over it
        assert "invalid literal" in web.swarm(turn_requests="many")
    web.swarm(turn_requests=4, engine="dead=vllm:http://127.0.0.1:9")
    web.run.wait_for(lambda _: any("nothing listens at http://127.0.0.1:9" in p for p in web.problems()))
    assert web.runs() == []
    assert "nothing listens" in web.get("/logs")
    web.run.send(signal.SIGINT)
    web.run.wait()
    assert "nothing listens" in web.run.err
    assert "Traceback" not in web.run.err


def test_stop_and_other_numbers_of_users_do_not_break_a_turn(runs, sim):
    one = sim("vllm", speed=3)
    web = Web(runs, *engine_flags(a=one), *SHORT, "--turn-requests", "40", "--output-tokens", "16")
    try:
        web.swarm(blocks=2, warmup_requests=0)
        web.run.wait_for(lambda r: len(r.records) >= 4)
        web.swarm(blocks=2, user_count=5)  # "Edit" in the UI: more users, in the middle of a turn
        web.run.wait_for(lambda r: {x["user"] for x in r.records} == set(range(5)))
        assert {x["user"] for x in web.run.records if x["turn"] == 0} == {0, 1}
        assert web.run.turns()[0] == ("a", True)
        web.swarm(blocks=2, user_count=1)  # fewer: those who leave finish their requests
        web.stop()
        web.run.wait_for(lambda r: r.manifest.get("state") == "interrupted")
        assert web.run.count("outcome").keys() == {"ok"}
        assert any("users were changed" in n for n in web.run.manifest["notes"])
        assert any("turn 1 (a) was measured with 5 users, not 2" in n for n in web.run.manifest["notes"])
    finally:
        web.run.stop()
