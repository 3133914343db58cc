"""The section of one run: its figures, distributions, course in time, failures and manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.compare.result import RunComparison
from loadgen.report.html.charts import Chart, ecdf, pauses
from loadgen.report.html.digest import DRAWN, GAPS, Digest
from loadgen.report.html.doubts import anchor, badge, finding
from loadgen.report.html.levels import level_curves, levels_table
from loadgen.report.html.manifest import manifest_tables
from loadgen.report.html.markup import Html, data_block, join, tag
from loadgen.report.html.objectives import objectives_of
from loadgen.report.html.tables import comparison_table, cost_table, failures_table, figures_table
from loadgen.report.html.timechart import time_chart
from loadgen.report.html.words import duration, engine_mark, gpu_mark, moment, scenario_title
from loadgen.report.levels import knee_text, slo_text
from loadgen.report.notes import notes
from loadgen.report.offered import load_words
from loadgen.report.summary import classes
from loadgen.report.workload import lengths
from loadgen.validity import Level

TITLES = {"ttft_ms": "Time to first token", "tpot_ms": "Time per output token", "e2e_ms": "End to end"}


def section(digest: Digest, colours: Mapping[str, int], *, folded: bool = False) -> Html:
    """`folded`: closed at first, for one of many steps."""
    summary = digest.summary
    identity = anchor(digest)
    title = scenario_title(summary.scenario, summary.settings)
    validity = badge(summary.validity.level) if summary.validity else None
    content = [
        tag("p", _made_with(digest), class_="about"),
        _engines(digest, colours),
        _doubts(digest),
        tag("h3", "Figures"),
        figures_table(summary.engines, colours) if summary.engines else tag("p", "No engine was measured."),
        _levels(digest, colours, identity),
        _classes(digest, colours),
        objectives_of(digest, colours),
        _compared(digest, colours),
        _distributions(digest, colours, identity),
        _in_time(digest, colours, identity),
        _failed(digest, colours),
        _notes(digest),
        _manifest(digest),
    ]
    head = join(title, " ", validity)
    if folded:
        return tag(
            "section",
            tag("details", tag("summary", tag("h2", head)), *content),
            id=identity,
            class_="run folded",
        )
    return tag("section", tag("h2", head), *content, id=identity, class_="run")


def chart(made: Chart, identity: str) -> Html:
    """A chart's place, with its data; page.js draws it."""
    data = {"data": made.data, "layout": made.layout, "height": made.height}
    return tag(
        "figure",
        tag("figcaption", tag("b", made.title), tag("small", made.about)),
        tag(
            "div",
            class_="plot",
            data_from=identity,
            style=f"height:{made.height}px",
            role="img",
            aria_label=f"{made.title}: {made.about}",
        ),
        data_block(identity, data),
        class_="chart",
    )


def legend(names: Sequence[str], colours: Mapping[str, int], more: Sequence[Html] = ()) -> Html:
    marks = [
        *(engine_mark(name, colours) for name in names),
        *(tag("span", m, class_="engine") for m in more),
    ]
    return tag("p", *(join(mark, " ") for mark in marks), class_="legend")


def _made_with(digest: Digest) -> str:
    s = digest.summary.settings
    parts = [digest.summary.name, moment(digest.start_ns), f"{duration(digest.course.seconds)} in all"]
    parts += load_words(s)
    if isinstance(s.get("output_tokens"), int):
        parts.append(lengths(s))
    if digest.summary.state != "complete":
        parts.append(digest.summary.state)
    return " · ".join(parts)


def _engines(digest: Digest, colours: Mapping[str, int]) -> Html | None:
    infos: Mapping[str, Mapping[str, Any]] = {str(i.get("name")): i for i in digest.summary.infos}
    items = []
    for name in digest.summary.engines:
        info = infos.get(name, {})
        server = " ".join(str(info[k]) for k in ("server", "version") if info.get(k)) or info.get("kind", "")
        facts = ", ".join(str(f) for f in (server, info.get("model")) if f)
        if name in digest.summary.simulated:
            facts += ", simulated"
        items.append(tag("li", engine_mark(name, colours), f": {facts}" if facts else None))
    gpus = dict.fromkeys(g.name for g in digest.course.gpus)
    if gpus:
        items.append(tag("li", ", ".join(gpus)))
    return tag("ul", *items, class_="engines") if items else None


