"""The first screen: what came out, one picture, and whether it may be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.compare import MARGIN
from loadgen.compare.result import Row, RunComparison
from loadgen.report.html.answer import overall, said
from loadgen.report.html.comparison import main_rows
from loadgen.report.html.digest import Digest
from loadgen.report.html.doubts import validity_card, void
from loadgen.report.html.forest import Named, forest
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.objectives import objectives_line
from loadgen.report.html.results import Results
from loadgen.report.html.words import engine_mark, moment, scenario_title
from loadgen.report.plain import clean, number
from loadgen.sweep import names as load_names

SWEPT = "throughput_tokens_per_s"
TILES = (
    ("TTFT", "ttft_ms", "p50", "ms", "p95"),
    ("TPOT", "tpot_ms", "p50", "ms", "p95"),
    ("end to end", "e2e_ms", "p50", "ms", "p95"),
    ("throughput", "window", "throughput_tokens_per_s", "tokens/s", None),
)
MOST_TILES = 6

Colours = Mapping[str, int]


def opening(results: Results, colours: Colours) -> Html:
    digests = results.digests
    compared = [a.comparison for a in results.across] or [d.comparison for d in digests if d.comparison]
    margin = next((c.margin for c in compared if c.rows), MARGIN)
    all_void = all(void(d) for d in digests)
    picture = forest(_groups(results), margin, colours, void=all_void) or _tiles(digests, colours)
    titles = [title_of(d) for d in digests]
    asked = objectives_line(digests, titles, colours)
    return tag(
        "section",
        tag("div", _banner(compared), _verdict(results, colours), asked, class_="verdict"),
        tag("div", picture, class_="picture card"),
        tag("aside", validity_card(digests, titles), class_="validity card"),
        class_="opening",
        id="verdict",
    )


def title_of(digest: Digest) -> str:
    return scenario_title(digest.summary.scenario, digest.summary.settings)


def headline(results: Results) -> tuple[str, str]:
    """The page's title, and when its runs were made."""
    names = list(dict.fromkeys(n for d in results.digests for n in d.summary.engines))
    shown = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
    titles = list(dict.fromkeys(map(title_of, results.digests)))
    about = titles[0] if len(titles) == 1 else f"{len(titles)} workloads"
    loads = results.loads()
    if len(loads) == 1 and len(loads[0].steps) == len(results.digests):
        steps = loads[0].steps
        lowest = load_names.shown(steps[0].load or 0)
        about = f"{loads[0].title.replace('_', ' ')}, {lowest} to {steps[-1].load_words}"
    if results.across:
        about += ", two runs against each other"
    starts = [d.start_ns for d in results.digests if d.start_ns > 0]
    return f"{shown or 'no engine'}: {about}", moment(min(starts, default=0))


def _banner(compared: Sequence[RunComparison]) -> Html | None:
    names = list(dict.fromkeys(name for c in compared for name in c.simulated))
    if not names:
        return None
    rest = f" ({', '.join(names)}): this says nothing about real servers."
    return tag("p", tag("b", "Simulated engines"), rest, class_="simulated")


def _groups(results: Results) -> list[tuple[str, list[Named]]]:
    """The rows of the picture: of two runs or of one what decides, and some more; of each scenario of several
    what decides; of a sweep throughput alone, step by step."""
    if results.across:
        several = len(results.across) > 1
        return [
            (a.comparison.scenario if several else "", _named(main_rows(a.comparison, a.outcomes)))
            for a in results.across
        ]
    digests = results.digests
    if len(digests) == 1:
        return [("", _rows(digests[0]))]
    out: list[tuple[str, list[Named]]] = []
    swept = set()
    for loads in results.loads():
        swept |= {id(d) for d in loads.steps}
        rows = [
            (d.load_words, row)
            for d in loads.steps
            for row in (d.comparison.rows if d.comparison and not void(d) else ())
            if row.figure == SWEPT and row.ratio is not None
        ]
        out.append((f"{loads.title.replace('_', ' ')}: throughput", rows))
    return out + [(title_of(d), _rows(d, brief=True)) for d in digests if id(d) not in swept and not void(d)]


def _rows(digest: Digest, *, brief: bool = False) -> list[Named]:
    if digest.comparison is None:
        return []
    further = {"further": ()} if brief else {}
    return _named(main_rows(digest.comparison, digest.outcomes, **further))


def _named(rows: Sequence[Row]) -> list[Named]:
    return [(row.title, row) for row in rows]


def _verdict(results: Results, colours: Colours) -> Html:
    digests = results.digests
    if results.across:
        outcomes = [o for a in results.across for o in a.outcomes]
    elif len(digests) == 1:
        outcomes = digests[0].outcomes
    else:
        return _several(results, colours)
    if len(outcomes) == 1:
        first, more = said(outcomes[0], colours)
        return join(tag("h2", first), tag("ul", *(tag("li", s) for s in more)) if more else None)
    if outcomes:
        return join(
            tag("h2", overall(results.overall, colours)),
            _lines([(o.scenario, said(o, colours)[0]) for o in outcomes], colours),
        )
    return tag("h2", _alone(digests[0], colours))


def _several(results: Results, colours: Colours) -> Html:
    lines: list[tuple[str, Html]] = []
    swept = set()
    for loads in results.loads():
        swept |= {id(d) for d in loads.steps}
        if loads.sweep is not None:
            for name in loads.sweep.engines:
                mark = join(engine_mark(name, colours), ": ")
                starts = f"{clean(name)}: "
                lines += [
                    ("", join(mark, s.removeprefix(starts)) if s.startswith(starts) else join(s))
                    for s in loads.sweep.sentences(name)
                ]
        else:
            lines += [(d.load_words, _short(d, colours)) for d in loads.steps]
    lines += [(title_of(d), _short(d, colours)) for d in results.digests if id(d) not in swept]
    swept_only = len(swept) == len(results.digests)
    head = Html("What the sweep found") if swept_only else overall(results.overall, colours)
    return join(tag("h2", head), _lines(lines, colours))


def _short(digest: Digest, colours: Colours) -> Html:
    if not digest.outcomes:
        return _alone(digest, colours)
    return join(*(said(o, colours)[0] for o in digest.outcomes), between=" ")


def _lines(lines: Sequence[tuple[str, Html]], colours: Colours) -> Html:
    return tag("ul", *(tag("li", tag("b", name, ": ") if name else None, words) for name, words in lines))


def _alone(digest: Digest, colours: Colours) -> Html:
    if void(digest):
        return Html("No verdict: this run is void.")
    names = list(digest.summary.engines)
    if not names:
        return Html("No engine was measured.")
    if len(names) > 1:
        return Html("Nothing can be compared: no complete block has figures of two engines.")
    return join(engine_mark(names[0], colours), " was measured alone: nothing is compared.")


def _tiles(digests: Sequence[Digest], colours: Colours) -> Html:
    """Where nothing is compared: the figures themselves."""
    parts = []
    several = len(digests) > 1
    for digest in digests[:MOST_TILES]:
        for name, figures in digest.summary.engines.items():
            about = tag("small", f" {title_of(digest)}") if several else None
            parts.append(tag("h3", engine_mark(name, colours), about))
            parts.append(tag("dl", *_figures(figures), class_="tiles"))
    return tag("div", *parts)


def _figures(figures: Mapping[str, Any]) -> list[Html]:
    out = []
    for label, metric, part, unit, beside in TILES:
        stats = figures.get(metric) or {}
        small = f"{unit} p50, p95 {number(stats.get(beside))}" if beside else unit
        out.append(tag("div", tag("dt", label), tag("dd", number(stats.get(part)), tag("small", small))))
    return out
