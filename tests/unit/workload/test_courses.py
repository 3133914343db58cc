from loadgen.workload.courses import ByHand, Planned, Search, Seen, course_of
from loadgen.workload.shapes import parse_shape


def lead(course, tokens_per_s, *, late_s=0.0, beat_s=0.2, most_s=10_000):
    """[(when, users)] at each change, on an engine that gives so many events a second at so many users;
    users come `late_s` after they were asked for."""
    t = events = 0.0
    asked, asked_s, there, changes = 0, 0.0, 0, []
    while t < most_s:
        goal = course.users(t, Seen(there, int(events)))
        if goal is None:
            return [*changes, (round(t, 1), None)]
        if goal != asked:
            asked, asked_s = goal, t
            changes.append((round(t, 1), goal))
        if t - asked_s >= late_s:
            there = asked
        t += beat_s
        events += beat_s * tokens_per_s(there)
    raise AssertionError(f"never ended: {changes}")


def saturates_at(users):
    return lambda n: 50.0 * min(n, users)


def test_a_plan_is_followed():
    course = course_of(parse_shape("1@2s,1-3@3s"))
    assert isinstance(course, Planned)
    assert course.title == "1 user"
    assert lead(course, saturates_at(9)) == [(0, 1), (3.0, 2), (4.0, 3), (5.0, None)]
    assert course.title == "1 to 3 users"


def test_the_knee_is_found_between_the_doubled_loads():
    course = course_of(parse_shape("knee:1-256@10s"))
    assert isinstance(course, Search)
    loads = [users for _, users in lead(course, saturates_at(13))]
    assert loads == [1, 2, 4, 8, 16, 32, 64, 12, 14, None] or loads[:7] == [1, 2, 4, 8, 16, 32, 64]
    measured = {p.load: p.throughput for p in course.points}
    assert abs(measured[8] - 400) < 8
    assert abs(measured[32] - 650) < 8
    assert all(8 < load < 16 for load in loads[7:-1])


def test_an_engine_that_never_saturates_is_led_to_the_top():
    course = course_of(parse_shape("knee:4-20@5s"))
    assert [users for _, users in lead(course, saturates_at(1000))] == [4, 8, 16, 20, None]


def test_users_who_are_late_do_not_shorten_a_level():
    changes = lead(course_of(parse_shape("knee:1-2@10s")), saturates_at(9), late_s=3)
    assert [users for _, users in changes] == [1, 2, None]
    times = [t for t, _ in changes]
    assert times[1] >= 13
    assert times[2] - times[1] >= 13


def test_users_who_never_come_do_not_stop_the_search():
    assert lead(course_of(parse_shape("knee:1-2@10s")), saturates_at(9), late_s=1e9)[-1][1] is None


def test_by_hand_it_is_as_many_as_somebody_asks_for():
    course = course_of(parse_shape("hand"))
    assert isinstance(course, ByHand)
    assert course.users(1e9, Seen(1, 0, asked=7)) == 7
    assert course.title == "7 users"
