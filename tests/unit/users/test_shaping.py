import locust  # noqa: F401

from types import SimpleNamespace

import gevent
import pytest

from loadgen.record import MEASURE
from loadgen.users import shaping
from loadgen.users.crew import Batch
from loadgen.users.shapes import OwnCourse, OwnShape, Shapes, Steps
from loadgen.users.shaping import Conductor, Steering
from loadgen.workload.courses import Planned, Seen, course_of
from loadgen.workload.shapes import parse_shape
from loadgen.workload.turns import Turn
from tests.unit.users.fakes import lane


class Locust:
    """Users come when they are asked for, unless something keeps them."""

    def __init__(self, batch=None):
        self.asked = []
        self.users = 0
        self.away = False
        self.batch = batch

    def start(self, users):
        self.asked.append(users)
        if not self.away:
            self.users = users
            if self.batch is not None:
                self.batch.members = dict.fromkeys(range(users), -1.0)


class Events(list):
    def append(self, kind, **fields):
        super().append((kind, fields))

    def of(self, kind):
        return [f for k, f in self if k == kind]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(shaping, "BEAT_S", 0.01)
    monkeypatch.setattr(shaping, "AGAIN_S", 0.05)
    monkeypatch.setattr(shaping, "GATHER_S", 0.2)


def test_users_are_asked_for_once_and_again_if_they_do_not_come():
    runner = Locust()
    steering = Steering(runner.start, lambda: runner.users)
    for _ in range(5):
        steering.want(3)
        gevent.sleep(0)
    assert runner.asked == [3]
    runner.users = 2  # somebody has been lost
    with gevent.Timeout(5):
        while runner.users != 3:
            steering.want(3)
            gevent.sleep(0.01)
    assert runner.asked == [3, 3]


def test_gathering_does_not_wait_for_ever():
    runner = Locust()
    runner.away = True
    Steering(runner.start, lambda: runner.users).gather(3)
    assert runner.asked[0] == 3


def test_what_is_wanted_last_counts_while_a_master_waits():
    asked, free = [], gevent.event.Event()

    def start(users):
        asked.append(users)
        free.wait()

    steering = Steering(start, lambda: 0)
    for users in (2, 3, 4):
        steering.want(users)
        gevent.sleep(0)
    free.set()
    gevent.sleep(0.01)
    assert asked == [2, 4]
    steering.stop()


class Fixed(Planned):
    """Its time is the number of questions, a tenth of a second each."""

    asked = 0

    def users(self, t_s, seen):
        self.asked += 1
        return super().users(self.asked / 10, seen)


def conduct(course, by_hand=False, asked=lambda: 0):
    turn, batch, events = Turn(3, 1, "a"), Batch(lane(), MEASURE, 3, 1), Events()
    runner = Locust(batch)
    steering = None if by_hand else Steering(runner.start, lambda: len(batch.members))
    run = SimpleNamespace(events=events)
    return Conductor(run, [(turn, batch)], course, steering, asked, lambda engine: 0), runner, events, batch


def test_levels_and_users_are_written_down():
    conductor, runner, events, _ = conduct(Fixed(parse_shape("1@1s,3@1s")))
    conductor.go()
    assert runner.asked == [1, 3]
    assert [(e["users"], e["title"]) for e in events.of("level")] == [(1, "1 user"), (3, "3 users")]
    users = [(e["users"], e["settled"]) for e in events.of("users")]
    assert [u for u in users if u[1]] == [(1, True), (3, True)]
    assert users[-1] == (0, False)
    assert all((e["engine"], e["turn"], e["block"]) == ("a", 3, 1) for _, e in events)


def test_by_hand_nobody_is_asked_for():
    wanted = [2]
    conductor, runner, events, batch = conduct(course_of(parse_shape("hand")), True, lambda: wanted[0])
    batch.members = {"u": -1.0}
    going = gevent.spawn(conductor.go)
    gevent.sleep(0.03)
    batch.members["v"] = -1.0
    gevent.sleep(0.03)
    going.kill()
    conductor.over()
    assert runner.asked == []
    users = [(e["users"], e["settled"]) for e in events.of("users")]
    assert users == [(1, False), (2, True), (0, False)]


class Mine:
    """A LoadTestShape of somebody's own."""

    def __init__(self):
        self.ticks = []

    def reset_time(self):
        self.ticks = [(2, 10), (5, 10), None]

    def tick(self):
        return self.ticks.pop(0)


def test_a_shape_of_ones_own_runs_from_its_beginning_in_every_turn():
    shape = Mine()
    for _ in range(2):
        course = OwnCourse(shape, runner=None)
        seen = Seen(0, 0)
        assert [course.users(t, seen) for t in (0, 0.5, 1.0, 1.5, 2.0)] == [2, 2, 5, 5, None]


def environment(shapes, picked=None, picker=False):
    started = []
    runner = SimpleNamespace(state="ready", start=lambda *a, **k: started.append(a[0]))
    made = SimpleNamespace(
        available_shape_classes=shapes,
        shape_class=picked,
        runner=runner,
        parsed_options=SimpleNamespace(class_picker=picker),
    )
    return made, started


def test_the_shapes_of_ramp_py_wait_for_the_picker():
    made, started = environment({"Steps": Steps()}, Steps())
    shapes = Shapes(made)
    shapes.take_over(lambda users: 1)
    assert made.shape_class is None
    assert shapes.setting() is None
    made.shape_class = made.available_shape_classes["Steps"]
    assert shapes.setting() == "steps"
    made.runner.start(16, 100)
    made.runner.state = "running"
    made.runner.start(16, 100)
    assert started == [1, 16]


def test_a_shape_of_ones_own_is_taken_as_locust_would_but_not_with_a_picker():
    for picker, kind in ((False, "own"), (True, None)):
        mine = Mine()
        made, _ = environment({"Mine": mine}, mine, picker)
        shapes = Shapes(made)
        shapes.take_over(lambda users: users)
        assert made.shape_class is None
        assert shapes.setting() == kind
        assert isinstance(made.available_shape_classes["Mine"], OwnShape)
        assert (shapes.course() is None) == picker
