"""InfluxDB as somewhere to write lines to, and what its refusals mean.

One synchronous request a batch, compressed. No batching or retrying of the client library's own: it drops
batches after its retries, and what is not delivered is kept on disk here.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import Any

from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.rest import ApiException
from influxdb_client.service.write_service import WriteService
from urllib3 import disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning, ReadTimeoutError

from loadgen.config import ConfigError, InfluxdbSpec
from loadgen.tls import tls_context

TIMEOUT_S = 15.0
WHY_CHARS = 300
SECRET_CHARS = 6  # a shorter token is no secret, and blanking it would garble what is said
# A fifth of the size for a third of what the library's own level 9 costs.
COMPRESSION_LEVEL = 1
_TLS_FOR_GOOD = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
# Its __del__ asks for this, also of a client that Ctrl-C left half made.
InfluxDBClient.api_client = None  # type: ignore[assignment]
_DROPPED = re.compile(r"dropped[= ](\d+)")
_TOO_OLD = "retention policy"


class Refusal(Enum):
    """What to do after a write that failed."""

    RETRY = "retry"  # the server is away, busy or in trouble: the same again, later
    SPLIT = "split"  # a line among these is bad: find it
    STOP = "stop"  # token, organisation, bucket or address is wrong: a person has to act


class WriteError(Exception):
    """A batch that was not taken, or not all of it: the text is one sentence.

    `retry_after_s` is what the server asked for. `dropped` is how many lines it says it left out, where it
    says so; all others of that batch are stored. `too_old`: because the bucket keeps no points of that age.
    `timed_out`: it may be stored, or not.
    """

    def __init__(
        self,
        refusal: Refusal,
        why: str,
        *,
        retry_after_s: float | None = None,
        dropped: int | None = None,
        too_old: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(why)
        self.refusal = refusal
        self.retry_after_s = retry_after_s
        self.dropped = dropped
        self.too_old = too_old
        self.timed_out = timed_out


def destination(spec: InfluxdbSpec) -> str:
    """What `delivery.json` knows a bucket by."""
    return f"{spec.url} {spec.org} {spec.bucket}"


class InfluxWriter:
    """One bucket. The token goes into a header of each request, and nowhere else."""

    def __init__(self, spec: InfluxdbSpec, token: str) -> None:
        """Raises ConfigError without an address, with a token that no header can carry, or with a `ca_file`
        that cannot be read."""
        if not spec.url:
            raise ConfigError(
                "InfluxDB has no address: set INFLUXDB_URL, or url in [influxdb] of loadgen.toml"
            )
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ConfigError(
                "InfluxDB's token has characters that no token has (spaces, line ends, accents)"
            )
        self.spec = spec
        self._token = token
        if not spec.verify_tls:
            disable_warnings(InsecureRequestWarning)  # it was asked for
        client: Any = InfluxDBClient  # the library has no types
        service: Any = WriteService
        self._client = client(
            url=spec.url,
            token=token,
            org=spec.org,
            verify_ssl=spec.verify_tls,
            ssl_context=tls_context(spec) if spec.url.startswith("https:") else None,
        )
        self._service = service(self._client.api_client)

    def write(self, lines: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        """Store lines with times in nanoseconds. Raises WriteError."""
        deflate = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        body = deflate.compress("\n".join(lines).encode()) + deflate.flush()
        try:
            self._service.post_write(
                self.spec.org,
                self.spec.bucket,
                body,
                precision="ns",
                content_encoding="gzip",
                _request_timeout=round(timeout_s * 1000),
            )
        except ApiException as e:
            if not e.status:  # the library's word for TLS that failed
                raise self._silent(str(e.reason)) from None
            raise self._refused(e) from None
        except UnicodeDecodeError:  # of an answer that the library would read as text
            raise WriteError(Refusal.RETRY, f"{self.spec.url} answers what is not text") from None
        except (HTTPError, OSError) as e:
            raise self._silent(reason_of(e), isinstance(e, ReadTimeoutError)) from None

    def close(self) -> None:
        self._client.close()

    def _silent(self, reason: str, timed_out: bool = False) -> WriteError:
        if any(text in reason for text in _TLS_FOR_GOOD):
            why = f"TLS with InfluxDB at {self.spec.url} is not possible: {reason}"
            return WriteError(Refusal.STOP, self._plain(why))
        why = f"InfluxDB at {self.spec.url} does not answer: {reason}"
        return WriteError(Refusal.RETRY, self._plain(why), timed_out=timed_out)

    def _refused(self, error: ApiException) -> WriteError:
        status, said = int(error.status or 0), said_by(error.body)
        url, spec = self.spec.url, self.spec
        if status in (400, 413, 422):
            found = _DROPPED.search(said)
            return WriteError(
                Refusal.SPLIT,
                self._plain(f"{status}: {said}"),
                dropped=int(found[1]) if found else None,
                too_old=_TOO_OLD in said,
            )
        if status == 401:
            why = f"InfluxDB at {url} does not know the token (401): check {spec.token_env}"
        elif status == 403:
            why = f"the token may not write to bucket {spec.bucket!r} of organisation {spec.org!r} (403)"
        elif status == 404 and "organization" in said:
            why = f"InfluxDB at {url} has no organisation {spec.org!r} (404), or the token cannot see it"
        elif status == 404 and ("bucket" in said or "database" in said):
            why = f"InfluxDB at {url} has no bucket {spec.bucket!r} (404), or the token cannot see it"
        elif status in (408, 429) or status >= 500:
            headers: Any = error.headers or {}
            wait = _seconds(headers.get("Retry-After"))
            said = self._plain(f"InfluxDB at {url} is in trouble ({status}): {said}")
            return WriteError(Refusal.RETRY, said, retry_after_s=wait)
        else:
            why = f"{url} does not look like InfluxDB: it answers {status} to a write ({said})"
        return WriteError(Refusal.STOP, self._plain(why))

    def _plain(self, text: str) -> str:
        """Bounded, on one line, and without the token, whatever a server says."""
        if len(self._token) >= SECRET_CHARS:
            text = text.replace(self._token, "<token>")
        return " ".join(text.split())[:WHY_CHARS]


def said_by(body: Any) -> str:
    """The message in an error's body: InfluxDB's JSON of either generation, or the beginning of the text."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    text = str(body or "")
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if isinstance(data, dict):
        for key in ("message", "error"):
            if isinstance(data.get(key), str):
                return str(data[key])[:WHY_CHARS]
    return re.sub(r"<[^>]*>", " ", text)[:WHY_CHARS]


def reason_of(error: BaseException) -> str:
    """The innermost cause, which is what a person can act on: `[Errno 111] Connection refused`."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return reason_of(reason)
    text = str(error) or type(error).__name__
    return re.sub(r"^[A-Za-z]*Connection(Pool)?\(.*?\): ", "", text)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; a date there is not taken."""
    return float(text) if text and re.fullmatch(r"\d{1,4}", text.strip()) else None
