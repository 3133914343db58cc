"""Is InfluxDB set up so that a run can be delivered, and read by Grafana? Asked before the run.

Each step is a sentence; what fails says what to do. The steps write one point, in a measurement of its own
(`loadgen_check`), and read it back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from loadgen.config import InfluxdbSpec
from loadgen.sinks.influxdb import InfluxWriter, WriteError, reason_of, said_by
from loadgen.sinks.sending import CHECK
from loadgen.tls import tls_context

TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Finding:
    """`note`: not as it could be, but delivery works."""

    step: str
    level: Literal["ok", "note", "failed"]
    text: str


def check(spec: InfluxdbSpec, token: str) -> Iterator[Finding]:
    """The findings, one step after the other; nothing follows one that failed. Raises ConfigError."""
    writer = InfluxWriter(spec, token)
    server = Server(spec, token)
    for step in (_address(server), _write_and_read(server, writer)):
        for finding in step:
            yield finding
            if finding.level == "failed":
                return


class Server:
    """Plain questions to InfluxDB, without a proxy, as delivery does it."""

    def __init__(self, spec: InfluxdbSpec, token: str) -> None:
        self.spec = spec
        self._headers = {"Authorization": f"Token {token}"}
        self._pool = urllib3.PoolManager(ssl_context=tls_context(spec))

    def get(self, path: str, fields: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Raises HTTPError, OSError."""
        return self._pool.request(
            "GET",
            f"{self.spec.url}{path}",
            fields=dict(fields),
            headers=self._headers,
            timeout=TIMEOUT_S,
            retries=False,
            redirect=False,
        )


def _address(server: Server) -> Iterator[Finding]:
    url = server.spec.url
    try:
        answer = server.get("/ping", {})
    except (HTTPError, OSError) as e:
        text = f"nothing answers at {url}: is InfluxDB running, and the address right? ({reason_of(e)})"
        if isinstance(e, SSLError):
            text = f"TLS with {url} fails; ca_file in [influxdb] names whom to trust ({reason_of(e)})"
        yield Finding("address", "failed", text)
        return
    version = answer.headers.get("X-Influxdb-Version", "")[:40]
    of_version = f": InfluxDB {version}" if version else ""
    said = "" if of_version or answer.status in (200, 204) else f" ({answer.status} to a ping)"
    yield Finding("address", "ok", f"{url} answers{of_version}{said}")


def _write_and_read(server: Server, writer: InfluxWriter) -> Iterator[Finding]:
    spec = server.spec
    now_ns = time.time_ns()
    try:
        writer.write([f"{CHECK} ok=1 {now_ns}"], TIMEOUT_S)
    except WriteError as e:
        yield Finding("write", "failed", str(e))
        return
    yield Finding("write", "ok", f"a point was stored in bucket {spec.bucket!r} of organisation {spec.org!r}")
    database, _, retention = spec.bucket.partition("/")
    question = {"db": database, "epoch": "ns", "q": f"SELECT ok FROM {CHECK} WHERE time = {now_ns}"}
    try:
        answer = server.get("/query", {**question, **({"rp": retention} if retention else {})})
    except (HTTPError, OSError) as e:
        yield Finding("query", "failed", f"{spec.url}/query does not answer: {reason_of(e)}")
        return
    yield _read(spec, answer, now_ns)


def _read(spec: InfluxdbSpec, answer: urllib3.BaseHTTPResponse, now_ns: int) -> Finding:
    if answer.status in (401, 403):
        text = "the token may write and not read: right for delivery; Grafana needs one that may read"
        return Finding("query", "note", text)
    try:
        result = json.loads(answer.data)["results"][0]
        rows = result.get("series", [{}])[0].get("values", [])
        found = any(row[0] == now_ns for row in rows)
        said = str(result.get("error") or "the point is not there")
    except (ValueError, LookupError, TypeError, AttributeError):
        found, said = False, f"{answer.status}: {said_by(answer.data)}"
    if found:
        return Finding("query", "ok", "the point was read back in InfluxQL, which the dashboards use")
    text = (
        f"InfluxQL does not find the point in database {spec.bucket!r} ({said[:200]}): Grafana would see "
        "nothing. In InfluxDB 2.x an older mapping of that name may be in the way (influx v1 dbrp list)"
    )
    return Finding("query", "failed", text)
