"""How a simulated engine spends its time: prefill, decode, continuous batching, KV memory. Pure.

An engine works in steps. At the start of a step it takes one token of every sequence that decodes, and as
much of waiting prompts as `batch_tokens` and memory allow; all of them get their token at the step's end.
A step that decodes B sequences holding K tokens of KV and prefills P prompt tokens takes

    step_s + step_seq_s * max(0, B - 1) + step_kv_s * K + (prefill_base_s if P) + P / prefill_tok_s

(weights are read once a step whatever the batch, the KV of each sequence as well; prefill is bound by
arithmetic). A request may be scheduled `overhead_s` after it came (HTTP, template, tokenizing). What comes
while a step runs waits for its end, and a client that leaves is noticed there.

Times are seconds on any axis the caller likes; `submit` and `advance` must not go backwards.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from loadgen.sim.kvcache import BlockCache, Holding, KVMemory, SlotCache

SLOT = "slot"  # the request begins to be worked on (llama-server sends its response head here)
PROGRESS = "progress"  # one step's part of the prompt is done
TOKEN = "token"
FAIL = "fail"  # the shared KV memory is full (llama.cpp: every running request fails)


@dataclass(frozen=True)
class Constants:
    """What an engine on some machine is like. Seconds and tokens; see the module's formula."""

    kind: str = "vllm"
    step_s: float = 0.02
    step_seq_s: float = 0.0
    step_kv_s: float = 0.0
    prefill_base_s: float = 0.0
    prefill_tok_s: float = 2000.0
    overhead_s: float = 0.0
    slots: int = 256
    batch_tokens: int = 2048
    context: int = 8192
    kv_tokens: int = 65536
    block: int = 16
    prefix_cache: bool = True

    def at_speed(self, speed: float) -> Constants:
        """The same engine `speed` times faster."""
        return replace(
            self,
            step_s=self.step_s / speed,
            step_seq_s=self.step_seq_s / speed,
            step_kv_s=self.step_kv_s / speed,
            prefill_base_s=self.prefill_base_s / speed,
            prefill_tok_s=self.prefill_tok_s * speed,
            overhead_s=self.overhead_s / speed,
        )


@dataclass(slots=True, eq=False)
class Job:
    """One sequence: its prompt and the tokens it will answer (known beforehand), and what became of it.

    `follows` is the first sequence of the same request (n > 1): it is prefilled once for all of them where
    the engine does so (llama.cpp).
    """

    prompt: tuple[int, ...]
    output: tuple[int, ...]
    reuse: bool = True
    follows: Job | None = None
    arrived: float = 0.0
    started: float | None = None  # first step that works on it began
    first: float | None = None  # times of the first and the latest token
    last: float | None = None
    cached: int = 0
    sent: int = 0
    preemptions: int = 0
    done: bool = False
    cancelled: bool = False
    todo: int = 0  # prompt tokens still to compute
    held: Holding | None = None

    @property
    def length(self) -> int:
        return len(self.prompt) + self.sent

    def tokens(self) -> tuple[int, ...]:
        return self.prompt + self.output[: self.sent]


@dataclass(frozen=True, slots=True)
class Event:
    """Something is due at `t`: `index` counts tokens from 0; for PROGRESS it is the prompt tokens done."""

    t: float
    kind: str
    job: Job
    index: int = 0


