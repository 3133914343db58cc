"""The first screen: what came out, one picture, and whether it may be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.compare import MARGIN
from loadgen.report.html.comparison import Row, gain, main_rows
from loadgen.report.html.digest import Digest, by_load
from loadgen.report.html.forest import forest
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.words import engine_mark, factor, interval, moment, scenario_title
from loadgen.report.plain import number, plural
from loadgen.validity import Finding, Level

SIGNS = {Level.VALID: "✓", Level.SUSPECT: "!", Level.VOID: "✕"}
MEANING = {
    Level.VALID: "Nothing speaks against these figures.",
    Level.SUSPECT: "Read the reasons, then decide.",
    Level.VOID: "Don't use these figures.",
}
SWEPT = "throughput_tokens_per_s"
TILES = (
    ("TTFT", "ttft_ms", "p50", "ms", "p95"),
    ("TPOT", "tpot_ms", "p50", "ms", "p95"),
    ("end to end", "e2e_ms", "p50", "ms", "p95"),
    ("throughput", "window", "throughput_tokens_per_s", "tokens/s", None),
)


def opening(digests: Sequence[Digest], colours: dict[str, int]) -> Html:
    simulated = sorted({name for d in digests for name in d.summary.simulated})
    margin = next((d.comparison["margin"] for d in digests if d.comparison), MARGIN)
    void = bool(digests) and all(_void(d) for d in digests)
    picture = forest(_groups(digests), margin, colours, void=void) or _tiles(digests, colours)
    return tag(
        "section",
        tag("div", _banner(simulated), _verdict(digests, colours), class_="verdict"),
        tag("div", picture, class_="picture card"),
        tag("aside", _validity(digests), class_="validity card"),
        class_="opening",
        id="verdict",
    )


def _groups(digests: Sequence[Digest]) -> list[tuple[str, list[tuple[str, Row]]]]:
    """The rows of the picture: of one run its main ones, of each scenario of several the first few, of a
    sweep throughput alone, step by step."""
    out: list[tuple[str, list[tuple[str, Row]]]] = []
    if len(digests) == 1:
        return [("", [(row["title"], row) for row in _main(digests[0])])]
    for scenario, steps in by_load(digests).items():
        rows = [
            (plural(d.users or 0, "user"), row)
            for d in steps
            for row in (d.comparison or {}).get("rows", ())
            if row["figure"] == SWEPT and row["ratio"] is not None and not _void(d)
        ]
        out.append((f"{scenario.replace('_', ' ')}: throughput", rows))
    swept = {id(d) for steps in by_load(digests).values() for d in steps}
    for d in digests:
        if id(d) not in swept and not _void(d):
            title = scenario_title(d.summary.scenario, d.summary.settings)
            out.append((title, [(row["title"], row) for row in _main(d, brief=True)]))
    return out


def _void(digest: Digest) -> bool:
    return digest.summary.validity is not None and digest.summary.validity.level == Level.VOID


def _main(digest: Digest, *, brief: bool = False) -> list[Row]:
    return main_rows(digest.comparison, digest.users, brief=brief) if digest.comparison else []


def _banner(simulated: Sequence[str]) -> Html | None:
    if not simulated:
        return None
    names = ", ".join(simulated)
    return tag(
        "p",
        tag("b", "Simulated engines"),
        f" ({names}): this says nothing about real servers.",
        class_="simulated",
    )


def _verdict(digests: Sequence[Digest], colours: dict[str, int]) -> Html:
    if len(digests) == 1:
        first, *more = _sentences(digests[0], colours)
        return join(tag("h2", first), tag("ul", *(tag("li", s) for s in more)) if more else None)
    lines = []
    for digest in digests:
        title = scenario_title(digest.summary.scenario, digest.summary.settings)
        lines.append(tag("li", tag("b", title, ": "), _sentences(digest, colours)[0]))
    return join(tag("h2", "What came out"), tag("ul", *lines))


def _sentences(digest: Digest, colours: dict[str, int]) -> list[Html]:
    """The answer, then what else was answered."""
    if not digest.summary.engines:
        return [Html("No engine was measured.")]
    if _void(digest):
        return [Html("No verdict: this run is void.")]
    rows = _main(digest)
    if not rows:
        return [_alone(digest, colours)]
    decided = [row for row in rows if row["answer"] == "better"]
    same = [row for row in rows if row["answer"] == "no difference"]
    open_ = [row for row in rows if row["answer"] == "not decidable"]
    out = [_better(row, colours) for row in decided]
    if same:
        titles = ", ".join(dict.fromkeys(row["title"] for row in same))
        out.append(join(f"No difference larger than the margin in {titles}."))
    if open_:
        out.append(_undecided(open_, alone=not out))
    return out


def _better(row: Row, colours: dict[str, int]) -> Html:
    times, low, high = gain(row)
    better, worse = row["engine"], row["baseline"]
    if better != row["better"]:
        better, worse = worse, better
        times, low, high = 1 / times, None if high is None else 1 / high, None if low is None else 1 / low
    much = tag("b", factor(times), " times")
    bounds = tag("span", f" ({interval(low, high)})", class_="bounds")
    a, b = engine_mark(better, colours), engine_mark(worse, colours)
    if row["higher_is_better"]:
        return join(a, f" has the higher {row['title']}: ", much, " that of ", b, bounds, ".")
    return join(a, f" has the lower {row['title']}: that of ", b, " is ", much, " as high", bounds, ".")


def _undecided(rows: Sequence[Row], *, alone: bool) -> Html:
    titles = ", ".join(dict.fromkeys(row["title"] for row in rows))
    blocks = min(row["blocks"] for row in rows)
    needed = [row["needed"] for row in rows if row["needed"]]
    more = f" {max(needed)} complete blocks might decide" if needed else " More blocks would hardly help"
    start = "Which is better can't be decided" if alone else f"Not decidable: {titles}"
    return join(f"{start}.{more}; there {'is' if blocks == 1 else 'are'} {blocks}.")


def _alone(digest: Digest, colours: dict[str, int]) -> Html:
    names = list(digest.summary.engines)
    if len(names) > 1:
        return join("Nothing can be compared: no complete block has figures of two engines.")
    return join(engine_mark(names[0], colours), " was measured alone: nothing is compared.")


def _tiles(digests: Sequence[Digest], colours: dict[str, int]) -> Html:
    """Where nothing is compared: the figures themselves."""
    parts = []
    for digest in digests:
        for name, figures in digest.summary.engines.items():
            parts.append(tag("h3", engine_mark(name, colours), " ", digest.summary.scenario))
            parts.append(tag("dl", *_figures(figures), class_="tiles"))
    return tag("div", *parts)


def _figures(figures: Mapping[str, Any]) -> list[Html]:
    out = []
    for label, metric, part, unit, beside in TILES:
        stats = figures.get(metric) or {}
        small = f"{unit} p50, p95 {number(stats.get(beside))}" if beside else unit
        out.append(tag("div", tag("dt", label), tag("dd", number(stats.get(part)), tag("small", small))))
    return out


def _validity(digests: Sequence[Digest]) -> Html:
    judged = [(d, d.summary.validity) for d in digests if d.summary.validity is not None]
    level = max((v.level for _, v in judged), default=Level.VALID)
    parts = [tag("h2", badge(level)), tag("p", MEANING[level])]
    for digest, validity in judged:
        against = [f for f in validity.findings if f.level > Level.VALID]
        if len(judged) > 1 and (against or level > Level.VALID):
            parts.append(
                tag(
                    "h3",
                    badge(validity.level),
                    " ",
                    tag("a", digest.summary.scenario, href=f"#{anchor(digest)}"),
                )
            )
        if against:
            parts.append(tag("ul", *(finding(f) for f in against), class_="findings"))
    notes = {f.sentence(): f for _, v in judged for f in v.findings if f.level == Level.VALID}
    if notes:
        said = tag("ul", *(finding(f) for f in notes.values()), class_="findings")
        parts.append(tag("details", tag("summary", plural(len(notes), "note")), said))
    return join(*parts)


def badge(level: Level) -> Html:
    return tag("span", tag("i", SIGNS[level], aria_hidden="true"), level.word, class_=f"badge {level.word}")


def finding(found: Finding) -> Html:
    return tag(
        "li", found.evidence, tag("small", found.advice) if found.advice else None, class_=found.level.word
    )


def anchor(digest: Digest) -> str:
    """The section of a run; its name is a directory's, made safe."""
    return "run-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in digest.summary.name)


def headline(digests: Sequence[Digest]) -> tuple[str, str]:
    """The page's title, and the line beneath it."""
    engines = list(dict.fromkeys(name for d in digests for name in d.summary.engines))
    shown = " and ".join(engines) if len(engines) < 3 else f"{', '.join(engines[:-1])} and {engines[-1]}"
    titles = list(dict.fromkeys(scenario_title(d.summary.scenario, d.summary.settings) for d in digests))
    about = titles[0] if len(titles) == 1 else f"{len(titles)} workloads"
    swept = by_load(digests)
    if sum(map(len, swept.values())) == len(digests) and len(swept) == 1:
        scenario, steps = next(iter(swept.items()))
        about = f"{scenario.replace('_', ' ')}, {steps[0].users} to {plural(steps[-1].users or 0, 'user')}"
    starts = [d.start_ns for d in digests if d.start_ns > 0]
    return f"{shown or 'no engine'}: {about}", moment(min(starts, default=0))
