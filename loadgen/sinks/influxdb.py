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
from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError

from loadgen.config import ConfigError, InfluxdbSpec

TIMEOUT_S = 15.0
WHY_CHARS = 300
# A fifth of the size for a third of what the library's own level 9 costs.
COMPRESSION_LEVEL = 1
_TLS_FOR_GOOD = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
_DROPPED = re.compile(r"dropped=(\d+)")


class Refusal(Enum):
    """What to do after a write that failed."""

    RETRY = "retry"  # the server is away, busy or in trouble: the same again, later
    SPLIT = "split"  # a line among these is bad: find it
    STOP = "stop"  # token, organisation, bucket or address is wrong: a person has to act


class WriteError(Exception):
    """A batch that was not taken, or not all of it: the text is one sentence.

    `retry_after_s` is what the server asked for. `dropped` is how many lines it says it left out, where it
    says so; all others of that batch are stored. `timed_out`: it may be stored, or not.
    """

    def __init__(
        self,
        refusal: Refusal,
        why: str,
        *,
        retry_after_s: float | None = None,
        dropped: int | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(why)
        self.refusal = refusal
        self.retry_after_s = retry_after_s
        self.dropped = dropped
        self.timed_out = timed_out


class InfluxWriter:
    """One bucket. The token goes into a header of each request, and nowhere else."""

    def __init__(self, spec: InfluxdbSpec, token: str) -> None:
        """Raises ConfigError without an address, or with a token that no header can carry."""
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
        client: Any = InfluxDBClient  # the library has no types
        service: Any = WriteService
        try:
            self._client = client(
                url=spec.url,
                token=token,
                org=spec.org,
                verify_ssl=spec.verify_tls,
                ssl_ca_cert=spec.ca_file,
            )
        except OSError as e:
            raise ConfigError(
                f"ca_file {spec.ca_file} of InfluxDB cannot be read: {e.strerror or e}"
            ) from None
        self._service = service(self._client.api_client)

    @property
    def destination(self) -> str:
        """What `delivery.json` knows it by."""
        return f"{self.spec.url} {self.spec.org} {self.spec.bucket}"

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
            raise self._refused(e) from None
        except (HTTPError, OSError) as e:
            reason = _reason(e)
            if isinstance(e, SSLError) and any(text in reason for text in _TLS_FOR_GOOD):
                why = f"TLS with InfluxDB at {self.spec.url} is not possible: {reason}"
                raise WriteError(Refusal.STOP, self._plain(why)) from None
            why = self._plain(f"InfluxDB at {self.spec.url} does not answer: {reason}")
            raise WriteError(Refusal.RETRY, why, timed_out=isinstance(e, ReadTimeoutError)) from None

    def close(self) -> None:
        self._client.close()

    def _refused(self, error: ApiException) -> WriteError:
        status, said = int(error.status or 0), said_by(error.body)
        url, spec = self.spec.url, self.spec
        if status in (400, 413, 422):
            found = _DROPPED.search(said)
            return WriteError(
                Refusal.SPLIT, self._plain(f"{status}: {said}"), dropped=int(found[1]) if found else None
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
        return " ".join(text.replace(self._token, "<token>").split())[:WHY_CHARS]


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


def _reason(error: BaseException) -> str:
    """The innermost cause, which is what a person can act on: `[Errno 111] Connection refused`."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _reason(reason)
    text = str(error) or type(error).__name__
    return re.sub(r"^[A-Za-z]*Connection(Pool)?\(.*?\): ", "", text)


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; a date there is not taken."""
    return float(text) if text and re.fullmatch(r"\d{1,4}", text.strip()) else None
