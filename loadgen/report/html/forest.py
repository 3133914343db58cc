"""The first picture: each figure's ratio with its interval on one scale, the margin shaded. It is a table.

Drawn with HTML alone, so it is there without JavaScript, prints, fits a telephone and can be read aloud. The
scale is logarithmic and turned so that right of the middle an engine is better than its baseline, whether
that means more (throughput) or less (TTFT).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from loadgen.compare.result import Row
from loadgen.report.html.comparison import gain
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.words import engine_mark, factor, interval

_ENDS = (1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)
_TICKS = {1.25: (1.1,), 1.5: (1.2,), 2: (1.4,), 3: (1.7,), 5: (2,), 10: (3,), 20: (5,), 50: (7,), 100: (10,)}


Named = tuple[str, Row]  # a row, and what it is called


def forest(
    groups: Sequence[tuple[str, Sequence[Named]]],
    margin: float,
    colours: Mapping[str, int],
    *,
    void: bool = False,
) -> Html | None:
    """`groups` are rows under a heading (a scenario, or nothing); `colours` number the engines. Of a `void`
    run the picture never says which engine is better. None without any row."""
    rows = [row for _, some in groups for _, row in some]
    if not rows:
        return None
    end = _end(rows)
    pairs = {(row.engine, row.baseline) for row in rows}
    body = []
    for heading, some in groups:
        if heading and some:
            body.append(tag("tr", tag("th", heading, colspan=3, scope="rowgroup"), class_="group"))
        for name, row in some:
            named = name if len(pairs) == 1 else f"{name}, {row.engine}"
            body.append(_line(row, named, end, margin, colours, void))
    return tag(
        "table",
        tag("caption", _caption(pairs, margin)),
        tag(
            "thead",
            tag(
                "tr",
                tag("th", "figure", scope="col"),
                tag("th", _sides(pairs, colours), _scale(end), scope="col", class_="scale"),
                tag("th", _ratio_of(pairs), scope="col", class_="ratio"),
            ),
        ),
        tag("tbody", *body),
        class_="forest",
    )


def _caption(pairs: set[tuple[str, str]], margin: float) -> str:
    percent = f"{(margin - 1) * 100:.3g} %"
    right = (
        "to the right the engine is better than its baseline" if len(pairs) > 1 else "further out is better"
    )
    return (
        f"How many times better, with 95 % interval; {right}. Within the shaded margin of {percent} a "
        "difference does not count."
    )


def _sides(pairs: set[tuple[str, str]], colours: Mapping[str, int]) -> Html:
    if len(pairs) > 1:
        return tag("span", tag("span", "baseline better"), tag("span", "engine better"), class_="sides")
    engine, baseline = next(iter(pairs))
    return tag(
        "span",
        tag("span", "← ", engine_mark(baseline, colours), " better"),
        tag("span", engine_mark(engine, colours), " better →"),
        class_="sides",
    )


def _ratio_of(pairs: set[tuple[str, str]]) -> str:
    if len(pairs) > 1:
        return "engine / baseline"
    engine, baseline = next(iter(pairs))
    return f"{engine} / {baseline}"


def _scale(end: float) -> Html:
    ticks = [*(1 / t for t in (end, *_TICKS[end])), 1.0, *_TICKS[end], end]
    marks = [tag("span", f"{max(t, 1 / t):.3g}×", style=f"left:{_place(t, end):.2f}%") for t in sorted(ticks)]
    return tag("span", *marks, class_="ticks", aria_hidden="true")


def _line(row: Row, named: str, end: float, margin: float, colours: Mapping[str, int], void: bool) -> Html:
    middle, low, high = gain(row)
    low_edge, high_edge = _place(1 / margin, end), _place(margin, end)
    parts = [
        tag("i", class_="margin", style=f"left:{low_edge:.2f}%;width:{high_edge - low_edge:.2f}%"),
        tag("i", class_="one"),
    ]
    answer = "void" if void else row.answer
    better = row.better if answer == "better" else None
    colour = f"e{colours.get(better, 0)}" if better else "undecided"
    if low is not None and high is not None:
        a, b = _place(low, end), _place(high, end)
        parts.append(
            tag("i", class_=f"interval {colour}", style=f"left:{a:.2f}%;width:{max(b - a, 0.4):.2f}%")
        )
    parts.append(tag("i", class_=f"dot {colour}", style=f"left:{_place(middle, end):.2f}%"))
    said = join(engine_mark(better, colours), " better") if better else answer
    return tag(
        "tr",
        tag("th", named, tag("small", said), scope="row"),
        tag("td", tag("span", *parts, class_="track", aria_hidden="true"), class_="scale"),
        tag(
            "td",
            tag("b", factor(row.ratio)),
            tag("small", interval(row.low, row.high)),
            class_="ratio",
        ),
        title=None if void else row.sentence,
    )


def _end(rows: Sequence[Row]) -> float:
    """The end of the scale: the least of _ENDS that holds every interval."""
    seen = [abs(math.log(v)) for row in rows for v in gain(row) if v is not None and v > 0]
    return next((e for e in _ENDS if math.log(e) >= max(seen)), _ENDS[-1])


def _place(value: float, end: float) -> float:
    """Percent from the left; what lies beyond the scale is put at its end."""
    share = math.log(value) / math.log(end) if value > 0 else -1.0
    return 50 + 50 * min(max(share, -1.0), 1.0)
