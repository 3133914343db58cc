"""The byte-exact captures of tests/fixtures/sse as Python values.

    for capture in captures("vllm"):
        for exchange in capture.exchanges:
            for ns, data in exchange.recv: ...     # ns since the request was sent

Nothing here uses the code under test: `Exchange.http()` has its own small reader of HTTP framing.
"""

from __future__ import annotations

import base64
import json
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENGINES = ("llamacpp", "llamacpp-ping", "vllm")
_DIR = Path(__file__).parent.parent / "fixtures" / "sse"
_ENDS = ("eof", "open_after_complete", "closed_by_client")


@dataclass(frozen=True)
class Response:
    """A response without its HTTP framing; header names in lower case. `complete` is False when the body
    ended before its framing said so; `chunks` are the HTTP chunks of the body (one if not chunked)."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: tuple[bytes, ...]
    complete: bool


@dataclass(frozen=True)
class Exchange:
    """One request on a connection and what came back.

    `recv` holds (nanoseconds since `sent`, bytes) of every read. `end` says what ended the exchange: `eof`,
    `open_after_complete` (the connection could be used again), `closed_by_client`, or `next_request`.
    """

    request: bytes
    sent_ns: int
    recv: tuple[tuple[int, bytes], ...]
    end: str
    end_ns: int | None

    @property
    def raw(self) -> bytes:
        return b"".join(data for _, data in self.recv)

    @property
    def request_body(self) -> bytes:
        return self.request.partition(b"\r\n\r\n")[2]

    @property
    def path(self) -> str:
        return self.request.split(b" ", 2)[1].decode()

    def http(self) -> Response:
        """The response; ValueError if no whole head came."""
        head, blank, rest = self.raw.partition(b"\r\n\r\n")
        if not blank:
            raise ValueError("no response head")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        status = int(first.split(" ", 2)[1])
        if headers.get("transfer-encoding", "").lower() == "chunked":
            chunks, complete = _dechunk(rest)
            return Response(status, headers, b"".join(chunks), tuple(chunks), complete)
        length = headers.get("content-length")
        complete = len(rest) == int(length) if length else self.end == "eof"
        return Response(status, headers, rest, (rest,), complete)


@dataclass(frozen=True)
class Capture:
    """One case: a connection with one exchange (chat_cached and keepalive_two: two)."""

    engine: str
    case: str
    exchanges: tuple[Exchange, ...]

    @property
    def id(self) -> str:
        return f"{self.engine}/{self.case}"


def captures(engine: str) -> list[Capture]:
    """All captures of one of `ENGINES` that record a connection, by name."""
    return [
        _capture(engine, name.removesuffix(".jsonl"), data)
        for name, data in sorted(_files(engine).items())
        if name.endswith(".jsonl") and _is_connection(data)
    ]


def capture(engine: str, case: str) -> Capture:
    return _capture(engine, case, _files(engine)[f"{case}.jsonl"])


def raw_file(engine: str, name: str) -> bytes:
    """Any file of the archive, for those in other formats (`loading.jsonl`, `concurrent16.metrics.jsonl`)."""
    return _files(engine)[name]


@cache
def _files(engine: str) -> dict[str, bytes]:
    with tarfile.open(_DIR / f"{engine}.tar.xz") as tar:
        return {
            Path(m.name).name: f.read() for m in tar.getmembers() if (f := tar.extractfile(m)) is not None
        }


def _is_connection(data: bytes) -> bool:
    return "t_connect_ns" in json.loads(data.split(b"\n", 1)[0])


def _capture(engine: str, case: str, data: bytes) -> Capture:
    rows = [json.loads(line) for line in data.splitlines()][1:]
    starts = [i for i, row in enumerate(rows) if "request_b64" in row]
    exchanges = []
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        sent = rows[start]["t_sent_ns"]
        end, end_ns = "next_request", None
        recv = []
        for row in rows[start + 1 : stop]:
            if "b64" in row:
                recv.append((row["t_ns"] - sent, base64.b64decode(row["b64"])))
            else:
                end = next(name for name in _ENDS if row.get(name))
                end_ns = row["t_ns"] - sent
        request = base64.b64decode(rows[start]["request_b64"])
        exchanges.append(Exchange(request, sent, tuple(recv), end, end_ns))
    return Capture(engine, case, tuple(exchanges))


def _dechunk(data: bytes) -> tuple[list[bytes], bool]:
    chunks: list[bytes] = []
    at = 0
    while (line_end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line_end].split(b";")[0], 16)
        if size == 0:
            return chunks, True
        body = data[line_end + 2 : line_end + 2 + size]
        chunks.append(body)
        at = line_end + 2 + size + 2
        if len(body) < size:
            break
    return chunks, False
