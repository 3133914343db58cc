"""What InfluxDB's answers mean; the answers are those of its documentation and of real servers."""

from __future__ import annotations

import socket
import ssl
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from influxdb_client.client.influxdb_client import InfluxDBClient

from loadgen.config import ConfigError, InfluxdbSpec
from loadgen.sinks.influxdb import InfluxWriter, Refusal, WriteError, said_by
from tests.support.canned import Answer, CannedServer, as_json
from tests.support.influxdb import Bucket

PATH = "/api/v2/write?org=loadgen&bucket=loadgen&precision=ns"
TOKEN = "very-secret-token"


def write(url: str, **spec: object) -> WriteError | None:
    writer = InfluxWriter(InfluxdbSpec(url=url, **spec), TOKEN)  # type: ignore[arg-type]
    error = None
    try:
        writer.write(["m v=1 1", "m v=2 2"], 0.5)
    except WriteError as e:
        error = e
    finally:
        writer.close()
    assert TOKEN not in str(error)
    assert "\n" not in str(error)
    return error


def test_one_request_with_compressed_lines() -> None:
    with CannedServer({PATH: Answer(204)}) as server:
        assert write(server.url) is None
    (seen,) = server.seen
    assert (seen.headers["content-encoding"], seen.headers["authorization"]) == ("gzip", f"Token {TOKEN}")
    assert zlib.decompress(seen.body, 16 + zlib.MAX_WBITS) == b"m v=1 1\nm v=2 2"


@pytest.mark.parametrize(
    ("answer", "refusal", "says"),
    [
        (as_json({"code": "unauthorized", "message": "unauthorized access"}, 401), Refusal.STOP,
         "does not know the token (401): check INFLUXDB_TOKEN"),
        (as_json({"code": "forbidden", "message": "insufficient permissions"}, 403), Refusal.STOP,
         "may not write to bucket 'loadgen'"),
        (as_json({"code": "not found", "message": 'organization name "loadgen" not found'}, 404),
         Refusal.STOP, "has no organisation 'loadgen'"),
        (as_json({"code": "not found", "message": 'bucket "loadgen" not found'}, 404), Refusal.STOP,
         "has no bucket 'loadgen'"),
        (as_json({"error": 'database not found: "loadgen"'}, 404), Refusal.STOP, "has no bucket 'loadgen'"),
        (Answer(404, b"<html><h1>404 Not Found</h1></html>"), Refusal.STOP, "does not look like InfluxDB"),
        (Answer(405, b"no"), Refusal.STOP, "does not look like InfluxDB: it answers 405"),
        (Answer(301, b"", {"Location": "http://127.0.0.1:1/"}), Refusal.STOP, "it answers 301"),
        (as_json({"code": "invalid", "message": "unable to parse 'm': missing fields"}, 400), Refusal.SPLIT,
         "400: unable to parse 'm': missing fields"),
        (as_json({"code": "request too large", "message": "too large"}, 413), Refusal.SPLIT,
         "413: too large"),
        (as_json({"message": "partial write: field type conflict: v dropped=2"}, 422), Refusal.SPLIT,
         "422: partial write: field type conflict: v dropped=2"),
        (Answer(502, "Schlechtes Gateway für Sie".encode("latin-1")), Refusal.RETRY, "what is not text"),
        (as_json({"message": "limit reached"}, 429), Refusal.RETRY, "in trouble (429): limit reached"),
        (Answer(503, b"<html>bad gateway\x1b[31m</html>"), Refusal.RETRY, "in trouble (503): bad gateway"),
        (Answer(500, f"your token {TOKEN} broke me".encode()), Refusal.RETRY, "your token <token> broke me"),
    ],
)  # fmt: skip
def test_refusals(answer: Answer, refusal: Refusal, says: str) -> None:
    with CannedServer({PATH: answer}) as server:
        error = write(server.url)
    assert error is not None
    assert (error.refusal, says in str(error)) == (refusal, True), error


def test_how_many_were_dropped_and_how_long_to_wait() -> None:
    partial = as_json({"message": "partial write: points beyond retention policy dropped=2"}, 422)
    with CannedServer({PATH: partial}) as server:
        error = write(server.url)
    assert error is not None
    assert error.dropped == 2
    with CannedServer({PATH: Answer(429, b"", {"Retry-After": "7"})}) as server:
        error = write(server.url)
    assert error is not None
    assert error.retry_after_s == 7.0


def _nobody() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


def _silent() -> socket.socket:
    listening = _nobody()
    listening.listen(5)
    return listening


@pytest.mark.parametrize(
    ("make", "says", "timed_out"),
    [(_nobody, "Connection refused", False), (_silent, "Read timed out", True)],
)
def test_a_server_that_is_not_there(make: Callable[[], socket.socket], says: str, timed_out: bool) -> None:
    with make() as listening:
        error = write(f"http://127.0.0.1:{listening.getsockname()[1]}")
    assert error is not None
    assert (error.refusal, says in str(error), error.timed_out) == (Refusal.RETRY, True, timed_out), error


def test_a_name_that_does_not_exist() -> None:
    error = write("http://influxdb.invalid:8086")
    assert error is not None
    assert error.refusal is Refusal.RETRY  # a container's name may exist a moment later


def test_tls_is_verified(tmp_path: Path) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with CannedServer({PATH: Answer(204)}, tls=context) as server:
        error = write(server.url)
        assert error is not None
        assert error.refusal is Refusal.STOP
        assert "CERTIFICATE_VERIFY_FAILED" in str(error)
        assert write(server.url, ca_file=str(tmp_path / "ca.pem")) is None
        assert write(server.url, verify_tls=False) is None


@pytest.mark.parametrize(
    ("token", "spec", "says"),
    [
        ("a b", {"url": "http://x"}, "characters that no token has"),
        ("é", {"url": "http://x"}, "characters that no token has"),
        ("t", {}, "has no address"),
        ("t", {"url": "https://x", "ca_file": "/nowhere.pem"}, "/nowhere.pem"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(token: str, spec: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as e:
        InfluxWriter(InfluxdbSpec(**spec), token)  # type: ignore[arg-type]
    assert token not in str(e.value) or token == "t"


def test_a_real_one_takes_lines(bucket: Bucket) -> None:
    spec = InfluxdbSpec(url=bucket.url, org=bucket.org, bucket=bucket.name)
    writer = InfluxWriter(spec, bucket.token)
    writer.write(["m v=1 1", "m v=2 2"])
    assert bucket.value("SELECT sum(v) FROM m") == 3
    with pytest.raises(WriteError, match="field type conflict") as e:
        writer.write(["m v=1i 3", 'm v="x" 4'])
    assert (e.value.refusal, e.value.dropped) == (Refusal.SPLIT, 2)
    with pytest.raises(WriteError) as e:
        InfluxWriter(spec, "another").write(["m v=1 1"])
    assert e.value.refusal is Refusal.STOP


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"code":"invalid","message":"bad line"}', "bad line"),
        (b'{"error":"timeout"}', "timeout"),
        (b"<html><b>Bad</b> Gateway</html>", "  Bad  Gateway "),
        ("plain", "plain"),
        (None, ""),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_what_an_error_says(body: object, text: str) -> None:
    assert said_by(body) == text


def test_a_client_that_ctrl_c_left_half_made_ends_quietly() -> None:
    client = InfluxDBClient.__new__(InfluxDBClient)
    client.__del__()
