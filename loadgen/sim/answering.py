"""One completion on its way: what the model says is due becomes bytes for the client."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from loadgen.sim.faults import Plan
from loadgen.sim.framing import Framer, change_head
from loadgen.sim.metrics import Counters
from loadgen.sim.model import FAIL, PROGRESS, SLOT, TOKEN, Event, Job
from loadgen.sim.output import Output
from loadgen.sim.truthlog import Truth
from loadgen.sim.wire import Answer, Choice, Dialect, Payloads

_DELAY_EVERY = 8


@dataclass(eq=False)
class Answering:
    """Sends one answer.

    `ended(keep)` is called once, when the last byte is written: keep says whether the connection lives on,
    None that it is out of our hands (reset, stalled, or closed by the client). `cancel(job)` is called for
    sequences that nobody waits for any more. `ping_s`: a comment after so many seconds of silence.
    """

    dialect: Dialect
    answer: Answer
    plan: Plan
    output: Output
    truth: Truth
    counters: Counters
    close: bool
    ended: Callable[[bool | None], None]
    cancel: Callable[[Job], None]
    rng: random.Random = field(default_factory=random.Random)
    ping_s: float = 0.0
    over: bool = False  # nothing more will be made
    _events: int = 0
    _tokens: int = 0
    _held: bytes = b""
    _held_events: int = 0
    _held_times: list[Callable[[int], None]] = field(default_factory=list)
    _buffers: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._framer = Framer(self.plan, self.rng)
        self._by_job = {c.job: c for c in self.answer.choices}
        self._last_due: dict[int, float] = {}
        self._head_sent = False
        self._has_ended = False
        self._last_write = 0

    def begin(self) -> None:
        """The request was read. vLLM sends its head now; an empty prompt is answered at once."""
        stream = self.answer.request.stream
        if stream and self.dialect.head_at_once:
            self._send_head()
        if not any(c.job.output for c in self.answer.choices):
            self._complete()

    def on_event(self, event: Event) -> None:
        """What the scheduler says is due now."""
        if self.over:
            return
        choice = self._by_job[event.job]
        if event.kind == TOKEN:
            self._on_token(choice, event)
        elif event.kind == FAIL:
            self._fail("", 500, "failed")
        elif self.answer.request.stream:
            if event.kind == SLOT:
                self._send_head()
                self._send(self.dialect.on_slot(self.answer, choice))
            elif event.kind == PROGRESS and event.job.started is not None:
                ms = (event.t - event.job.started) * 1000
                self._send(self.dialect.on_progress(self.answer, choice, event.index, ms))

    def client_gone(self) -> None:
        """The connection was lost."""
        self.output.stop()
        if not self._has_ended:
            self.over = False  # what was made was not all sent
            self._over("client_gone")
            self._end(None)

    def _on_token(self, c: Choice, event: Event) -> None:
        job = event.job
        if c.index in self._last_due:
            self.counters.gap(event.t - self._last_due[c.index])
        self._last_due[c.index] = event.t
        buffer = self._buffers.setdefault(c.index, [])
        buffer.append(job.output[event.index])
        last = event.index == len(job.output) - 1
        if last:
            self.counters.finish(job, c.finish_reason)
        if not self.answer.request.stream:
            self.truth.mono_ns.append(int(event.t * 1e9))
            c.sent += 1
            buffer.clear()
        elif len(buffer) >= self.plan.tokens_per_event or last:
            self._send_tokens(c, buffer[:])
            buffer.clear()
        if self.over:
            return
        if all(other.finished for other in self.answer.choices):
            self._complete()

    def _send_tokens(self, c: Choice, tokens: list[int]) -> None:
        n = len(tokens)
        before, chunk, after = self.dialect.on_tokens(self.answer, c, tokens)
        times = self.truth.mono_ns
        if self.plan.plain:
            for payloads in before:
                self.output.write(self._framer.chunk(payloads))
            data = self._framer.chunk(chunk) if chunk else b""
            self._last_write = now = time.monotonic_ns()
            times.extend([now] * n)
            self.output.write(data)
            for payloads in after:
                self.output.write(self._framer.chunk(payloads))
        else:
            self._send(before)
            self._send([chunk or []], lambda t: times.extend([t] * n))
            self._send(after)
        self._tokens += n
        self._break_off()

    def _break_off(self) -> None:
        """The faults that end an answer after some tokens."""
        p = self.plan
        if p.error_after is not None and self._tokens >= p.error_after:
            self._fail("simulated failure in mid-stream", 500, "fault")
            return
        how: Callable[[], None]
        if p.reset_after is not None and self._tokens >= p.reset_after:
            how = self._reset
        elif p.close_after is not None and self._tokens >= p.close_after:
            how = partial(self._end, False)
        elif p.stall_after is not None and self._tokens >= p.stall_after:
            how = partial(self._end, None)  # and the connection stays as it is, for ever
        else:
            return
        self._flush_held()
        self._over("fault")
        self.output.finish(how)

    def _reset(self) -> None:
        self._end(None)
        self.output.reset()

    def _send_head(self) -> None:
        if self._head_sent:
            return
        self._head_sent = True
        p = self.plan
        head = self.dialect.head(200, stream=True, close=self.close)
        if p.plain:
            self.truth.head(time.monotonic_ns())
            self.output.write(head)
            if self.ping_s:
                self._last_write = time.monotonic_ns()
                asyncio.get_running_loop().call_later(self.ping_s, self._ping)
            return
        head = change_head(head, p)
        step, delay = (1, p.head_byte_s) if p.head_byte_s else (-(-len(head) // max(1, p.head_pieces)), 0.005)
        for i in range(0, len(head), step):
            last = i + step >= len(head)
            self.output.write(head[i : i + step], self.truth.head if last else None, delay if i else 0.0)

    def _ping(self) -> None:
        if self.over:
            return
        quiet = (time.monotonic_ns() - self._last_write) / 1e9
        if quiet >= self.ping_s - 0.001:
            self._last_write = time.monotonic_ns()
            self.output.write(self._framer.frame(b":\n\n"))
            quiet = 0.0
        asyncio.get_running_loop().call_later(self.ping_s - quiet, self._ping)

    def _send(self, chunks: list[Payloads], written: Callable[[int], None] | None = None) -> None:
        """Chunks of events with the plan's faults; `written` belongs to the last of them."""
        p = self.plan
        for i, payloads in enumerate(chunks):
            data = self._framer.chunk(payloads)
            mine = written if i == len(chunks) - 1 else None
            if p.coalesce > 1:
                self._held += data
                self._held_events += len(payloads)
                if mine is not None:
                    self._held_times.append(mine)
                if self._held_events >= p.coalesce:
                    self._flush_held()
                continue
            self._events += len(payloads)
            late = p.delay_s if p.delay_s and self._events % _DELAY_EVERY == 0 else 0.0
            pieces = list(self._framer.writes(data))
            for j, piece in enumerate(pieces):
                delay = late if j == 0 else 0.001
                self.output.write(piece, mine if j == len(pieces) - 1 else None, delay)

    def _flush_held(self) -> None:
        times, self._held_times = self._held_times, []
        data, self._held, self._held_events = self._held, b"", 0

        def written(t: int) -> None:
            for f in times:
                f(t)

        if data or times:
            self.output.write(data, written)

    def _fail(self, message: str, status: int, outcome: str) -> None:
        """An error, inside the stream if that has begun."""
        for c in self.answer.choices:
            if not c.job.done or outcome == "failed":
                self.counters.finish(c.job, "error")
        if self.answer.request.stream:
            self._send_head()
            self._send(self.dialect.on_failure(message, status))
            self._close_body(outcome)
        else:
            body = self.dialect.on_failure(message, status)[0][0]
            self.truth.status = status
            self._write_whole(status, body, outcome)

    def _complete(self) -> None:
        a = self.answer
        if a.request.stream:
            self._send_head()
            end = self.dialect.on_end(a)
            if self.plan.plain:
                for payloads in end:
                    self.output.write(self._framer.chunk(payloads))
            else:
                self._send(end)
            self._close_body("completed")
        else:
            self._write_whole(200, self.dialect.whole(a), "completed")

    def _write_whole(self, status: int, body: bytes, outcome: str) -> None:
        close = self.close or (status >= 400 and self.dialect.kind == "llamacpp")
        self.truth.status = status
        head = self.dialect.head(status, stream=False, close=close, length=len(body))
        if self.plan.gzip or self.plan.content_type or self.plan.close:
            head = change_head(head, self.plan)
            close = close or self.plan.close
        self._over(outcome)
        self.output.write(head + body, self.truth.head)
        self.output.finish(partial(self._end, not close))

    def _close_body(self, outcome: str) -> None:
        self._flush_held()
        end = self._framer.end()
        if self.dialect.kind == "llamacpp" and self.plan.plain:
            self.output.write(end[:-2])  # llama-server writes the last line by itself
            end = end[-2:]
        self.output.write(end)
        keep = self.dialect.keeps_connection and not (self.close or self.plan.close or self.plan.http10)
        self._over(outcome)
        self.output.finish(partial(self._end, keep))

    def _end(self, keep: bool | None) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.ended(keep)

    def _over(self, outcome: str) -> None:
        if self.over:
            return
        self.over = True
        self.truth.outcome = outcome
        self.truth.cached_tokens = self.answer.choices[0].job.cached
        for c in self.answer.choices:
            if not c.job.done:
                if outcome == "client_gone":
                    self.counters.finish(c.job, "abort")
                self.cancel(c.job)
