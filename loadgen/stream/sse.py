"""Server-sent events, to the WHATWG rules (html.spec.whatwg.org, "9.2.6 Interpreting an event stream").

Works on bytes: all line ends are ASCII, so a UTF-8 sequence split between two reads needs no care, and
U+2028 or U+0085 inside JSON can not be taken for a line end.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One dispatched event: its type (empty when not given, which means "message") and data."""

    type: bytes
    data: bytes


class EventTooLarge(ValueError):
    """A line or event grew past the limit."""


class SSEDecoder:
    """Incremental decoder: `feed` any split of the stream, get the same events.

    A line ends at CR, LF or CRLF. An event is dispatched at the end of the blank line after it, at its CR
    already when CRLF is split. `comments` counts comment lines (servers' pings).
    """

    __slots__ = ("_at_start", "_data", "_limit", "_size", "_skip_lf", "_tail", "_type", "comments")

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self._tail = bytearray()  # an unfinished line
        self._data: list[bytes] = []
        self._type = b""
        self._size = 0
        self._skip_lf = False
        self._at_start = True
        self._limit = limit
        self.comments = 0

    @property
    def at_boundary(self) -> bool:
        """True between two events: nothing is held back, the next byte starts a line."""
        return not (self._tail or self._data or self._skip_lf or self._at_start or self._type)

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes, in order. Raises EventTooLarge."""
        events: list[Event] = []
        if self._at_start:
            # A BOM may itself be split: wait until it is certain.
            self._tail += data
            head = bytes(self._tail)
            if len(head) < 3 and _BOM.startswith(head):
                return events
            self._at_start = False
            self._tail.clear()
            data = head[3:] if head.startswith(_BOM) else head
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == 0x0A:
                data = data[1:]
        if not data:
            return events
        lines = data.splitlines()  # of bytes: splits at LF, CR and CRLF only
        last_byte = data[-1]
        rest = b""
        if last_byte == 0x0D:
            self._skip_lf = True
        elif last_byte != 0x0A:
            rest = lines.pop()
        if lines and self._tail:
            lines[0] = bytes(self._tail) + lines[0]
            self._tail.clear()
        for line in lines:
            if line:
                self._line(line)
                continue
            if self._data:
                payload = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append(Event(self._type, payload))
                self._data = []
            self._type = b""
            self._size = 0
        if rest:
            self._tail += rest
            self._check(len(self._tail))
        return events

    def close(self) -> list[Event]:
        """The event that the end of the stream cut off its blank line, if there is one.

        The standard drops it. Here it is given to the caller, who knows whether the body ended as it
        should: some servers leave out the last blank line, and the last event is the one with the counts.
        """
        if self._tail:
            line = bytes(self._tail)
            self._tail.clear()
            self._line(line)
        if not self._data:
            return []
        event = Event(self._type, b"\n".join(self._data))
        self._data = []
        self._type = b""
        return [event]

    def _line(self, line: bytes) -> None:
        if line.startswith(b":"):
            self.comments += 1
            return
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._check(len(value))
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._type = value

    def _check(self, more: int) -> None:
        if self._size + more > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
