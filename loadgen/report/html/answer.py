"""The verdict in words: those of `loadgen compare`, told with the engines' colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadgen.compare.advice import Advice
from loadgen.compare.outcome import SPLIT, VOID, Outcome, Overall
from loadgen.compare.result import Row
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.report.html.comparison import gain
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.words import engine_mark, factor, interval

Colours = Mapping[str, int]


def said(outcome: Outcome, colours: Colours) -> tuple[Html, list[Html]]:
    """The answer on one pair of engines in a sentence, and a sentence for each figure that it rests on."""
    if outcome.answer == VOID:
        return Html("No verdict: this run is void."), []
    rows = outcome.rows
    if not rows or all(row.ratio is None for row in rows):
        return Html("Nothing can be compared: no complete block has figures of both engines."), []
    a, b = engine_mark(outcome.engine, colours), engine_mark(outcome.baseline, colours)
    undecided = [row for row in rows if row.answer == NOT_DECIDABLE]
    if outcome.answer in (BETTER, SPLIT):
        sides = []
        for engine in (outcome.engine, outcome.baseline):
            if won := outcome.won_by(engine):
                other = b if engine == outcome.engine else a
                verb = join(" is better than ", other) if outcome.better else join(" is ahead")
                sides.append(join(engine_mark(engine, colours), verb, f" in {_titles(won)}"))
        first = join(join(*sides, between=", "), ".")
    elif outcome.answer == NO_DIFFERENCE:
        first = join("No difference that matters between ", b, " and ", a, ".")
    else:
        return join(_which(rows, undecided)), []
    figures = [_figure(row, colours) for row in rows if row.answer != NOT_DECIDABLE]
    return first, [*figures, *([join(_open(undecided))] if undecided else [])]


def overall(found: Sequence[Overall], colours: Colours) -> Html:
    """Over all scenarios, of the first pair of engines that has an answer."""
    if not found:
        return Html("What came out")
    one = next((o for o in found if o.answer not in (VOID, NOT_DECIDABLE)), found[0])
    a, b = engine_mark(one.engine, colours), engine_mark(one.baseline, colours)
    if one.answer == SPLIT:
        return join("Each is better at something: it depends on the use.")
    if one.answer == BETTER and one.better:
        worse = b if one.better == one.engine else a
        return join(engine_mark(one.better, colours), " is better than ", worse, ".")
    if one.answer == NO_DIFFERENCE:
        return join("No difference that matters between ", b, " and ", a, ".")
    return Html("No verdict: void." if one.answer == VOID else "Which is better can't be decided.")


def advice_list(advice: Sequence[Advice]) -> Html | None:
    """What follows for whom, each with the rows that it rests on."""
    if not advice:
        return None
    items = []
    for one in advice:
        use, _, rest = one.sentence.partition(": ")
        because = list(dict.fromkeys(_reference(row) for row in one.because))
        items.append(tag("li", tag("b", use), ": ", rest, tag("small", f"rests on {'; '.join(because)}")))
    return tag("section", tag("h2", "Which engine for what"), tag("ul", *items), class_="advice")


def _reference(row: Mapping[str, str]) -> str:
    statistic = "" if row["statistic"] == "value" else f" {row['statistic']}"
    return f"{row['figure']}{statistic} of {row['engine']} in {row['scenario']}"


def _figure(row: Row, colours: Colours) -> Html:
    bounds = tag("span", f" ({interval(row.low, row.high)})", class_="bounds")
    if row.answer == NO_DIFFERENCE:
        pair = f"{row.engine} / {row.baseline} {factor(row.ratio)}"
        return join(f"No difference larger than the margin in {row.title}: {pair}", bounds, ".")
    times, low, high = gain(row)
    better, worse = row.engine, row.baseline
    if better != row.better:
        better, worse = worse, better
        times, low, high = 1 / times, None if high is None else 1 / high, None if low is None else 1 / low
    much = tag("b", factor(times), " times")
    bounds = tag("span", f" ({interval(low, high)})", class_="bounds")
    a, b = engine_mark(better, colours), engine_mark(worse, colours)
    if row.higher_is_better:
        return join(a, f" has the higher {row.title}: ", much, " that of ", b, bounds, ".")
    return join(a, f" has the lower {row.title}: that of ", b, " is ", much, " as high", bounds, ".")


def _which(rows: Sequence[Row], undecided: Sequence[Row]) -> str:
    blocks = min(row.blocks for row in rows)
    there = f"there {'is' if blocks == 1 else 'are'} {blocks}"
    return f"Which is better can't be decided.{_more(undecided)}; {there}."


def _open(undecided: Sequence[Row]) -> str:
    return f"Not decidable: {_titles(undecided)}.{_more(undecided)}."


def _more(undecided: Sequence[Row]) -> str:
    needed = [row.needed for row in undecided if row.needed]
    return f" {max(needed):,} complete blocks might decide" if needed else " More blocks would hardly help"


def _titles(rows: Sequence[Row]) -> str:
    words = list(dict.fromkeys(row.title for row in rows))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
