"""A picture of curves in plain characters. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from loadgen.plain import number

MARKS = "ox+*#%@&"
GUTTER = 9

Curve = Sequence[tuple[float, float]]


def plot(
    curves: Mapping[str, Curve],
    *,
    x_title: str,
    y_title: str,
    width: int = 78,
    height: int = 14,
    log_x: bool = False,
    log_y: bool = False,
) -> list[str]:
    """Lines of a plot, at most `width` characters long. Axes begin at 0 or, logarithmic ones, at their lowest
    value. Each curve has a mark of its own; dots lead from one of its points to the next. Where points of two
    curves fall together, the later one's mark is seen. Values must be positive; no lines without a point.
    """
    points = [p for curve in curves.values() for p in curve]
    if not points:
        return []
    columns = width - GUTTER - 2
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = _round_down(min(ys)) if log_y else 0.0, _round_up(max(ys))
    across = _scale(min(xs) if log_x else 0.0, max(xs), columns - 1, log_x)
    up = _scale(low, high, height - 1, log_y)

    def cell(x: float, y: float) -> tuple[int, int]:
        return across(x), up(y)

    grid = [[" "] * columns for _ in range(height)]
    cells = {name: [cell(*p) for p in curve] for name, curve in curves.items()}
    for path in cells.values():
        for (x0, y0), (x1, y1) in pairwise(path):
            length = max(abs(x1 - x0), abs(y1 - y0), 1)
            for i in range(1, length):
                grid[round(y0 + (y1 - y0) * i / length)][round(x0 + (x1 - x0) * i / length)] = "."
    for mark, path in zip(_marks(len(cells)), cells.values(), strict=True):
        for x, y in path:
            grid[y][x] = mark

    legend = "  ".join(f"{m} {name}" for m, name in zip(_marks(len(cells)), cells, strict=True))
    lines = [f"{y_title}    {legend}"[:width]]
    for row in range(height - 1, -1, -1):
        label = {0: _label(low), height - 1: _label(high)}.get(row, "")
        lines.append(f"{label:>{GUTTER}} |{''.join(grid[row])}".rstrip())
    lines.append(f"{'':>{GUTTER}} +{'-' * columns}")
    lines.append(_ticks(xs, across, columns, log_x))
    lines.append(f"{x_title:>{width}}")
    return lines


def _marks(count: int) -> str:
    return (MARKS * (count // len(MARKS) + 1))[:count]


def _scale(first: float, last: float, cells: int, log: bool) -> Callable[[float], int]:
    """From a value to its cell, 0 to `cells`."""
    of = math.log if log else float
    start, end = of(first), of(last)

    def scaled(value: float) -> int:
        return round((of(value) - start) / (end - start) * cells) if end > start else 0

    return scaled


STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # times a power of ten: scales that people read


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in STEPS if m * power >= value * (1 - 1e-9))


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in reversed(STEPS) if m * power <= value * (1 + 1e-9))


def _label(value: float) -> str:
    text = number(value)
    return text if len(text) <= GUTTER else f"{value:.2g}"


def _ticks(values: Sequence[float], column: Callable[[float], int], columns: int, log_x: bool) -> str:
    """The measured values beneath their columns, or only both ends of the axis. The highest is always told,
    others where there is room."""
    wanted = sorted(set(values), reverse=True) if log_x else [max(values), 0.0]
    line = [" "] * (GUTTER + 2 + columns)
    free = len(line)
    for value in wanted:
        text = f"{value:.0f}" if value == round(value) and value < 1e6 else _label(value)
        at = min(GUTTER + 2 + column(value) - (len(text) - 1) // 2, len(line) - len(text))
        if at + len(text) <= free:
            line[at : at + len(text)] = text
            free = at - 1
    return "".join(line).rstrip()
