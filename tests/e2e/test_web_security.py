"""Who is let in to Locust's page: the real command, as a person starts it."""

from __future__ import annotations

import http.cookiejar
import json
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request

import pytest
from werkzeug.security import generate_password_hash

from tests.e2e.conftest import SHORT
from tests.support.locust_run import run_locust, start_locust


class Browserish:
    """A client that keeps cookies, and does as it is told about headers."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar)

    def ask(self, path: str, data: dict | None = None, **headers: str) -> tuple[int, str]:
        body = urllib.parse.urlencode(data).encode() if data is not None else None
        names = {k.replace("_", "-"): v for k, v in headers.items()}
        try:
            with self._opener.open(urllib.request.Request(f"{self.address}{path}", body, names)) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return 0, ""


@pytest.fixture
def port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_login_from_the_environment(runs, both, port):
    env = {
        "LOADGEN_WEB_USER": "me",
        "LOADGEN_WEB_PASSWORD_HASH": generate_password_hash("a long password"),
    }
    run = start_locust(runs, "-P", str(port), *both, *SHORT, env=env)  # nobody asked for another interface
    client = Browserish(port)
    try:
        run.wait_for(lambda _: client.ask("/login")[0] == 200)
        assert "authArgs" in client.ask("/")[1]
        assert "authArgs" in client.ask("/llm/data")[1]
        assert "authArgs" in client.ask("/llm/login", {"username": "me", "password": "guess"})[1]
        client.ask("/swarm", {"user_count": 2, "spawn_rate": 100})
        assert not runs.exists()

        assert (
            "templateArgs" in client.ask("/llm/login", {"username": "me", "password": "a long password"})[1]
        )
        evil = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site"}
        assert client.ask("/swarm", {"user_count": 2, "spawn_rate": 100}, **evil)[0] == 403
        assert client.ask("/", Host="evil.example")[0] == 403
        assert not runs.exists()
        assert client.ask("/swarm", {"user_count": 2, "spawn_rate": 100})[0] == 200
        run.wait_for(lambda r: r.manifest.get("state") == "complete")
        assert json.loads(client.ask("/llm/data")[1])["run"]["scenario"] == "concurrency"
        listening = [
            line for line in run._logs[1].read_text().splitlines() if "Starting web interface" in line
        ]
        assert f"http://127.0.0.1:{port}" in listening[0]
        run.send(signal.SIGINT)
        run.wait()
        assert run.code == 0, run.err
        everything = run.err + run.out + "".join(p.read_text() for p in run.dir.glob("*.json*"))
        assert "scrypt" not in everything
        assert "long password" not in everything
    finally:
        run.stop()


def test_a_login_that_nobody_can_pass_is_refused(runs, both, port):
    run = start_locust(runs, "-P", str(port), "--web-login", *both).wait()
    assert run.code == 2
    assert "nobody is known who may log in; set LOADGEN_WEB_USER" in run.err
    assert "Traceback" not in run.err


def test_without_a_page_nobody_needs_a_login(runs, both):
    assert run_locust(runs, *both, *SHORT, "-u", "1", env={"LOADGEN_WEB_USER": "me"}).code == 0
