"""`loadgen influx check` tells what is wrong, before a run does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadgen import cli
from loadgen.sinks.check import Finding, check
from tests.support.canned import Answer, CannedServer, Seen, as_json
from tests.support.influxdb import Bucket

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("URL", "TOKEN", "ORG", "BUCKET"):
        monkeypatch.delenv(f"INFLUXDB_{name}", raising=False)


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({}, 0, ["ok      address", "ok      write", "ok      query", "read back in InfluxQL"]),
        (
            {"INFLUXDB_TOKEN": "wrong-token"},
            1,
            ["ok      address", "FAILED  write", "does not know the token"],
        ),
        ({"INFLUXDB_ORG": "elsewhere"}, 1, ["FAILED  write", "has no organisation 'elsewhere'"]),
        ({"INFLUXDB_BUCKET": "nowhere"}, 1, ["FAILED  write", "has no bucket 'nowhere'"]),
        ({"INFLUXDB_URL": "http://127.0.0.1:9"}, 1, ["FAILED  address", "is InfluxDB running"]),
    ],
)
def test_a_real_database(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    change: dict[str, str],
    code: int,
    says: list[str],
) -> None:
    env = {**bucket.env, **change}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["influx", "check"]) == code
    captured = capsys.readouterr()
    assert [text for text in says if text not in captured.out] == [], captured.out
    assert env["INFLUXDB_TOKEN"] not in captured.out + captured.err
    assert ("nothing of them would be delivered" in captured.err) == bool(code)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "InfluxDB has no address: set INFLUXDB_URL"),
        ({"INFLUXDB_URL": "http://x"}, "set the environment variable INFLUXDB_TOKEN"),
        ({"INFLUXDB_URL": "nonsense", "INFLUXDB_TOKEN": "t"}, "INFLUXDB_URL"),
        ({"INFLUXDB_URL": "http://x", "INFLUXDB_TOKEN": "two words"}, "characters that no token has"),
    ],
)
def test_what_is_missing_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, env: dict[str, str], says: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["influx", "check"]) == 2
    assert says in capsys.readouterr().err


def answering(query: Answer) -> list[Finding]:
    """The findings about a server that takes the point and answers `query` to the question for it."""

    class Any(dict[str, object]):
        def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
            return Answer(204) if path.startswith("/api/") or path == "/ping" else query

    with CannedServer(Any()) as server:  # type: ignore[arg-type]
        from loadgen.config import InfluxdbSpec

        return list(check(InfluxdbSpec(url=server.url), "t"))


@pytest.mark.parametrize(
    ("query", "level", "says"),
    [
        (as_json({"code": "forbidden"}, 403), "note", "may write and not read"),
        (as_json({"results": [{}]}), "failed", "the point is not there"),
        (as_json({"results": [{"error": "database not found: x"}]}), "failed", "database not found: x"),
        (as_json({"code": "not found", "message": "no dbrp"}, 404), "failed", "404: no dbrp"),
        (Answer(200, b"<html>hello</html>"), "failed", "200:  hello "),
    ],
)
def test_where_the_point_cannot_be_read(query: Answer, level: str, says: str) -> None:
    address, write, read = answering(query)
    assert (address.level, write.level, read.level) == ("ok", "ok", level)
    assert says in read.text


def test_the_question_is_for_the_point_that_was_written() -> None:
    asked: list[Seen] = []

    class Any(dict[str, object]):
        def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
            def answer(seen: Seen) -> Answer:
                asked.append(seen)
                return Answer(204) if "query" not in path else as_json({"results": []})

            return answer

    from loadgen.config import InfluxdbSpec

    with CannedServer(Any()) as server:  # type: ignore[arg-type]
        list(check(InfluxdbSpec(url=server.url, bucket="db/rp"), "t"))
    assert "db=db&" in asked[-1].path
    assert asked[-1].path.endswith("rp=rp")
    assert json.dumps(asked[-1].path).count("loadgen_check") == 1
