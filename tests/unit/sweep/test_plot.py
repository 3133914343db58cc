from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.sweep.plot import plot


def test_a_small_picture() -> None:
    lines = plot(
        {"a": [(1, 50), (2, 100), (4, 200)], "b": [(1, 100), (4, 100)]},
        x_title="users",
        y_title="tok/s",
        width=32,
        height=5,
        log_x=True,
    )
    assert lines == [
        "tok/s    o a  x b",
        "    200.0 |                  ..o",
        "          |             .....",
        "          |x.........o.........x",
        "          |o....",
        "        0 |",
        "          +---------------------",
        "           1         2         4",
        "                           users",
    ]


def test_a_logarithmic_axis_begins_beneath_the_lowest_value() -> None:
    lines = plot({"a": [(0.5, 12), (1, 900)]}, x_title="x", y_title="y", width=30, height=3, log_y=True)
    assert [line[:11] for line in lines[1:4]] == ["    1,000 |", "          |", "     10.0 |"]
    assert lines[-2].split() == ["0", "1"]


def test_nothing_to_draw() -> None:
    assert plot({}, x_title="x", y_title="y") == []
    assert plot({"a": []}, x_title="x", y_title="y") == []


values = st.floats(1e-6, 1e9)


@given(
    st.lists(st.lists(st.tuples(values, values), max_size=8), min_size=1, max_size=10),
    st.booleans(),
    st.booleans(),
    st.integers(20, 120),
)
def test_any_curves_fit_and_each_has_its_mark(
    curves: list[list[tuple[float, float]]], log_x: bool, log_y: bool, width: int
) -> None:
    named = {f"engine{i}": curve for i, curve in enumerate(curves)}
    lines = plot(named, x_title="x", y_title="y", width=width, height=6, log_x=log_x, log_y=log_y)
    assert all(len(line) <= width for line in lines)
    assert bool(lines) == any(curves)