def _doubts(digest: Digest) -> Html | None:
    validity = digest.summary.validity
    against = [f for f in validity.findings if f.level > Level.VALID] if validity else []
    return tag("ul", *(finding(f) for f in against), class_="findings") if against else None


def _levels(digest: Digest, colours: Mapping[str, int], identity: str) -> Html | None:
    """Latency against throughput, and the figures, of each number of users where that varied."""
    engines = {n: e["levels"] for n, e in digest.summary.engines.items() if e.get("levels")}
    if not engines:
        return None
    charts = [
        chart(made, f"{identity}-level-{n}")
        for n, made in enumerate(level_curves(digest.summary.engines, colours))
    ]
    found = [
        tag("li", engine_mark(name, colours), f": {said}")
        for name, figures in digest.summary.engines.items()
        for said in (knee_text(figures), slo_text(figures))
        if said
    ]
    return join(
        tag("h3", "By number of users"),
        tag("ul", *found, class_="notes") if found else None,
        legend(list(engines), colours) if charts else None,
        tag("div", *charts, class_="charts") if charts else None,
        levels_table(digest.summary.engines, colours),
    )


def _classes(digest: Digest, colours: Mapping[str, int]) -> Html | None:
    found = classes(digest.summary.engines)
    if not found:
        return None
    about = "Throughput is that of the class's own requests in the whole time of the turns."
    compared = dict(zip(found, digest.classes, strict=False))  # both as they were first seen
    return join(
        tag("h3", "Traffic classes"),
        tag("p", about, class_="about"),
        *(
            join(tag("h4", name), figures_table(of, colours), _every_figure(compared.get(name), colours))
            for name, of in found.items()
        ),
    )


def _compared(digest: Digest, colours: Mapping[str, int]) -> Html | None:
    comparison = digest.comparison
    if comparison is None:
        return None
    costs = cost_table(comparison, colours)
    every = _every_figure(comparison, colours)
    return join(every, join(tag("h3", "Memory, energy, cost"), costs) if costs else None)


def _every_figure(comparison: RunComparison | None, colours: Mapping[str, int]) -> Html | None:
    if comparison is None or not comparison.rows:
        return None
    said = tag("summary", f"Every figure compared with {comparison.baseline}")
    return tag("details", said, comparison_table(comparison, colours))


def _distributions(digest: Digest, colours: Mapping[str, int], identity: str) -> Html | None:
    charts = [
        chart(ecdf(TITLES[metric], "ms", digest.curves[metric], colours), f"{identity}-{metric}")
        for metric in DRAWN
        if metric in digest.curves
    ]
    if GAPS in digest.curves:
        charts.append(chart(pauses("Pauses in the text", digest.curves[GAPS], colours), f"{identity}-{GAPS}"))
    if not charts:
        return None
    names = list(digest.summary.engines)
    return join(tag("h3", "Distributions"), legend(names, colours), tag("div", *charts, class_="charts"))


def _in_time(digest: Digest, colours: Mapping[str, int], identity: str) -> Html | None:
    made = time_chart(digest.course, colours)
    if made is None:
        return None
    gpus = [join(gpu_mark(n), gpu.name) for n, gpu in enumerate(digest.course.gpus) if gpu.lines]
    marks = legend(list(digest.course.engines), colours, gpus)
    return join(tag("h3", "Course of the run"), marks, chart(made, f"{identity}-time"))


def _failed(digest: Digest, colours: Mapping[str, int]) -> Html | None:
    table = failures_table(digest.failures, digest.start_ns, colours)
    return join(tag("h3", "What failed"), table) if table else None


def _notes(digest: Digest) -> Html | None:
    said = notes(digest.summary)
    return (
        join(tag("h3", "Notes"), tag("ul", *(tag("li", n) for n in said), class_="notes")) if said else None
    )


def _manifest(digest: Digest) -> Html:
    if not digest.manifest:
        return tag("p", "There is no manifest: what this run was made with is not known.")
    return join(tag("h3", "Manifest"), manifest_tables(digest.manifest))
