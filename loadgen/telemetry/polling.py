"""GPU rows from an HTTP server that is asked at a beat: what dcgm-exporters and agents have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import requests

from loadgen.httpsession import TooMuch, new_session, read_body
from loadgen.telemetry.beat import Beat
from loadgen.telemetry.output import Write
from loadgen.telemetry.rows import note_row

CONNECT_S = 2.0
READ_S = 5.0
LAST_S = 1.0
LARGEST = 32 * 2**20


class PollError(Exception):
    """The server cannot be used now: the text is one sentence."""


class Polled(ABC):
    """A source that asks `url`. A server that does not answer is noted once, and once more when it does
    again; it is asked at every beat all the same."""

    def __init__(self, url: str, host: str, interval_s: float, write: Write) -> None:
        self.name = url
        self.url = url
        self._host = host
        self._interval_s = interval_s
        self._write = write
        self._session = new_session(url)
        self._problem: str | None = None
        self._latest: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._facts: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._beat: Beat | None = None

    @abstractmethod
    def poll(self) -> None:
        """Ask once, and give rows to `self.keep`. Raises PollError."""

    def open(self) -> tuple[list[dict[str, Any]], list[str]]:
        self._try()
        return list(self._facts.values()), [self._problem] if self._problem else []

    def start(self) -> None:
        self._beat = Beat(f"poll {self.url}", self._interval_s, self._work)
        self._beat.start()

    def stop(self) -> None:
        """Ask a last time, a beat from now: by then the other side has a sample of what was until now."""
        if self._beat:
            self._beat.ask_to_stop()
            time.sleep(min(self._interval_s, LAST_S))
            if self._beat.join_until(time.monotonic() + LAST_S):
                self._work()

    def latest(self) -> list[dict[str, Any]]:
        return [] if self._problem else list(self._latest.values())

    def keep(self, row: dict[str, Any]) -> None:
        """Write a row. Facts are written when they are new or have changed."""
        key = (row.get("host"), row.get("gpu"), row.get("mig_instance"), row.get("source"))
        if row["kind"] == "facts":
            known = self._facts.get(key)
            if known is not None and {**known, "t_ns": 0} == {**row, "t_ns": 0}:
                return
            self._facts[key] = row
        elif row["kind"] == "sample":
            # What comes at a slower beat stays in the latest sample, though not in the file.
            self._latest[key] = {**self._latest.get(key, {}), **row}
        self._write(row)

    def note(self, text: str) -> None:
        self._write(note_row(time.time_ns(), self._host, text))

    def get(self, url: str, headers: Mapping[str, str], params: Mapping[str, str]) -> bytes:
        """The body of a 200. Raises PollError, also for a redirect: it could carry the token away."""
        try:
            with self._session.get(
                url,
                headers=dict(headers),
                params=dict(params),
                timeout=(CONNECT_S, READ_S),
                allow_redirects=False,
                stream=True,
            ) as reply:
                status, body = reply.status_code, read_body(reply, LARGEST, 2 * READ_S)
        except TooMuch as e:
            raise PollError(f"{self.url} answers {e}") from None
        except (requests.RequestException, OSError, ValueError) as e:
            raise PollError(f"{self.url} does not answer ({_plain(e)})") from None
        if status in (401, 403):
            raise PollError(f"{self.url} refuses the token (HTTP {status})")
        if status != 200:
            raise PollError(f"{self.url} answers HTTP {status}")
        return body

    def _work(self) -> None:
        before = self._problem
        self._try()
        if self._problem and self._problem != before:
            self.note(self._problem)
        elif before and not self._problem:
            self.note(f"{self.url} answers again")

    def _try(self) -> None:
        try:
            self.poll()
            self._problem = None
        except PollError as e:
            self._problem = str(e)
        except Exception as e:  # whatever it sent, it is asked again at the next beat
            self._problem = f"{self.url} answers what cannot be used ({type(e).__name__}: {e})"[:300]


def _plain(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "time-out"
    text = str(error)
    for part in ("Connection refused", "Name or service not known", "No route to host", "certificate"):
        if part in text:
            return part.lower()
    return type(error).__name__
