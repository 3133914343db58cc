"""From the JSON of events to the bytes of a stream, with what a fault plan changes on the way. Pure."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from typing import Any

import orjson

from loadgen.sim.faults import Plan
from loadgen.sim.wire import Payloads

_NEWLINES = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}
DONE = b"[DONE]"


def change_head(head: bytes, plan: Plan) -> bytes:
    """The response head as the plan wants it."""
    lines = head.decode("latin-1").split("\r\n")[:-2]
    out: list[str] = []
    for line in lines:
        name = line.partition(":")[0].lower()
        if plan.content_type is not None and name == "content-type":
            line = f"{line.partition(':')[0]}: {plan.content_type}"
        if plan.http10:
            line = line.replace("HTTP/1.1", "HTTP/1.0", 1) if line.startswith("HTTP/") else line
            if name in ("transfer-encoding", "keep-alive", "connection"):
                continue
        if plan.close and name in ("keep-alive", "connection"):
            continue
        out.append(line)
    if plan.gzip:
        out.insert(-1, "Content-Encoding: gzip")
    if plan.close and not plan.http10:
        out.insert(-1, "Connection: close")
    return ("\r\n".join(out) + "\r\n\r\n").encode("latin-1")


class Framer:
    """Turns events into the bytes of one answer's body."""

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        self._plan = plan
        self._rng = rng
        self._lines = 0
        self._events = 0
        # 16: with a gzip header
        self._gzip = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS) if plan.gzip else None

    def event_bytes(self, payload: bytes) -> bytes:
        """One event; b"" when the plan leaves it out."""
        plan = self._plan
        if plan.rewrites:
            payload = self._rewrite(payload)
            if not payload:
                return b""
        out = b""
        if plan.bom and not self._events:
            out += b"\xef\xbb\xbf"
        self._events += 1
        if plan.ping_every and self._events % plan.ping_every == 0:
            out += b":" + self._newline() + self._newline()
        if plan.fields:
            out += b": a comment" + self._newline() + b"id: %d" % self._events + self._newline()
            out += b"event: message" + self._newline() + b"retry: 3000" + self._newline()
        out += (b"data: " if plan.space else b"data:") + payload
        if payload == DONE and not plan.blank_end:
            return out
        return out + self._newline() + self._newline()

    def _newline(self) -> bytes:
        if self._plan.newline == "mixed":
            self._lines += 1
            # In this order: an LF just after a CR would be the end of the same line.
            return (b"\n", b"\r", b"\r\n")[self._lines % 3]
        return _NEWLINES[self._plan.newline]

    def _rewrite(self, payload: bytes) -> bytes:
        plan = self._plan
        if payload == DONE:
            return payload if plan.done and plan.finish else b""
        data: dict[str, Any] = orjson.loads(payload)
        if not plan.usage:
            data.pop("usage", None)
            data.pop("timings", None)
            if data.get("choices") == []:
                return b""
        if not plan.finish:
            for choice in data.get("choices", ()):
                choice["finish_reason"] = None
        if plan.reorder:
            data = _reversed(data)
        if plan.spaces:
            text = json.dumps(data, ensure_ascii=False, separators=(" ,  ", "\t: "))
            return text.encode()
        return orjson.dumps(data)

    def chunk(self, payloads: Payloads) -> bytes:
        """One HTTP chunk of these events, framed; b"" when nothing is left of them."""
        return self.frame(b"".join(map(self.event_bytes, payloads)))

    def frame(self, data: bytes) -> bytes:
        """Body bytes as they go on the wire."""
        if data and self._gzip is not None:
            data = self._gzip.compress(data) + self._gzip.flush(zlib.Z_SYNC_FLUSH)
        if not data or self._plan.http10:
            return data
        return b"%x\r\n%b\r\n" % (len(data), data)

    def end(self) -> bytes:
        """What closes the body."""
        rest = b""
        if self._gzip is not None:
            data = self._gzip.flush()
            rest = data if self._plan.http10 else b"%x\r\n%b\r\n" % (len(data), data)
        return rest if self._plan.http10 else rest + b"0\r\n\r\n"

    def writes(self, data: bytes) -> Iterator[bytes]:
        """The pieces in which these bytes are written."""
        plan = self._plan
        cuts: list[int] = []
        if plan.split > 0:
            cuts = list(range(plan.split, len(data), plan.split))
        elif plan.split < 0 and len(data) > 1:
            cuts = sorted(self._rng.sample(range(1, len(data)), min(3, len(data) - 1)))
        elif plan.split_utf8:
            cuts = [i for i in range(1, len(data)) if data[i] & 0xC0 == 0x80]
        last = 0
        for cut in cuts:
            yield data[last:cut]
            last = cut
        yield data[last:]


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _reversed(v) for k, v in reversed(value.items())}
    return [_reversed(v) for v in value] if isinstance(value, list) else value
