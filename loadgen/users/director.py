"""Director: the greenlet that runs the turns.

For each turn: (exclusive residency: the engine is started) -> warm-up, once for each start of an engine ->
measured turn -> drain -> cool-down. Only the turn is measured; everything else happens outside it.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import gc
import logging
import time
from collections.abc import Callable, Sequence

import gevent
from gevent.event import Event

from loadgen.engines import CacheCounters, EngineError, preflight
from loadgen.record import MEASURE
from loadgen.users.crew import Batch, Crew, Plan
from loadgen.users.lane import Lane
from loadgen.users.residency import Residency
from loadgen.users.run import Run
from loadgen.users.shaping import Conductor, Steering
from loadgen.users.supply import PromptSupply
from loadgen.users.telemetry import Telemetry
from loadgen.users.warmup import WarmUp
from loadgen.workload.arrivals import start_offsets
from loadgen.workload.courses import Course, course_of
from loadgen.workload.prompts import PromptError
from loadgen.workload.shapes import HAND
from loadgen.workload.turns import Turn, turn_order

log = logging.getLogger("loadgen")

COOL_POLL_S = 1.0


class Director:
    """Runs all turns of one run, then calls `end`. `failure` is the sentence of a run that could not go on.

    `users_in` is set when Locust has spawned all users, `user_count` is how many it has now and `asked_users`
    how many it shall have; `want_users` asks Locust for another number of them. Where the number varies, a
    new `course` leads each turn, and `live_events` says how much has been read of an engine.
    """

    def __init__(
        self,
        run: Run,
        crew: Crew,
        supply: PromptSupply,
        residency: Residency | None,
        *,
        users_in: Event,
        user_count: Callable[[], int],
        want_users: Callable[[int], None],
        end: Callable[[], None],
        telemetry: Telemetry | None = None,
        asked_users: Callable[[], int] = lambda: 0,
        live_events: Callable[[str], int] = lambda engine: 0,
        course: Callable[[], Course] | None = None,
    ) -> None:
        self.run = run
        self.crew = crew
        self.supply = supply
        self.residency = residency
        self.failure: str | None = None
        self.finished = False
        self.stage = "starting"
        self.stage_start = time.monotonic()
        self.active: list[tuple[Turn, Batch]] = []
        self.turn_seconds: dict[str, list[float]] = {}
        names = [lane.name for lane in run.lanes]
        self._lanes = {lane.name: lane for lane in run.lanes}
        turns = turn_order(names, run.settings.blocks)
        if run.settings.residency == "parallel":
            self.rounds = [[t for t in turns if t.block == b] for b in range(run.settings.blocks)]
        else:
            self.rounds = [[t] for t in turns]
        self.rounds_done = 0
        self._users_in = users_in
        self._user_count = user_count
        self._want_users = want_users
        self._end = end
        self._telemetry = telemetry
        self._asked_users = asked_users
        self._live_events = live_events
        self.shape = run.settings.course
        self._course = course
        if course is None and self.shape is not None:
            self._course = lambda: course_of(self.shape)
        self._steering = Steering(want_users, lambda: len(crew.users))
        self._conductor: Conductor | None = None
        self._greenlet: gevent.Greenlet | None = None

    def start(self) -> None:
        self._greenlet = gevent.spawn(self._main)

    def stop(self) -> None:
        """The test is being stopped: no new requests. Those in flight may finish (see `close`). By hand that
        is how a run ends, and they belong to it."""
        self._steering.stop()
        if self.by_hand and self.active:
            self.finished = True
            for _, batch in self.active:
                self.crew.seal(batch)
            if self._conductor is not None:
                self._conductor.over()
        else:
            self.crew.halt()
        if self._greenlet is not None and self._greenlet is not gevent.getcurrent():
            self._greenlet.kill()

    def fail(self, sentence: str) -> None:
        """End the run for a reason that a person should know."""
        if self.failure is None:
            self.failure = sentence
            log.error("%s", sentence)
            self.crew.halt()
            self._end()

    def close(self) -> None:
        """All users have stopped: write the end of what was going on."""
        for turn, batch in self.active:
            self._turn_end(turn, batch)
            self._read_cache_counters(batch.lane, before=False)
        self.active = []
        if self.residency is not None:
            self.residency.stop()
        if not self.finished and self.failure is None:
            done = self.blocks_done
            self.run.note(
                f"stopped while {self.stage}, after {done} of {self.run.settings.blocks} complete blocks"
            )

    @property
    def blocks_done(self) -> int:
        return sum(1 for turn_list in self.rounds[: self.rounds_done] for _ in turn_list) // len(self._lanes)

    @property
    def by_hand(self) -> bool:
        return self.shape is not None and self.shape.kind == HAND

    @property
    def block(self) -> int:
        """The block that is being worked at, from 0."""
        return self.rounds[min(self.rounds_done, len(self.rounds) - 1)][0].block

    # --- the course of a run -----------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._conduct()
        except (EngineError, PromptError) as e:
            self.fail(str(e))
        except Exception:
            log.exception("the run cannot go on, for a reason that is a mistake of loadgen's own")
            self.fail("the run was ended by an internal error, see the log")
        else:
            self._enter("finished")
            self.finished = True
            self._end()

    def _conduct(self) -> None:
        settings = self.run.settings
        self._enter("waiting for users")
        self._gather()
        if (
            settings.residency == "parallel"
            and len(self._lanes) > 1
            and self.shape is None
            and not settings.open
        ):
            # Each engine has the asked number of users to itself.
            self._users_in.clear()
            self._want_users(settings.users * len(self._lanes))
            self._gather()
        if self.residency is None:
            self._make_prompts()
        if self._telemetry is not None:
            self._telemetry.begin()
        for number, turns in enumerate(self.rounds):
            if number:
                self._cool_down()
            if self.shape is not None and not self.by_hand:
                self._enter("gathering users")
                self._steering.gather(self.shape.first * len(turns))
            self.crew.settle()
            lanes = [self._lanes[t.engine] for t in turns]
            if self.residency is not None:
                self._make_resident(lanes[0])
            cold = [(t, lane) for t, lane in zip(turns, lanes, strict=True) if not lane.warm]
            if cold and settings.warmup_requests:
                self._warm_up(cold)
            self._measure(turns, lanes)
            self.rounds_done = number + 1

    def _gather(self) -> None:
        """Until all users are in: spawned by Locust, and started, so that they have joined the crew."""
        self._users_in.wait()
        while len(self.crew) < self._user_count():
            gevent.sleep(0.01)

    def _enter(self, stage: str) -> None:
        self.stage = stage
        self.stage_start = time.monotonic()

    def _make_prompts(self) -> None:
        self._enter("making prompts")
        self.supply.make_blocks(self._made)
        for lane in self.run.lanes:
            if self.residency is None or self.residency.resident(lane.engine):
                self.supply.look_at(lane)
        self._tell_prompts()

    def _made(self, done: int, of: int) -> None:
        self.stage = f"making prompts, {done}/{of}"

    def _tell_prompts(self) -> None:
        if self.supply.caveat:
            self.run.note(self.supply.caveat)
        self.run.manifest.extra["prompts"] = self.supply.facts
        self.run.update_manifest()

    def _make_resident(self, lane: Lane) -> None:
        assert self.residency is not None
        self._enter(f"starting {lane.name}")
        if not self.residency.switch_to(lane.engine):
            return
        lane.warm = False
        first_time = lane.info is None
        lane.info = preflight.check(lane.engine, self.run.settings)
        if first_time:
            self.supply.check_trace(lane)
            self.supply.check_fit(lane)
        if self.rounds_done == 0:
            self.supply.choose([lane])
            self._make_prompts()
        elif first_time:
            self.supply.look_at(lane)
            self._tell_prompts()

    def _cool_down(self) -> None:
        seconds = self.run.settings.cooldown_s
        if seconds:
            self._enter("cooling down")
            self.run.events.append("cooldown_start", seconds=seconds)
            gevent.sleep(seconds)
            self._wait_until_cool(seconds)

    def _wait_until_cool(self, waited_s: float) -> None:
        """Go on waiting, as long as is allowed, while a GPU is hotter than it was at the start: the next
        engine would have less of its clock."""
        settings, deadline = self.run.settings, time.monotonic() - waited_s
        deadline += settings.cooldown_max_s
        while self._telemetry is not None:
            rise = self._telemetry.degrees_above_start()
            if rise is None or rise <= settings.cooldown_degrees:
                return
            if time.monotonic() >= deadline:
                self.run.note(
                    f"a GPU was still {rise:.0f} C above its temperature at the start after a cool-down of "
                    f"{settings.cooldown_max_s:g} s: later turns begin hotter than the first"
                )
                return
            self.stage = f"cooling down, {rise:.0f} C above the start"
            gevent.sleep(COOL_POLL_S)

    def _warm_up(self, cold: Sequence[tuple[Turn, Lane]]) -> None:
        self._enter("warming up " + ", ".join(lane.name for _, lane in cold))
        ways = [WarmUp(self.run, self.supply, self._work, t, lane, self._members(t)) for t, lane in cold]
        greenlets = [gevent.spawn(way.go) for way in ways]
        try:
            gevent.joinall(greenlets, raise_error=True)
        finally:
            gevent.killall(greenlets)

    # --- the measured turn -------------------------------------------------------------------------------

    def _measure(self, turns: Sequence[Turn], lanes: Sequence[Lane]) -> None:
        settings = self.run.settings
        self._enter("measuring " + ", ".join(lane.name for lane in lanes))
        plan = []
        for turn, lane in zip(turns, lanes, strict=True):
            batch = self._batch(turn, lane)
            users = self._members(turn)
            fixed = self.shape is None and not settings.open
            if fixed and len(users) != settings.users:  # somebody changed them in the web UI
                self.run.note(
                    f"turn {turn.index} ({turn.engine}) was measured with {len(users)} users, not "
                    f"{settings.users}: its figures do not compare with those of other turns"
                )
            offsets = [0.0] * len(users)
            if not settings.open:
                offsets = start_offsets(len(users), settings.arrival, lane.request_s)
            plan.append((batch, users, offsets))
            self._read_cache_counters(lane, before=True)
        # A collection now, and none of old objects later: with everything that exists so far set aside, a
        # collection during the turn only looks at what the turn itself has made and lasts microseconds.
        gc.collect()
        gc.freeze()
        self.crew.prepare(plan)
        for turn, (batch, users, _) in zip(turns, plan, strict=True):
            self.active.append((turn, batch))
            load = self.supply.load(turn.block) if settings.open else {"users": len(users)}
            self.run.events.append(
                "turn_start", engine=turn.engine, turn=turn.index, block=turn.block, **load
            )
        began = time.monotonic()
        self._work(plan)
        for turn, batch in self.active:
            self._turn_end(turn, batch)
            self.turn_seconds.setdefault(turn.engine, []).append(time.monotonic() - began)
        self.active = []
        for lane in lanes:
            self._read_cache_counters(lane, before=False)

    def _batch(self, turn: Turn, lane: Lane) -> Batch:
        """What is sent in this turn."""
        output_tokens = self.run.settings.output_tokens
        if self.shape is not None:
            batch = Batch(lane, MEASURE, turn.index, turn.block, self.supply.endless(turn.block))
            batch.output_tokens_each = output_tokens
            return batch
        batch = Batch(lane, MEASURE, turn.index, turn.block)
        batch.limit = self.run.settings.open_loop.max_in_flight
        prompts = self.supply.block(turn.block)
        for prompt, due_s in zip(prompts, self.supply.due_s(turn.block), strict=True):
            batch.add(prompt, output_tokens, due_s)
        return batch

    def _lead(self) -> None:
        """The turns that go on, through their shape; they are closed when it is over."""
        assert self._course is not None
        steering = None if self.by_hand else self._steering
        self._conductor = Conductor(
            self.run, self.active, self._course(), steering, self._asked_users, self._live_events
        )
        self._conductor.go()
        for _, batch in self.active:
            self.crew.seal(batch)

    def _work(self, plan: Plan) -> None:
        for batch, users, offsets in plan:
            self.crew.begin(batch, users, offsets)
        if any(batch.open for batch, _, _ in plan):
            self.crew.share_out()
            self._lead()
        for batch, _, _ in plan:
            batch.done.wait()
            self.crew.end(batch)

    def _turn_end(self, turn: Turn, batch: Batch) -> None:
        if batch.skipped:
            self.run.note(
                f"turn {turn.index} ({turn.engine}): {batch.skipped} further questions of conversations were "
                "not asked, since there was no answer to go on from"
            )
        t_ns, mono_ns = time.time_ns(), time.monotonic_ns()
        ended = batch.last_end_ns or t_ns
        kept = {}
        if batch.scheduled:
            kept = {"dropped": batch.dropped, "late": batch.late, "peak_in_flight": batch.peak}
        self.run.events.append(
            "turn_end",
            engine=turn.engine,
            turn=turn.index,
            block=turn.block,
            complete=batch.complete,
            **kept,
            t_ns=ended,
            mono_ns=mono_ns - (t_ns - ended),
        )

    def _members(self, turn: Turn) -> list[object]:
        """The users that serve this turn: all, or one engine's share where engines run in parallel."""
        users = list(self.crew.users)
        if self.run.settings.residency != "parallel" or self.run.settings.open:
            return users
        return users[list(self._lanes).index(turn.engine) :: len(self._lanes)]

    def _read_cache_counters(self, lane: Lane, *, before: bool) -> None:
        tally = lane.cache
        if not tally.counters:
            return
        try:
            now = self._cache_counters(lane)
        except EngineError as e:
            log.warning("%s", e)
            now = None
        if now is None:
            tally.counters = False
            tally.hit = None
        elif before:
            tally.before = now
        elif tally.before is not None:
            tally.hit = (tally.hit or 0) + now.since(tally.before).hit

    def _cache_counters(self, lane: Lane) -> CacheCounters | None:
        """Through whoever scrapes the engine already: a second scraper would disturb its gauges."""
        telemetry = self._telemetry
        if telemetry is None or not telemetry.scrapes or lane.engine.spec.replicas:
            return lane.engine.cache_counters()
        text = telemetry.scrape(lane.name)
        return None if text is None else lane.engine.cache_counters(text)
