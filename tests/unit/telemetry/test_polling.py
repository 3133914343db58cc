"""What agents and exporters have in common: whom the token goes to, and servers that never finish."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loadgen.telemetry.beat import Beat
from loadgen.telemetry.polling import Polled, PollError
from tests.support.waiting import wait_for
from tests.unit.telemetry.serving import serve

BEARER = {"Authorization": "Bearer a-token-for-tests"}


class Source(Polled):
    """Raises what it is told to."""

    error: Exception | None = None

    def poll(self) -> None:
        if self.error:
            raise self.error


def source(url: str, rows: list[Any] | None = None) -> Source:
    return Source(url, "here", 0.01, (rows if rows is not None else []).append)


def test_a_password_in_netrc_does_not_replace_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("default login joe password from-netrc\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    with serve(lambda path, headers: (200, headers.get("Authorization", "none"))) as server:
        assert source(server.url).get(server.url, BEARER, {}) == b"Bearer a-token-for-tests"


def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serve(lambda path, headers: (200, "direct")) as server,
        serve(lambda path, headers: (502, "by proxy")) as proxy,
    ):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert source(server.url).get(server.url, BEARER, {}) == b"direct"
        assert proxy.paths == []


def test_an_answer_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.telemetry.polling.READ_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def drip() -> None:
            client, _ = listening.accept()
            with client:
                client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while not over.wait(0.02):
                    try:
                        client.sendall(b"1\r\nx\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            with pytest.raises(PollError, match="too slowly, a little at a time"):
                source(url).get(url, {}, {})
        finally:
            over.set()
            thread.join()


def test_an_answer_that_cannot_be_used_is_a_note_and_not_the_end() -> None:
    rows: list[Any] = []
    polled = source("http://127.0.0.1:9", rows)
    polled.error = OverflowError("too large")
    polled.start()
    wait_for(lambda: rows)
    polled.error = None
    wait_for(lambda: len(rows) == 2)
    polled.stop()
    assert [row["text"] for row in rows] == [
        "http://127.0.0.1:9 answers what cannot be used (OverflowError: too large)",
        "http://127.0.0.1:9 answers again",
    ]


def test_a_beat_goes_on_after_one_that_failed(capfd: pytest.CaptureFixture[str]) -> None:
    beats: list[float] = []

    def work() -> None:
        beats.append(time.monotonic())
        raise RuntimeError("no sample this time")

    beat = Beat("test", 0.01, work)
    beat.start()
    wait_for(lambda: len(beats) >= 3)
    beat.ask_to_stop()
    assert beat.join_until(time.monotonic() + 5)
    assert capfd.readouterr().err.count("RuntimeError: no sample this time") == 1
