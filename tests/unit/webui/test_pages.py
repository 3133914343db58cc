"""What the web server answers, in Locust's own application."""

from __future__ import annotations

import locust

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug.security import generate_password_hash

from loadgen.config import ConfigError
from loadgen.record import RequestRecord
from loadgen.store import RunDir
from loadgen.webui import install, pages
from loadgen.webui.live import Live

SECRET = "correct horse battery"
HASH = generate_password_hash(SECRET, "pbkdf2:sha256:1000")
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locust parses it for each page."""
    monkeypatch.setattr("sys.argv", ["locust"])


class Site:
    def __init__(self, base: str = "", login: bool = False, host: str = "127.0.0.1") -> None:
        self.environment = locust.env.Environment()
        self.environment.create_local_runner()
        options = {"web_base_path": base, "web_login": login, "web_host": host, "web_host_display_name": ""}
        ui = self.environment.create_web_ui(
            host=host, port=8089, web_base_path=base, web_login=login, delayed_start=True
        )
        found = install(self.environment, SimpleNamespace(**options))  # type: ignore[arg-type]
        assert found is not None
        self.live: Live = found
        self.client = ui.app.test_client()
        self.base = base

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(f"{self.base}{path}", **options)

    def begin(self, tmp_path: Path, engine: str = "a") -> Any:
        lanes = [SimpleNamespace(name=engine, info=SimpleNamespace(simulated=True))]
        folder = RunDir.create(tmp_path, "concurrency")
        run = SimpleNamespace(
            name=folder.name,
            dir=folder,
            lanes=lanes,
            settings=SimpleNamespace(scenario="concurrency", slo=None),
            manifest=SimpleNamespace(notes=[EVIL]),
        )
        self.live.opened(run, None)  # type: ignore[arg-type]
        return run


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("base", ["", "/load"])
def test_the_tab_has_a_row_an_engine(tmp_path: Path, base: str) -> None:
    site = Site(base)
    page = site.get("/").get_data(as_text=True)
    assert '"title": "LLM"' in page
    assert page.count("tab.js") == 1
    assert "./llm/csv" in page
    site.begin(tmp_path)
    site.live.record(RequestRecord(engine="a", ttft_ms=123.4, read_lag_ms=1.0))
    found = site.get("/stats/requests").json
    assert found["state"] == "ready"
    (table,) = found["extended_stats"]
    (row,) = table["data"]
    assert (row["name"], row["ttft_p50"], row["validity"]) == ("a (simulated)", "123.4 ms", "valid so far")
    assert (
        site.get("/llm/csv").get_data(as_text=True).splitlines()[1].startswith("a,concurrency,,1,0,1,123.4,")
    )
    site.live.closed("complete")


def test_a_run_from_begin_to_end(site: Site, tmp_path: Path) -> None:
    first = site.get("/llm/data").json
    assert (first["run"], first["rows"], first["reset"]) == ({}, [], True)
    run = site.begin(tmp_path)
    asked = f"/llm/data?epoch={first['epoch']}&cursor={first['cursor']}&seen="
    found = site.get(asked).json
    assert (found["reset"], found["run"]["state"], found["run"]["engines"]) == (False, "running", ["a"])
    assert [m["kind"] for m in found["marks"]] == ["run"]
    assert site.get(f"/llm/report?run={run.name}").status_code == 409
    site.live.closed("interrupted")
    found = site.get(asked).json
    assert (found["run"]["state"], found["run"]["report"], found["marks"][0]["open"]) == (
        "interrupted",
        True,
        False,
    )
    site.begin(tmp_path)
    assert site.get("/llm/data").json["run"]["state"] == "running"
    site.live.closed("complete")


def test_a_run_that_cannot_be(site: Site, tmp_path: Path) -> None:
    site.live.refused("nothing listens")
    assert site.get("/llm/data").json["run"] == {"problem": "nothing listens"}
    site.begin(tmp_path)
    assert "problem" not in site.get("/llm/data").json["run"]
    site.live.closed("failed")


def test_locusts_page_runs_no_script_but_its_own(site: Site) -> None:
    answers = [site.get("/") for _ in range(2)]
    nonces = [a.headers["Content-Security-Policy"].partition("'nonce-")[2].partition("'")[0] for a in answers]
    assert len(set(nonces)) == 2
    for answer, nonce in zip(answers, nonces, strict=True):
        page = answer.get_data(as_text=True)
        assert page.count(f'<script nonce="{nonce}">') == 1
        assert "<script>" not in page


def test_odd_questions(site: Site) -> None:
    assert site.get("/llm/data?cursor=x").status_code == 400
    assert site.get("/llm/data?cursor=1&seen=x").status_code == 400
    assert site.get("/llm/data?cursor=99&epoch=other").json["reset"]
    assert site.get("/llm/data?cursor=-1&seen=nan").status_code == 200
    for path in ("/llm/../pages.py", "/llm/live.py", "/llm/%2e%2e/x", "/llm/report?run=../../etc"):
        assert site.get(path).status_code == 404
    assert site.get("/llm/csv").status_code == 200


def test_the_report_is_made_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = site.begin(tmp_path)
    run.settings.slo = "ttft_p95<500ms"
    site.live.closed("complete")
    for name in ("requests.jsonl", "manifest.json"):
        (run.dir.path / name).write_text("")
    made: list[list[str]] = []

    def make(command: list[str], **_: Any) -> Any:
        made.append(command)
        Path(command[command.index("--output") + 1]).write_text("<html>")
        return SimpleNamespace(returncode=0, stderr=b"")

    monkeypatch.setattr(pages.subprocess, "run", make)
    for _ in range(2):
        answer = site.get("/llm/report")
        assert answer.get_data(as_text=True) == "<html>"
        assert f"{run.name}.html" in answer.headers["Content-Disposition"]
    assert [command[-2:] for command in made] == [["--slo", "ttft_p95<500ms"]]
    os.utime(run.dir.path / "report.html", (1, 1))  # older than what it is made of
    monkeypatch.setattr(
        pages.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr=b"why\n")
    )
    answer = site.get("/llm/report")
    assert (answer.status_code, answer.get_data(as_text=True)) == (500, "why\n")


def test_nothing_that_is_said_becomes_markup(site: Site, tmp_path: Path) -> None:
    site.begin(tmp_path, EVIL)
    page = site.get("/llm")
    assert "onerror" not in page.get_data(as_text=True)
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert site.get("/llm/data").mimetype == "application/json"
    assert site.get("/llm/data").headers["X-Content-Type-Options"] == "nosniff"
    assert "<img" not in site.get("/").get_data(as_text=True)
    site.live.closed("complete")


def test_cells_are_no_formulas() -> None:
    assert pages._cell("=1+1") == "'=1+1"
    assert [pages._cell(v) for v in (None, True, 0.123456789, ["a", "b"], 3)] == [
        "",
        1,
        "0.123457",
        "a; b",
        3,
    ]


def test_without_plotly(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    if pages.plotly_path() is not None:
        assert site.get("/llm/plotly.js").status_code == 200
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    assert site.get("/llm/plotly.js").status_code == 404
    assert "pip install 'loadgen[report]'" in site.get("/llm").get_data(as_text=True).replace("&#x27;", "'")


def test_other_sites_and_other_names(site: Site) -> None:
    cross = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    for path in ("/swarm", "/stop", "/stats/reset", "/user"):
        assert site.client.post(path, headers=cross).status_code == 403
    assert site.get("/", headers={"Host": "evil.example"}).status_code == 403
    answer = site.get("/stats/requests", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers


class TestLogin:
    @pytest.fixture
    def site(self, monkeypatch: pytest.MonkeyPatch) -> Site:
        monkeypatch.setenv("LOADGEN_WEB_USER", "me")
        monkeypatch.setenv("LOADGEN_WEB_PASSWORD_HASH", HASH)
        monkeypatch.setattr("loadgen.webui.login.WRONG_S", 0.0)
        return Site(login=True)

    def come_in(self, site: Site, user: str, password: str) -> Any:
        return site.client.post("/llm/login", data={"username": user, "password": password})

    @pytest.mark.parametrize("path", ["/", "/llm", "/llm/data", "/llm/csv", "/llm/report", "/stats/requests"])
    def test_nothing_without_it(self, site: Site, path: str) -> None:
        answer = site.get(path)
        assert answer.status_code == 302
        assert "/login" in answer.headers["Location"]
        assert site.client.post("/swarm", data={"user_count": 1}).status_code == 302

    def test_who_may(self, site: Site) -> None:
        for user, password in (("me", "wrong"), ("you", SECRET), ("", ""), ("me", "ü" * 5000)):
            assert self.come_in(site, user, password).headers["Location"].endswith("/login")
            assert "not the user, or not the password" in site.get("/login").get_data(as_text=True)
            assert site.get("/llm").status_code == 302
        answer = self.come_in(site, "me", SECRET)
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "loadgen_8089=" in cookie
        assert site.get("/llm").status_code == 200
        assert site.get("/llm/data").status_code == 200
        assert HASH not in json.dumps(site.get("/").get_data(as_text=True))

    @pytest.mark.parametrize(
        ("user", "password_hash", "why"),
        [
            ("", "", "nobody is known"),
            ("me", "", "lacks LOADGEN_WEB_PASSWORD_HASH"),
            ("", HASH, "lacks LOADGEN_WEB_USER"),
            ("me", "plain", "is no hash"),
            ("me", HASH.replace("$", ""), "single quotes"),
        ],
    )
    def test_who_is_not_set_up(
        self, monkeypatch: pytest.MonkeyPatch, user: str, password_hash: str, why: str
    ) -> None:
        monkeypatch.setenv("LOADGEN_WEB_USER", user)
        monkeypatch.setenv("LOADGEN_WEB_PASSWORD_HASH", password_hash)
        with pytest.raises(ConfigError, match=why):
            Site(login=True)


def test_on_all_interfaces_it_warns(caplog: pytest.LogCaptureFixture) -> None:
    Site(host="")
    assert "--web-login asks for a password" in caplog.text
    caplog.clear()
    Site()
    assert caplog.text == ""


def test_a_mistake_of_the_page_is_none_of_the_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    live = Live()
    live.opened(SimpleNamespace(lanes=None), None)  # type: ignore[arg-type]
    live.record(RequestRecord())
    live.closed("complete")
    live.concluded([SimpleNamespace()])  # type: ignore[list-item]
    assert "the run does not care" in caplog.text
