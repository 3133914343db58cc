"""Load shapes for Locust's class picker, and how Locust's own way with shapes is taken over.

Locust runs a LoadTestShape once, from the start of a test. Here it runs whole on each engine, and only while
that is measured: so whatever shape is picked, the director leads the turns through it, and Locust's greenlet
for shapes is told a number that never changes.

A locustfile may have LoadTestShape classes of its own; they run whole on each engine too.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust import LoadTestShape
from locust.exception import StopTest
from locust.runners import MasterRunner

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from loadgen.workload import shapes
from loadgen.workload.courses import Course, Seen

log = logging.getLogger("loadgen")

TICK_S = 1.0  # as often as Locust asks a shape


class PickedShape(LoadTestShape):
    """One of loadgen's shapes, as a class to be picked; its numbers are in the settings."""

    abstract = True
    use_common_options = True
    kind: ClassVar[str]

    def tick(self) -> tuple[int, float]:
        """How many users a test begins with is said elsewhere (Shapes)."""
        return 1, 100.0


class Steps(PickedShape):
    """1, 2, 4, ... users, up to the number of users that was asked for."""

    kind = shapes.STEPS


class Ramp(PickedShape):
    """From 1 user to the number that was asked for, evenly."""

    kind = shapes.RAMP


class Spike(PickedShape):
    """A few users, then all that were asked for at once, then a few again."""

    kind = shapes.SPIKE


class FindKnee(PickedShape):
    """More and more users until throughput stops rising, then the knee is searched."""

    kind = shapes.KNEE


class OwnShape(PickedShape):
    """Stands in for a shape class of a locustfile's own."""

    kind = shapes.OWN

    def __init__(self, inner: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.inner = inner


class OwnCourse:
    """Leads a turn through a locustfile's own shape, from its beginning."""

    def __init__(self, inner: Any, runner: Any) -> None:
        self._inner = inner
        self._inner.runner = runner
        self._asked_s: float | None = None
        self._users: int | None = 0
        self.title = ""

    def users(self, t_s: float, seen: Seen) -> int | None:
        if self._asked_s is None:
            self._inner.reset_time()
        if self._asked_s is None or t_s - self._asked_s >= TICK_S:
            self._asked_s = t_s
            tick = self._inner.tick()
            self._users = None if tick is None else int(tick[0])
            self.title = f"{self._users} users"
        return self._users


class Shapes:
    """The shape that somebody picked, of one Locust process."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self._own: Any = None

    def take_over(self, first_users: Callable[[int], int]) -> None:
        """Once, before anything starts. `first_users` says with how many users a test begins that was asked
        for so many. Locust would use the first shape class of a locustfile if nobody has picked one:
        loadgen's are for the picker, a person's own is taken as Locust would."""
        environment, runner = self._environment, self._environment.runner
        available = environment.available_shape_classes or {}
        for name, shape in available.items():
            if not isinstance(shape, PickedShape):
                available[name] = OwnShape(shape)
        mine = next((s for s in available.values() if isinstance(s, OwnShape)), None)
        if environment.shape_class is not None and not getattr(
            environment.parsed_options, "class_picker", False
        ):
            self._own = mine
        environment.shape_class = None
        start = runner.start

        def begin(user_count: int, spawn_rate: float, *args: Any, **kwargs: Any) -> Any:
            if runner.state not in ("spawning", "running"):
                user_count = first_users(user_count)
            try:
                return start(user_count, spawn_rate, *args, **kwargs)
            except StopTest as e:
                if environment.web_ui is None or not isinstance(runner, MasterRunner):
                    raise
                log.error("%s", e)  # from its page Locust catches it only where there are no workers

        runner.start = begin

    def _picked(self) -> PickedShape | None:
        shape = self._environment.shape_class
        return shape if isinstance(shape, PickedShape) else self._own

    def setting(self) -> str | None:
        """The kind of the picked shape, None if nobody has picked one."""
        picked = self._picked()
        return None if picked is None else picked.kind

    def course(self) -> Callable[[], Course] | None:
        """What leads a turn, where it is not one of loadgen's shapes."""
        picked = self._picked()
        if not isinstance(picked, OwnShape):
            return None
        return lambda: OwnCourse(picked.inner, self._environment.runner)


__all__ = ["FindKnee", "OwnCourse", "OwnShape", "PickedShape", "Ramp", "Shapes", "Spike", "Steps"]
