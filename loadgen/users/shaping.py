"""A turn whose number of users varies: asking Locust for them, and writing down how many there are."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import time
from collections.abc import Callable, Sequence

import gevent

from loadgen.store import events
from loadgen.users.crew import Batch
from loadgen.users.run import Run
from loadgen.workload.courses import Course, Seen
from loadgen.workload.turns import Turn

BEAT_S = 0.2
AGAIN_S = 2.0
GATHER_S = 30.0


class Steering:
    """Asks Locust for users, without waiting for them: a master waits until all of them are there, and may
    be asked for others meanwhile. `start` asks, `count` says how many there are."""

    def __init__(self, start: Callable[[int], None], count: Callable[[], int]) -> None:
        self._start = start
        self._count = count
        self._goal: int | None = None
        self._asked_s = 0.0
        self._greenlet: gevent.Greenlet | None = None

    def want(self, users: int) -> None:
        """May be called as often as one likes. Users whom somebody else has asked for, or who were lost on
        the way, are put right after a while."""
        now = time.monotonic()
        if users == self._goal and (self._count() == users or now - self._asked_s < AGAIN_S):
            return
        self._goal, self._asked_s = users, now
        if self._greenlet is None or self._greenlet.ready():
            self._greenlet = gevent.spawn(self._ask)

    def gather(self, users: int) -> None:
        """Ask, and wait until they are there, for a while."""
        deadline = time.monotonic() + GATHER_S
        self.want(users)
        while self._count() != users and time.monotonic() < deadline:
            gevent.sleep(BEAT_S / 10)
            self.want(users)

    def stop(self) -> None:
        if self._greenlet is not None and self._greenlet is not gevent.getcurrent():
            self._greenlet.kill()

    def _ask(self) -> None:
        done = None
        while done != self._goal:
            done = self._goal
            assert done is not None
            self._start(done)


class Conductor:
    """Leads one turn, or those that go on in parallel, through the course. `steering` is None by hand, when
    `asked` says how many users somebody wants."""

    def __init__(
        self,
        run: Run,
        turns: Sequence[tuple[Turn, Batch]],
        course: Course,
        steering: Steering | None,
        asked: Callable[[], int],
        live_events: Callable[[str], int],
    ) -> None:
        self._run = run
        self._turns = list(turns)
        self._course = course
        self._steering = steering
        self._asked = asked
        self._live = live_events
        self._title = ""
        self._said: dict[str, tuple[int, bool]] = {}

    def go(self) -> None:
        """Until the course is over."""
        began_s = time.monotonic()
        names = [turn.engine for turn, _ in self._turns]
        while True:
            users = min(len(batch.members) for _, batch in self._turns)
            seen = Seen(users, sum(map(self._live, names)), self._asked())
            goal = self._course.users(time.monotonic() - began_s, seen)
            if goal is None:
                break
            total = goal
            if self._steering is not None:
                total = goal * len(self._turns)
                self._steering.want(total)
            self._tell(goal, total)
            gevent.sleep(BEAT_S)
        self.over()

    def over(self) -> None:
        """What is still in flight belongs to no level."""
        for turn, _ in self._turns:
            self._users(turn, 0, False)

    def _tell(self, goal: int, total: int) -> None:
        if self._course.title != self._title:
            self._title = self._course.title
            for turn, _ in self._turns:
                self._event(events.LEVEL, turn, users=goal, title=self._title)
        settled = sum(len(batch.members) for _, batch in self._turns) == total
        for turn, batch in self._turns:
            self._users(turn, len(batch.members), settled)

    def _users(self, turn: Turn, users: int, settled: bool) -> None:
        if self._said.get(turn.engine) != (users, settled):
            self._said[turn.engine] = users, settled
            self._event(events.USERS, turn, users=users, settled=settled)

    def _event(self, kind: str, turn: Turn, **fields: object) -> None:
        self._run.events.append(kind, engine=turn.engine, turn=turn.index, block=turn.block, **fields)
