"""Timeline: from pieces of a body with their arrival times to the times and counts of one request. Pure.

All times are nanoseconds since `sent`. A piece's `floor_ns` is None when its time is exact; else the piece
had waited in the kernel together with a later one whose time it bears, and it arrived somewhere in
(floor_ns, time]: such events are marked, counted, and their largest possible error is kept. No time is
made up.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from loadgen.engines.chunk import Chunk
from loadgen.engines.tally import UsageTally
from loadgen.stream import clock
from loadgen.stream.read import READ_AT, Read
from loadgen.stream.sse import Event, SSEDecoder
from loadgen.stream.template import TextTemplate, is_plain, learn

_MAX_TEXT = 16 * 1024 * 1024
_DONE = b"[DONE]"
_MAX_MISSES = 32  # dialects whose events differ in more than the text are not worth trying again


class PlainPath:
    """What a sweep needs to take events of the template on the spot, while their bytes are in the processor's
    cache: nothing is kept of them but their time. `path` is (heads, head of an unknown length, suffix, its
    length, where to append the time, sent_ns). `size` and `lag_ns` are added up by the sweep; `mark` is how
    many text events the timeline had when it last looked.
    """

    __slots__ = ("lag_ns", "mark", "path", "size")

    def __init__(self, template: TextTemplate, text_ns: array[int], sent_ns: int) -> None:
        suffix = template.chunk_suffix
        self.path = (
            template.chunk_heads(),
            template.chunk_head,
            suffix,
            len(suffix),
            text_ns.append,
            sent_ns,
        )
        self.mark = len(text_ns)
        self.size = 0
        self.lag_ns = 0


class Timeline:
    """Feed it a response body; read off what happened and when.

    Attributes (ns since sent, None if it never came): `first_event`, `first_text` (generated text of any
    kind: TTFT), `first_answer`, `last_text`. `text_ns` holds the arrival of every text-bearing event,
    `coalesced` the indices in it that are upper bounds, `errors_ns` how late each of those can be.
    """

    __slots__ = (
        "_decode",
        "_kept",
        "_match",
        "_misses",
        "_pending_tokens",
        "_so_far",
        "_sse",
        "_template",
        "_texts",
        "_tokens",
        "coalesced",
        "done",
        "error",
        "errors_ns",
        "events",
        "first_answer",
        "first_answer_error",
        "first_event",
        "first_event_error",
        "first_text",
        "first_text_error",
        "last_event",
        "last_text",
        "last_text_error",
        "malformed",
        "response_id",
        "tally",
        "text_ns",
    )

    def __init__(self, decode: Callable[[bytes], Chunk], keep_text: bool = False) -> None:
        self._decode = decode
        self._sse = SSEDecoder()
        self._template: TextTemplate | None = None
        self._match: Callable[[bytes], bytes | None] | None = None
        self._texts: list[bytes] | None = [] if keep_text else None
        self._kept = 0
        self._tokens: array[int] | None = array("q")  # None once a text event did not say
        self._pending_tokens = 0
        self._so_far: dict[int | None, int] = {}
        self._misses = 0
        self.tally = UsageTally()
        self.events = 0
        self.first_event: int | None = None
        self.first_event_error = 0
        self.first_text: int | None = None
        self.first_text_error = 0
        self.first_answer: int | None = None
        self.first_answer_error = 0
        self.last_event: int | None = None
        self.last_text: int | None = None
        self.last_text_error = 0
        self.text_ns = array("q")
        self.coalesced = array("q")
        self.errors_ns = array("q")
        self.done = False
        self.error: str | None = None
        self.malformed: str | None = None
        self.response_id: str | None = None

    def feed(self, data: bytes, at_ns: int, floor_ns: int | None = None, *, framed: bool = True) -> None:
        """One piece of the body. `framed`: it is one HTTP chunk, so events that end in it came together;
        without such framing, of several events in one read only the last one's time is exact, and
        `floor_ns` must be given even if nothing is known to have merged."""
        match = self._match
        if match is not None and framed and (text := match(data)) is not None and self._sse.at_boundary:
            self.events += 1
            self.last_event = at_ns
            if text:
                self._text_event(at_ns, floor_ns, text, self._template.reasoning)  # type: ignore[union-attr]
                self._tokens = None
            return
        try:
            events = self._sse.feed(data)
        except ValueError as e:
            self.malformed = self.malformed or str(e)
            return
        last = len(events) - 1
        chunk = None
        for i, event in enumerate(events):
            # Unframed: bytes of a next event in the same read came later than the end of this one.
            alone = not framed and i == last and self._sse.at_boundary
            chunk = self._event(event, at_ns, None if alone else floor_ns)
        if last == 0 and framed and chunk is not None:
            self._learn(data, events[0], chunk)

    def plain_path(self, sent_ns: int) -> PlainPath | None:
        """For the next reads, if the caller is at the start of a chunk; None if they must be parsed."""
        if self._template is None or self._texts is not None or not self._sse.at_boundary:
            return None
        return PlainPath(self._template, self.text_ns, sent_ns)

    def took(self, plain: PlainPath) -> None:
        """Take note of the events that have been taken by a plain path since the last time."""
        count = len(self.text_ns) - plain.mark
        if count:
            plain.mark += count
            self.events += count
            self.last_event = self.last_text = self.text_ns[-1]
            self.last_text_error = 0
            self._tokens = None

    def take_plain(self, reads: Sequence[Read], sent_ns: int) -> tuple[int, int, int]:
        """The fast path: take those reads at the front that are exactly one HTTP chunk with one event of
        the template. Returns how many, their bytes, and the longest that one had waited to be read, in ns.

        The caller knows that a chunk's size comes next. A read of one chunk has an exact time. The
        template was learned from a text event, so the first of everything has been seen.
        """
        template = self._template
        if template is None or not self._sse.at_boundary:
            return 0, 0, 0
        heads = template.chunk_heads()
        suffix = template.chunk_suffix
        tail = len(suffix)
        texts = self._texts
        empty: list[int] = []
        stamps, sweeps, pieces = zip(*reads, strict=True)
        count = total = 0
        for data in pieces:
            size = len(data)
            head = heads.get(size) or template.chunk_head(size)
            start = len(head)
            end = size - tail
            if not (data.startswith(head) and data.endswith(suffix) and is_plain(data, start, end)):
                break
            if start == end:
                empty.append(count)
            elif texts is not None:
                self._keep(data[start:end])
            count += 1
            total += size
        if not count:
            return 0, 0, 0
        times = clock.times_ns(stamps[:count])
        lag = int((np.array([sweep[READ_AT] for sweep in sweeps[:count]]) - times).max())
        times -= sent_ns
        self.events += count
        self.last_event = int(times[-1])
        if empty:
            times = np.delete(times, empty)
        if len(times):
            self.text_ns.frombytes(times.tobytes())
            self.last_text = self.text_ns[-1]
            self.last_text_error = 0
            self._tokens = None
        return count, total, lag

    def close(self, at_ns: int, *, complete: bool) -> None:
        """The body has ended; `complete` tells that it ended as HTTP framing says it should."""
        if complete:
            for event in self._sse.close():
                self._event(event, at_ns, None)

    @property
    def text(self) -> str:
        """The generated text, if it was kept."""
        return b"".join(self._texts or ()).decode("utf-8", "replace")

    @property
    def finished(self) -> bool:
        """The server said that it was through: [DONE], or a finish reason for every choice."""
        return self.done or self.tally.finished

    @property
    def pings(self) -> int:
        return self._sse.comments

    @property
    def event_tokens(self) -> list[int] | None:
        """Tokens of each text-bearing event, where the server told them for all, else None."""
        if self._tokens is None or len(self._tokens) != len(self.text_ns) or not self._tokens:
            return None
        return self._tokens.tolist()

    def _event(self, event: Event, at_ns: int, floor_ns: int | None) -> Chunk | None:
        self.events += 1
        self.last_event = at_ns
        error = 0 if floor_ns is None else max(0, at_ns - floor_ns)
        if self.first_event is None:
            self.first_event = at_ns
            self.first_event_error = error
        data = event.data
        if not data:
            return None
        if data.strip() == _DONE:
            self.done = True
            return None
        try:
            chunk = self._decode(data)
        except ValueError as e:
            self.malformed = self.malformed or f"{e} in event {self.events}: {data[:200]!r}"
            return None
        if chunk.error is None and event.type == b"error":
            chunk.error = data[:2000].decode("utf-8", "replace")
        if chunk.error is not None and self.error is None:
            self.error = chunk.error
        if self.response_id is None:
            self.response_id = chunk.response_id
        self.tally.add(chunk)
        has_text = chunk.has_text
        if self._tokens is not None:
            self._count_tokens(chunk, has_text)
        if has_text:
            text = (chunk.answer or chunk.reasoning or chunk.tool_text).encode("utf-8", "replace")
            self._text_event(at_ns, floor_ns, text, not (chunk.answer or chunk.tool_text))
        return chunk

    def _text_event(self, at_ns: int, floor_ns: int | None, text: bytes, reasoning: bool) -> None:
        error = 0
        if floor_ns is not None:
            error = max(0, at_ns - floor_ns)
            self.coalesced.append(len(self.text_ns))
            self.errors_ns.append(error)
        self.text_ns.append(at_ns)
        if self.first_text is None:
            self.first_text = at_ns
            self.first_text_error = error
        if self.first_answer is None and not reasoning:
            self.first_answer = at_ns
            self.first_answer_error = error
        self.last_text = at_ns
        self.last_text_error = error
        if self._texts is not None:
            self._keep(text)

    def _keep(self, text: bytes) -> None:
        if self._texts is not None and self._kept < _MAX_TEXT:
            self._kept += len(text)
            self._texts.append(text)

    def _count_tokens(self, chunk: Chunk, has_text: bool) -> None:
        """Tokens of an event without text (half a character) count with the next text event."""
        new = chunk.new_tokens
        if new is None and chunk.output_tokens_so_far is not None:
            new = chunk.output_tokens_so_far - self._so_far.get(chunk.choice, 0)
            self._so_far[chunk.choice] = chunk.output_tokens_so_far
        if new is None:
            if has_text:
                self._tokens = None
            return
        self._pending_tokens += new
        if has_text and self._tokens is not None:
            self._tokens.append(self._pending_tokens)
            self._pending_tokens = 0

    def _learn(self, segment: bytes, event: Event, chunk: Chunk) -> None:
        if self._misses >= _MAX_MISSES or event.type or not chunk.has_text or not self._sse.at_boundary:
            return
        if self._template is not None and self._template.same_prefix(segment):
            return
        found = learn(segment, event.data, chunk, self._decode)
        if found is not None:
            self._template = found
            self._match = found.match
            self._misses = 0
        else:
            self._misses += 1
