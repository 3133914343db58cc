"""The arrivals of a run's blocks, the same for every engine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.workload.arrivals import Arrival, offsets
from loadgen.workload.prompts import PromptError
from loadgen.workload.traces import Trace, read_trace

if TYPE_CHECKING:
    from loadgen.config import Settings


class Schedule:
    """Of an open loop whose settings name a rate or a trace. Each block has arrivals of its own; those of a
    trace are the same in each, with other texts. Raises PromptError if there are none to be had."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        spec = settings.open_loop
        self.trace: Trace | None = None
        self.facts: dict[str, Any] = {}
        if spec.trace is not None:
            self.trace = read_trace(
                spec.trace,
                start_s=spec.trace_start_s,
                duration_s=None if spec.turn_s is None else spec.turn_s * spec.speed_up,
                requests=settings.turn_requests if spec.turn_s is None else None,
                speed_up=spec.speed_up,
                longest=spec.longest,
            )
            self.facts = _facts(spec.trace, self.trace)
            return
        empty = sum(not self.block(n) for n in range(settings.blocks))
        if empty:
            raise PromptError(
                f"{empty} of {settings.blocks} turns of {spec.turn_s:g} s at {spec.rate:g} requests a second "
                "would have no request at all: take a longer --turn-seconds"
            )

    def block(self, number: int) -> list[Arrival]:
        """In order of time."""
        if self.trace is not None:
            return list(self.trace.arrivals)
        spec = self._settings.open_loop
        assert spec.rate is not None
        try:
            due = offsets(
                spec.rate,
                self._settings.arrival,
                seed=f"{self._settings.seed}/arrivals/{number}",
                burstiness=spec.burstiness,
                seconds=spec.turn_s,
                requests=self._settings.turn_requests if spec.turn_s is None else None,
            )
        except ValueError as e:
            raise PromptError(str(e)) from None
        return [Arrival(at_s) for at_s in due]

    def seconds(self, number: int) -> float:
        """How long requests arrive in a block: the turn's length, or until the last of them."""
        if self._settings.open_loop.turn_s is not None:
            return self._settings.open_loop.turn_s
        return self.block(number)[-1].offset_s

    @property
    def longest(self) -> Arrival | None:
        """The request of a trace that needs the longest context."""
        if self.trace is None:
            return None
        return max(self.trace.arrivals, key=lambda a: (a.prompt_tokens or 0) + (a.output_tokens or 0))


def _facts(path: Path, trace: Trace) -> dict[str, Any]:
    """For the manifest: which trace, and what of it is replayed."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as e:
        raise PromptError(f"the trace {path} cannot be read: {e.strerror or e}") from None
    return {
        "trace": str(path),
        "trace_format": trace.format,
        "trace_sha256": digest,
        "trace_requests": len(trace.arrivals),
        "trace_seconds": trace.seconds,
        "trace_left_out_empty": trace.failed,
        "trace_left_out_long": trace.too_long,
    }