@dataclass
class Stats:
    """Counters since the start, for /metrics. `ended_tokens` and `ended_s` are of sequences that have ended:
    their tokens, and the time from the first to the last of each."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    queried_tokens: int = 0
    prompt_s: float = 0.0
    output_tokens: int = 0
    ended_tokens: int = 0
    ended_s: float = 0.0
    steps: int = 0
    busy: int = 0
    longest: int = 0
    preemptions: int = 0


@dataclass(slots=True)
class _Step:
    end: float
    decode: list[Job]
    prefill: list[tuple[Job, int]]


@dataclass
class Scheduler:
    """Continuous batching on one engine."""

    constants: Constants
    running: list[Job] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)

    def __post_init__(self) -> None:
        c = self.constants
        self.memory: KVMemory = (
            SlotCache(c.kv_tokens, c.slots) if c.kind == "llamacpp" else BlockCache(c.kv_tokens, c.block)
        )
        self._pending: list[tuple[float, int, Job]] = []
        self._step: _Step | None = None
        self._number = 0

    def submit(self, job: Job, t: float) -> None:
        """A request came at `t`. Its prompt and output must fit the context and the memory."""
        job.arrived = t
        self._number += 1
        heapq.heappush(self._pending, (t + self.constants.overhead_s, self._number, job))

    def cancel(self, job: Job) -> None:
        """The client went away: nothing more is due for it, its memory is free at the step's end."""
        job.cancelled = True

    def next_due(self) -> float | None:
        """When `advance` has something to do next; None when the engine is idle."""
        if self._step is not None:
            return self._step.end
        return self._pending[0][0] if self._pending else None

    def advance(self, now: float) -> list[Event]:
        """Everything due up to and including `now`, in order."""
        events: list[Event] = []
        while True:
            if self._step is not None:
                if self._step.end > now:
                    return events
                t = self._step.end
                self._finish(self._step, events)
                self._step = None
            elif self._pending and self._pending[0][0] <= now:
                t = self._pending[0][0]
            else:
                return events
            self._start(t, events)

    # A step begins.

    def _start(self, t: float, events: list[Event]) -> None:
        while self._pending and self._pending[0][0] <= t:
            self.waiting.append(heapq.heappop(self._pending)[2])
        self._drop_cancelled()
        before = self.stats.preemptions
        if not self._make_room(t, events):
            return self._start(t, events)
        full = self.stats.preemptions > before
        budget = self.constants.batch_tokens
        decode = [j for j in self.running if not j.todo]
        budget -= len(decode)
        prefill: list[tuple[Job, int]] = []
        for job in self.running:
            if job.todo:
                budget -= self._chunk(job, budget, prefill)
        while self.waiting and budget > 0 and not full and self._admit(self.waiting[0], t, events):
            job = self.waiting.pop(0)
            self.running.append(job)
            budget -= self._chunk(job, budget, prefill)
        if not decode and not prefill:
            return
        for job, _ in prefill:
            if job.started is None:
                job.started = t
        c = self.constants
        took = (
            c.step_s
            + c.step_seq_s * max(0, len(decode) - 1)
            + c.step_kv_s * sum(j.length for j in decode)
            + (c.prefill_base_s if prefill else 0.0)
            + sum(n for _, n in prefill) / c.prefill_tok_s
        )
        self._step = _Step(t + took, decode, prefill)
        self.stats.steps += 1
        self.stats.busy += len(self.running)
        if prefill:
            self.stats.prompt_s += took

    def _chunk(self, job: Job, budget: int, prefill: list[tuple[Job, int]]) -> int:
        leader = job.follows
        if self.constants.kind == "llamacpp" and leader is not None and leader.todo and not leader.done:
            part = next((n for j, n in prefill if j is leader), 0)
            if part < leader.todo:
                return 0  # waits for the prompt that its leader computes for both
        n = min(job.todo, max(0, budget))
        if n:
            prefill.append((job, n))
        return n

    def _admit(self, job: Job, t: float, events: list[Event]) -> bool:
        c = self.constants
        if len(self.running) >= c.slots:
            return False
        held = self.memory.admit(job.tokens(), reuse=job.reuse and c.prefix_cache)
        if held is None:
            return False
        if c.kind == "llamacpp" and job.follows is not None:
            held.cached = len(job.prompt) - 1
        job.held = held
        job.todo = job.length - held.cached
        if not job.preemptions:
            job.cached = held.cached
            self.stats.queried_tokens += len(job.prompt)
            self.stats.cached_tokens += held.cached
            events.append(Event(t, SLOT, job))
        return True

    def _drop_cancelled(self) -> None:
        for job in self.running:
            if job.cancelled:
                self._end(job)
        self.running = [j for j in self.running if not j.done]
        self.waiting = [j for j in self.waiting if not j.cancelled]

    def _make_room(self, t: float, events: list[Event]) -> bool:
        """Memory for every decoding sequence's next token. False: memory was full and all have failed."""
        i = 0
        while i < len(self.running):
            job = self.running[i]
            assert job.held is not None
            if job.todo or self.memory.grow(job.held, job.length + 1):
                i += 1
                continue
            if not self.memory.preempts:
                for failed in self.running:
                    events.append(Event(t, FAIL, failed))
                    self._end(failed)
                self.running = []
                return False
            victim = self.running.pop()
            assert victim.held is not None
            self.memory.release(victim.held, victim.tokens())
            victim.held = None
            victim.preemptions += 1
            self.stats.preemptions += 1
            self.waiting.insert(0, victim)
        return True

    # A step ends.

    def _finish(self, step: _Step, events: list[Event]) -> None:
        for job, n in step.prefill:
            job.todo -= n
            self.stats.prompt_tokens += n
            if job.cancelled:
                continue
            events.append(Event(step.end, PROGRESS, job, len(job.prompt) - job.todo))
            if not job.todo:
                assert job.held is not None
                self.memory.publish(job.held, job.prompt)
                self._token(job, step.end, events)
        for job in step.decode:
            if not job.cancelled:
                self._token(job, step.end, events)
        self.running = [j for j in self.running if not j.done]

    def _token(self, job: Job, t: float, events: list[Event]) -> None:
        if job.first is None:
            job.first = t
        job.last = t
        if job.output:
            events.append(Event(t, TOKEN, job, job.sent))
            job.sent += 1
            self.stats.output_tokens += 1
        self.stats.longest = max(self.stats.longest, job.length)
        if job.sent >= len(job.output):
            self._end(job)

    def _end(self, job: Job) -> None:
        job.done = True
        if job.first is not None and job.last is not None:
            self.stats.ended_tokens += job.sent
            self.stats.ended_s += job.last - job.first
        if job.held is not None:
            self.memory.release(job.held, job.tokens())
            job.held = None
