"""Warming up an engine, and when it is warm."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence

from loadgen.record import WARMUP
from loadgen.users.crew import Batch, Plan
from loadgen.users.lane import Lane
from loadgen.users.run import Run
from loadgen.users.supply import PromptSupply
from loadgen.workload.turns import Turn

TOLERANCE = 0.1


def is_steady(rounds: Sequence[Sequence[float]], tolerance: float = TOLERANCE) -> bool:
    """Whether TTFT has stopped falling: the median of the last round is at most `tolerance` below that of
    the one before it. `rounds` holds each warm-up round's TTFTs in ms.

    >>> is_steady([[900.0], [110.0]]), is_steady([[900.0], [110.0], [105.0]])
    (False, True)
    """
    with_text = [r for r in rounds if r]
    if len(with_text) < 2:
        return False
    before, last = statistics.median(with_text[-2]), statistics.median(with_text[-1])
    return last >= before * (1 - tolerance)


class WarmUp:
    """One engine's warm-up, in prompts of their own that no turn will use.

    A counted one is a single batch; a steady one goes round by round, to compare each with the last.
    `work` sends batches and returns when they are done.
    """

    def __init__(
        self,
        run: Run,
        supply: PromptSupply,
        work: Callable[[Plan], None],
        turn: Turn,
        lane: Lane,
        users: Sequence[object],
    ) -> None:
        self._run = run
        self._prompts = supply.warmups()
        self._work = work
        self._turn = turn
        self._lane = lane
        self._users = users

    def go(self) -> None:
        settings, lane, where = self._run.settings, self._lane, self._turn
        self._run.events.append("warmup_start", engine=lane.name, turn=where.index, block=where.block)
        if settings.warmup == "count":
            batches = [self._send(settings.warmup_requests)]
        else:
            batches = self._until_steady()
        failed = sum(b.failed for b in batches)
        if failed:
            self._run.note(f"engine {lane.name}: {failed} of its warm-up requests failed")
        if batches[-1].e2es_ms:
            lane.request_s = statistics.fmean(batches[-1].e2es_ms) / 1000
        lane.warm = True
        self._run.events.append("warmup_end", engine=lane.name, turn=where.index, block=where.block)

    def _until_steady(self) -> list[Batch]:
        settings = self._run.settings
        deadline = time.monotonic() + settings.warmup_max_s
        batches = [self._send(1)]
        while len(batches) < settings.warmup_requests or not is_steady([list(b.ttfts_ms) for b in batches]):
            if time.monotonic() > deadline:
                self._run.note(
                    f"engine {self._lane.name}: TTFT was not steady after "
                    f"{settings.warmup_max_s:g} s of warm-up"
                )
                break
            batches.append(self._send(1))
        return batches

    def _send(self, times: int) -> Batch:
        batch = Batch(self._lane, WARMUP, self._turn.index, self._turn.block)
        for prompt in itertools.islice(self._prompts, max(1, len(self._users)) * times):
            batch.add(prompt, self._run.settings.output_tokens)
        self._work([(batch, self._users, [0.0] * len(self._users))])
        return batch
