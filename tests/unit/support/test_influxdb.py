"""The tests' own database answers as InfluxDB with the v2 write API does."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from tests.support.influxdb import Bucket, InfluxError, InfluxServer


def write(to: Bucket, lines: str, token: str | None = None, **other: str) -> requests.Response:
    return requests.post(
        f"{to.url}/api/v2/write",
        params={"bucket": to.name, "org": to.org, "precision": "ns", **other},
        data=lines.encode(),
        headers={"Authorization": f"Token {token or to.token}"},
        timeout=10,
    )


def test_what_is_written_is_found(bucket: Bucket) -> None:
    assert write(bucket, "m,engine=a v=1.5,t=7i 10\nm,engine=b v=2 20").status_code == 204
    assert bucket.rows("SELECT v, t FROM m GROUP BY *") == [
        {"engine": "a", "time": 10, "v": 1.5, "t": 7},
        {"engine": "b", "time": 20, "v": 2, "t": None},
    ]
    assert bucket.value("SELECT sum(v) FROM m") == 3.5
    assert bucket.query("SELECT v FROM nothing") == []


@pytest.mark.parametrize(
    ("lines", "other", "status", "says"),
    [
        ("m v=1 1", {"token": "wrong"}, 401, "unauthorized access"),
        ("m v=1 1", {"org": "elsewhere"}, 404, 'organization name "elsewhere" not found'),
        ("m v=1 1", {"bucket": "nowhere"}, 404, 'bucket "nowhere" not found'),
        ("m v=oops 1", {}, 400, "unable to parse"),
        ("m2 v=1 2\nm2 v=1i 3", {}, 422, "field type conflict"),
    ],
)
def test_refusals(bucket: Bucket, lines: str, other: dict[str, str], status: int, says: str) -> None:
    assert write(bucket, "m2 v=1 1").status_code == 204
    answer = write(bucket, lines, **other)
    assert (answer.status_code, says in answer.json()["message"]) == (status, True), answer.text


def test_a_refused_query_is_an_error(bucket: Bucket) -> None:
    with pytest.raises(InfluxError, match="error parsing query"):
        bucket.query("SELECT FROM")


@pytest.mark.usefixtures("influxdb")  # skips where none is installed
def test_killed_and_started_again_it_still_has_its_points(tmp_path: Path) -> None:
    with InfluxServer(tmp_path, max_body="1k") as server:
        server.create("mine")
        mine = Bucket(server, "mine")
        assert write(mine, "m v=1 1").status_code == 204
        assert write(mine, "m v=1 1\n" * 200).status_code == 413
        server.kill9()
        assert write(mine, "m v=2 2").status_code == 503
        server.restart()
        assert write(mine, "m v=3 3").status_code == 204
        assert [row["v"] for row in mine.rows("SELECT v FROM m")] == [1, 3]
