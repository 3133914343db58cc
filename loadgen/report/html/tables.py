"""Tables of a run: the figures of each engine, every compared row, what failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadgen.compare.result import RunComparison
from loadgen.compare.verdict import BETTER
from loadgen.metrics import METRICS
from loadgen.report.comparison import cells
from loadgen.report.html.failures import MOST_KINDS, Failures
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.words import duration, engine_mark, factor, interval
from loadgen.report.plain import number, percent, plural

Figures = Mapping[str, Any]
Cell = Callable[[Figures], "Html | None"]

FIRST = ("ttft_ms", "first_event_ms", "tpot_ms", "decode_tokens_per_s", "e2e_ms", "chunk_gap_ms")
SOMETIMES = ("ttfa_ms", "scheduled_ttft_ms", "scheduled_e2e_ms")
GIB = 2**30


def figures_table(engines: Mapping[str, Figures], colours: Mapping[str, int]) -> Html:
    """Median, p95 and p99 of what each request has, and what the window has one value of."""
    head = tag(
        "tr",
        tag("th", "figure", scope="col"),
        *(tag("th", engine_mark(name, colours), scope="col", class_="number") for name in engines),
    )
    rows = []
    for metric in METRICS:
        if _shown(metric.name, engines):
            cells = [_stats(e.get(metric.name)) for e in engines.values()]
            rows.append(_row(metric.title, metric.unit, cells))
    for label, unit, cell in (*_WINDOW, *_GPU, *_COUNTS):
        cells = [cell(e) for e in engines.values()]
        if any(c is not None for c in cells):
            rows.append(_row(label, unit, cells))
    caption = tag(
        "caption", "Large: median or the value. Small: p95 · p99; ~ rests on fewer than 1,000 samples."
    )
    return tag(
        "div",
        tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="figures"),
        class_="scroll",
    )


def _row(label: str, unit: str, cells: Sequence[Html | None]) -> Html:
    title = tag("th", label, tag("small", unit) if unit else None, scope="row")
    return tag("tr", title, *(tag("td", c or "–", class_="number") for c in cells))


def _shown(metric: str, engines: Mapping[str, Figures]) -> bool:
    return metric in FIRST or (metric in SOMETIMES and any(_says_more(e, metric) for e in engines.values()))


def _stats(stats: Mapping[str, Any] | None) -> Html | None:
    if not stats or not stats["n"]:
        return None
    rough = "~" if stats.get("p99_rough") else ""
    return join(number(stats["p50"]), tag("small", f"{number(stats['p95'])} · {rough}{number(stats['p99'])}"))


def _says_more(figures: Figures, name: str) -> bool:
    stats = figures.get(name)
    if not stats or not stats["n"]:
        return False
    return name != "ttfa_ms" or any(stats[k] != figures["ttft_ms"][k] for k in ("n", "mean"))


def _of(part: str, key: str, scale: float = 1.0) -> Cell:
    def cell(figures: Figures) -> Html | None:
        value = figures.get(part, {}).get(key)
        return None if value is None else join(number(value / scale))

    return cell


def _share(part: str, key: str) -> Cell:
    def cell(figures: Figures) -> Html | None:
        value = figures.get(part, {}).get(key)
        return None if value is None else join(percent(value))

    return cell


def _requests(figures: Figures) -> Html:
    counts = figures["counts"]
    return join(f"{counts['ok']:,}", tag("small", f"of {counts['requests']:,}"))


def _turns(figures: Figures) -> Html:
    done, cut = figures["window"]["turns_complete"], figures["window"]["turns_incomplete"]
    return join(f"{done:,}", tag("small", f"and {cut:,} cut short") if cut else None)


def _prompts(figures: Figures) -> Html | None:
    low, high = figures["counts"]["prompt_tokens_min"], figures["counts"]["prompt_tokens_max"]
    if low is None:
        return None
    return join(f"{low:,}" if low == high else f"{low:,} to {high:,}")


_WINDOW: tuple[tuple[str, str, Cell], ...] = (
    ("throughput", "tokens/s", _of("window", "throughput_tokens_per_s")),
    ("requests", "1/s", _of("window", "requests_per_s")),
    ("concurrency", "in flight", _of("window", "concurrency")),
    ("in the server", "in flight", _of("window", "server_concurrency")),
)
_GPU: tuple[tuple[str, str, Cell], ...] = (
    ("energy per output token", "J", _of("gpu", "joules_per_output_token")),
    ("energy per request", "J", _of("gpu", "joules_per_request")),
    ("GPU power", "W", _of("gpu", "mean_power_w")),
    ("GPU memory", "GiB", _of("gpu", "peak_memory_bytes", GIB)),
)
_COUNTS: tuple[tuple[str, str, Cell], ...] = (
    ("Little's residual", "", _share("window", "littles_residual")),
    ("requests ok", "", _requests),
    ("turns complete", "", _turns),
    ("prompt tokens", "", _prompts),
)


def comparison_table(comparison: RunComparison, colours: Mapping[str, int]) -> Html:
    """Every row of the comparison, and what it rests on."""
    rows = []
    for row in comparison.rows:
        better = row.better if row.answer == BETTER else None
        said = join(engine_mark(better, colours), " better") if better else row.answer
        title, statistic, unit = cells.name(row)
        mine, theirs = cells.values(row)
        rows.append(
            tag(
                "tr",
                tag("th", title, tag("small", f"{statistic} {unit}"), scope="row"),
                tag("td", mine, tag("small", row.engine), class_="number"),
                tag("td", theirs, tag("small", row.baseline), class_="number"),
                tag("td", factor(row.ratio), tag("small", interval(row.low, row.high)), class_="number"),
                tag("td", said, tag("small", plural(row.blocks, "block"))),
                title=row.sentence,
            )
        )
    heads = ("figure", "engine", "baseline", "engine / baseline", "answer")
    numbers = range(1, 4)
    head = tag(
        "tr",
        *(tag("th", h, scope="col", class_="number" if n in numbers else None) for n, h in enumerate(heads)),
    )
    basis = cells.basis(comparison, comparison.rows) if comparison.rows else ()
    caption = tag("caption", ". ".join(basis))
    table = tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="figures")
    return tag("div", table, class_="scroll")


def cost_table(comparison: RunComparison, colours: Mapping[str, int]) -> Html | None:
    """Memory, energy and cost of each engine with where the numbers are from; None where nothing is known."""
    rows = [
        tag("tr", tag("th", label, scope="row"), *(tag("td", cell, class_="number") for cell in row))
        for label, row in cells.memory_cells(comparison)
    ]
    if not rows:
        return None
    names = (
        tag("th", engine_mark(name, colours), scope="col", class_="number") for name in comparison.engines
    )
    head = tag("thead", tag("tr", tag("th", "figure", scope="col"), *names))
    table = tag("div", tag("table", head, tag("tbody", *rows), class_="figures"), class_="scroll")
    notes = [*cells.against_baseline(comparison), *cells.sources(comparison)]
    return join(table, tag("ul", *(tag("li", note) for note in notes), class_="notes small"))


def differences_table(comparison: RunComparison) -> Html | None:
    """What differs between two runs made apart; None where nothing does."""
    matter, rest = cells.difference_cells(comparison)
    if not matter and not rest:
        return None
    rows = [tag("tr", tag("th", what, scope="row"), tag("td", a), tag("td", b)) for what, a, b in matter]
    head = tag("tr", *(tag("th", h, scope="col") for h in ("what differs", *comparison.runs)))
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="figures") if rows else None
    others = (
        tag("p", f"Also different, but of no matter to the figures: {', '.join(rest)}.") if rest else None
    )
    return join(tag("div", table, class_="scroll") if table else None, others)


def failures_table(found: Sequence[Failures], start_ns: int, colours: Mapping[str, int]) -> Html | None:
    """Every kind of failure with some samples; None where nothing failed."""
    if not found:
        return None
    parts = []
    for kind in found[:MOST_KINDS]:
        head = join(
            engine_mark(kind.engine, colours),
            " ",
            tag("code", kind.kind),
            f" {plural(kind.count, 'request')}",
        )
        samples = tag("ul", *(_sample(row, start_ns) for row in kind.rows), class_="samples")
        parts.append(tag("details", tag("summary", head), samples, open=len(found) <= 3))
    if (more := len(found) - MOST_KINDS) > 0:
        parts.append(tag("p", f"{plural(more, 'further kind')}, less frequent, are in the journal."))
    return join(*parts)


def _sample(row: Mapping[str, Any], start_ns: int) -> Html:
    at_ns = row.get("sent_ns") or row.get("point_ns") or 0
    facts = [f"{duration(max(0.0, (at_ns - start_ns) / 1e9))} into the run"] if at_ns and start_ns else []
    facts += [f"{k} {row[k]}" for k in ("phase", "turn", "user", "sequence", "status") if k in row]
    if row.get("response_id"):
        facts.append(f"response {row['response_id']}")
    said = tag("pre", row["error_text"]) if row.get("error_text") else None
    return tag("li", said, tag("small", ", ".join(facts)))
