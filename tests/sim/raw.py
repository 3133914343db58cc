"""A blocking socket that says what came, byte for byte and when: the plainest client there is."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Got:
    """A response. `reads` are (monotonic ns, bytes); `ended` is eof, open, reset or silent (incomplete)."""

    reads: list[tuple[int, bytes]] = field(default_factory=list)
    ended: str = "open"

    @property
    def raw(self) -> bytes:
        return b"".join(data for _, data in self.reads)

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def header_names(self) -> list[str]:
        return [line.partition(b":")[0].decode() for line in self.head.split(b"\r\n")[1:]]

    def header(self, name: str) -> str | None:
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            n, _, value = line.partition(":")
            if n.lower() == name.lower():
                return value.strip()
        return None

    @property
    def chunks(self) -> list[bytes]:
        """The HTTP chunks of the body; the whole body as one when it is not chunked."""
        rest = self.raw.partition(b"\r\n\r\n")[2]
        if (self.header("transfer-encoding") or "") != "chunked":
            return [rest] if rest else []
        return split_chunks(rest)[0]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def payloads(self) -> list[bytes]:
        """What stands after `data: ` in each event."""
        return payloads(self.body)

    @property
    def events(self) -> list[Any]:
        return [json.loads(p) for p in self.payloads if p != b"[DONE]"]

    @property
    def text(self) -> str:
        return "".join(event_text(e) for e in self.events)


def payloads(body: bytes) -> list[bytes]:
    return [e[len(b"data: ") :] for e in body.split(b"\n\n") if e.startswith(b"data: ")]


def event_text(event: Any) -> str:
    out = ""
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        out += choice.get("text") or delta.get("content") or ""
    return out


def split_chunks(data: bytes) -> tuple[list[bytes], bool]:
    """The chunks in `data`, and whether the last one was there."""
    out: list[bytes] = []
    while True:
        size_line, found, rest = data.partition(b"\r\n")
        if not found:
            return out, False
        size = int(size_line, 16)
        if size == 0:
            return out, rest == b"\r\n"
        if len(rest) < size + 2:
            return [*out, rest[:size]], False
        out.append(rest[:size])
        data = rest[size + 2 :]


def _complete(raw: bytes) -> bool:
    head, found, rest = raw.partition(b"\r\n\r\n")
    if not found:
        return False
    low = head.lower()
    if b"transfer-encoding: chunked" in low:
        return raw.endswith(b"0\r\n\r\n") and split_chunks(rest)[1]
    for line in low.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(rest) >= int(line.split(b":")[1])
    return False


class Raw:
    """One connection."""

    def __init__(self, url: str, timeout_s: float = 20.0) -> None:
        parts = urlsplit(url)
        assert parts.port is not None
        self.sock = socket.create_connection((parts.hostname, parts.port), timeout=timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timeout_s = timeout_s

    def send(self, request: bytes) -> int:
        """Monotonic nanoseconds just before the write."""
        t = time.monotonic_ns()
        self.sock.sendall(request)
        return t

    def read(self, *, silence_s: float | None = None, after_s: float = 0.05) -> Got:
        """One response, and whether the connection is still open `after_s` later.

        `silence_s` ends it (as "silent") when nothing comes for so long.
        """
        got = Got()
        self.sock.settimeout(silence_s or self._timeout_s)
        while True:
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                if silence_s is None:
                    raise
                got.ended = "silent"
                return got
            except ConnectionResetError:
                got.ended = "reset"
                return got
            if not data:
                got.ended = "eof"
                return got
            got.reads.append((time.monotonic_ns(), data))
            if data[-1:] in (b"\n", b"}", b"]") and _complete(got.raw):
                break
        self.sock.settimeout(after_s)
        try:
            rest = self.sock.recv(1)
        except TimeoutError:
            got.ended = "open"
        except ConnectionResetError:
            got.ended = "reset"
        else:
            assert not rest, "bytes after the response"
            got.ended = "eof"
        return got

    def ask(self, request: bytes, **how: Any) -> Got:
        self.send(request)
        return self.read(**how)

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def post(path: str, body: object, **headers: str) -> bytes:
    """A POST request's bytes; header names with underscores for dashes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: sim", "Content-Type: application/json"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


def chat(text: str = "Write a story.", *, tokens: int = 8, fault: str = "", **more: Any) -> bytes:
    """A streamed chat request with usage."""
    body = {
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "max_tokens": tokens,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
        **more,
    }
    return post("/v1/chat/completions", body, **({"X_Sim_Fault": fault} if fault else {}))


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: sim\r\n\r\n".encode()
