"""The summary on a terminal: 80 columns, readable without colour.

Every text is printed as rich Text, never as markup, and passes `clean` first.
"""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.metrics import METRICS
from loadgen.report.levels import level_table
from loadgen.report.notes import notes
from loadgen.report.offered import is_open, is_shaped, load_words
from loadgen.report.plain import clean, number, percent
from loadgen.report.summary import RunSummary, classes
from loadgen.report.workload import lengths

LABEL = 22
CELL = 23
SHOWN = ("ttft_ms", "first_event_ms", "tpot_ms", "decode_tokens_per_s", "e2e_ms", "chunk_gap_ms")
WHERE_PRESENT = ("ttfa_ms", "scheduled_ttft_ms", "scheduled_e2e_ms")
OF_CLASS = (
    *("requests ok", "failed", "TTFT", "TPOT", "end to end", "scheduled"),
    *("throughput", "prompt tokens", "cached"),
)
SHOWN_NOTES = ("blocks", "gpu_throttling", "open_loop")
# Label, unit, key in the figures' `gpu`, and what it is divided by.
GPU = (
    ("energy", "J/token", "joules_per_output_token", 1),
    ("energy", "J/req", "joules_per_request", 1),
    ("GPU power", "W", "mean_power_w", 1),
    ("GPU memory", "GiB", "peak_memory_bytes", 2**30),
)
RATIOS = (
    ("ttft_ms", "p50", "TTFT p50"),
    ("tpot_ms", "p50", "TPOT p50"),
    ("decode_tokens_per_s", "p50", "decode speed p50"),
    ("e2e_ms", "p50", "e2e p50"),
    ("window", "throughput_tokens_per_s", "throughput"),
)


def print_summaries(summaries: list[RunSummary], console: Console) -> None:
    """Print every run: its tables, ratios and notes."""
    for n, summary in enumerate(summaries):
        if n:
            console.print()
        _print_run(summary, console)


def _print_run(summary: RunSummary, console: Console) -> None:
    simulated = summary.simulated
    console.print(Text(f"{clean(summary.scenario)} · {clean(summary.name)}", style="bold"))
    made_with = _made_with(summary)
    if made_with:
        console.print(Text(made_with))
    for line in _engine_lines(summary):
        console.print(Text(line, style="dim"))
    if not summary.engines:
        console.print(Text("no engine was measured"))
    names = list(summary.engines)
    fit = max(1, (console.width - LABEL - 4) // (CELL + 3))
    for start in range(0, len(names), fit):
        some = names[start : start + fit]
        console.print(_table(summary, some), no_wrap=True)
        for name, figures in classes(summary.engines).items():
            console.print(_class_table(name, figures, some), no_wrap=True)
        for name in some:
            if summary.engines[name].get("levels"):
                console.print(level_table(name, summary.engines[name]), no_wrap=True)
        if simulated:
            console.print(
                Text(
                    f"simulated engines ({', '.join(simulated)}): this says nothing about real servers",
                    style="bold yellow",
                )
            )
    lines = _ratios(summary, console.width)
    if lines:
        console.print()
    for line in lines:
        console.print(Text(line))
    found = notes(summary)
    if found:
        console.print()
    bullets = Table.grid(padding=(0, 1, 0, 0))
    for note in found:
        bullets.add_row(Text("-"), Text(clean(note, 1000)))
    console.print(bullets)
    _print_validity(summary, console)


def _print_validity(summary: RunSummary, console: Console) -> None:
    """One line, and the reasons beneath it, with those notes of the checks that nobody else makes."""
    if summary.validity is None or not summary.engines:
        return
    level = summary.validity.level
    console.print(Text(f"validity: {level.word}", style=("bold green", "bold yellow", "bold red")[level]))
    reasons = Table.grid(padding=(0, 1, 0, 0))
    for finding in summary.validity.findings:
        if finding.level or finding.check in SHOWN_NOTES:
            word = finding.level.word if finding.level else "note"
            reasons.add_row(Text("-"), Text(f"{word}: {clean(finding.sentence(), 400)}"))
    console.print(reasons)


def _made_with(summary: RunSummary) -> str:
    s = summary.settings
    if not s:
        return ""
    parts = [
        *load_words(s),
        lengths(s),
        _arrival(s),
        clean(summary.state) if summary.state != "complete" else "",
    ]
    return ", ".join(p for p in parts if p)


def _arrival(s: dict[str, Any]) -> str:
    said = s.get("users") != 1 and s.get("arrival") and not is_open(s) and not is_shaped(s)
    return clean(s["arrival"]) if said else ""


def _engine_lines(summary: RunSummary) -> list[str]:
    lines = []
    for info in summary.infos:
        server = " ".join(str(info.get(k)) for k in ("server", "version") if info.get(k)) or info.get(
            "kind", ""
        )
        model = f", {clean(info.get('model'), 60)}" if info.get("model") else ""
        simulated = " (simulated)" if info.get("simulated") is True else ""
        lines.append(f"{clean(info.get('name'))}: {clean(server, 60)}{simulated}{model}")
    return lines


def _class_table(name: str, figures: dict[str, dict[str, Any]], names: list[str]) -> Table:
    """What matters of one traffic class."""
    table = _empty_table(f"class {clean(name)}", names)
    there = [figures[n] for n in names if n in figures]
    for label, cells in _rows(there, list(figures.values())):
        if label.startswith(OF_CLASS):
            by_name = dict(zip([n for n in names if n in figures], cells, strict=True))
            table.add_row(Text(label), *(Text(by_name.get(n, _one("-"))) for n in names))
    return table


def _table(summary: RunSummary, names: list[str]) -> Table:
    title = f"{clean(summary.scenario)} · simulated engines" if summary.simulated else clean(summary.scenario)
    table = _empty_table(title, names)
    engines = [summary.engines[n] for n in names]
    for label, cells in _rows(engines, list(summary.engines.values())):
        table.add_row(Text(label), *(Text(c) for c in cells))
    return table


def _empty_table(title: str, names: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left", pad_edge=False)
    table.add_column("", width=LABEL, overflow="fold")
    for name in names:
        heading = Text(f"{clean(name, CELL)}\n", style="bold")
        heading.append(_three("p50", "p95", "p99"), style="not bold")
        table.add_column(heading, width=CELL, overflow="fold")
    return table


def _rows(engines: list[dict[str, Any]], everyone: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Rows of the table; all engines decide which optional rows there are, so that tables are alike."""

    def each(cell: Any) -> list[str]:
        return [cell(e) for e in engines]

    rows = [
        ("requests ok", each(lambda e: _of(e["counts"]["ok"], e["counts"]["requests"]))),
        ("failed", each(lambda e: _failures(e["counts"]))),
    ]
    if any("replicas" in e["counts"] for e in everyone):
        rows.append(("by replica", each(lambda e: _by_replica(e["counts"]))))
    if any(e["counts"]["cancelled"] for e in everyone):
        rows.append(("cancelled", each(lambda e: _one(f"{e['counts']['cancelled']:,}"))))
    for metric in METRICS:
        shown = metric.name in SHOWN
        if metric.name in WHERE_PRESENT:
            shown = any(_differs(e, metric.name) for e in everyone)
        if shown:
            label = f"{metric.title:<{LABEL - 6}}{metric.unit:>6}"
            rows.append((label, each(lambda e, name=metric.name: _percentiles(e.get(name)))))

    def window(label: str, unit: str, key: str) -> tuple[str, list[str]]:
        return f"{label:<{LABEL - 6}}{unit:>6}", each(lambda e: _one(number(e["window"][key])))

    server = []
    if any("server_concurrency" in e["window"] for e in everyone):
        server = [("in the server", each(lambda e: _one(number(e["window"].get("server_concurrency")))))]
    rows += [
        window("throughput", "tok/s", "throughput_tokens_per_s"),
        *_offered_rows(engines, everyone),
        window("requests", "1/s", "requests_per_s"),
        window("concurrency", "", "concurrency"),
        *server,
        *_gpu_rows(engines, everyone),
        ("Little's residual", each(lambda e: _one(_share(e["window"]["littles_residual"])))),
        ("turns complete", each(lambda e: _turns(e["window"]))),
        ("output as asked", each(lambda e: _as_asked(e["counts"]))),
        ("prompt tokens", each(lambda e: _range(e["counts"]))),
        ("cached tokens", each(lambda e: _cached(e["counts"]))),
        ("warm-up, left out", each(lambda e: _one(f"{e['counts'].get('warmup_requests', 0):,}"))),
    ]
    return rows


def _offered_rows(
    engines: list[dict[str, Any]], everyone: list[dict[str, Any]]
) -> list[tuple[str, list[str]]]:
    """What an open loop offered; nothing in a closed one."""
    if not any("open_loop" in e for e in everyone):
        return []
    offered = [e.get("open_loop", {}) for e in engines]
    rows = [(f"{'offered':<{LABEL - 6}}{'1/s':>6}", [_one(number(o.get("offered_per_s"))) for o in offered])]
    for key, label in (("late", "sent late"), ("dropped", "dropped")):
        if any(e.get("open_loop", {}).get(key) for e in everyone):
            rows.append((label, [_one(f"{o.get(key, 0):,}") for o in offered]))
    return rows


def _gpu_rows(engines: list[dict[str, Any]], everyone: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """What is known of the GPUs; nothing where nobody watched them."""
    rows = []
    for label, unit, key, scale in GPU:
        if any(key in e.get("gpu", {}) for e in everyone):
            values = [e.get("gpu", {}).get(key) for e in engines]
            cells = [_one(number(None if v is None else v / scale)) for v in values]
            rows.append((f"{label:<{LABEL - 7}}{unit:>7}", cells))
    return rows


def _three(*values: str) -> str:
    return " ".join(f"{v:>7}" for v in values)


def _one(value: str) -> str:
    return f"{value:>7}"


def _of(part: int, whole: int) -> str:
    return _one(f"{part:,}") + f" of {whole:,}"


def _percentiles(stats: dict[str, Any] | None) -> str:
    if not stats or not stats["n"]:
        return _one("-")
    p99 = ("~" if stats.get("p99_rough") else "") + number(stats["p99"])
    return _three(number(stats["p50"]), number(stats["p95"]), p99)


def _differs(figures: dict[str, Any], name: str) -> bool:
    """Whether a metric says more than the plain one: TTFA is TTFT for models that don't reason."""
    stats = figures.get(name)
    if not stats or not stats["n"]:
        return False
    return name != "ttfa_ms" or any(stats[k] != figures["ttft_ms"][k] for k in ("n", "mean"))


def _by_replica(counts: dict[str, Any]) -> str:
    return " + ".join(f"{n:,}" for n in counts.get("replicas", {}).values()) or _one("-")


def _failures(counts: dict[str, Any]) -> str:
    kinds = counts["failed_by_kind"]
    return ",\n".join(f"{n:>7,} {clean(kind, CELL - 9)}" for kind, n in kinds.items()) or _one("0")


def _failed(counts: dict[str, Any]) -> str:
    return f"{counts['failed']:,} of {counts['requests']:,}"


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _turns(window: dict[str, Any]) -> str:
    done, not_done = window["turns_complete"], window["turns_incomplete"]
    return _of(done, done + not_done) if not_done else _one(f"{done}")


def _as_asked(counts: dict[str, Any]) -> str:
    if not counts["output_asked"]:
        return _one("-")
    return _of(counts["output_as_asked"], counts["output_asked"])


def _range(counts: dict[str, Any]) -> str:
    low, high = counts["prompt_tokens_min"], counts["prompt_tokens_max"]
    if low is None:
        return "not reported"
    return _one(f"{low:,}") if low == high else f"{low:,} to {high:,}"


def _cached(counts: dict[str, Any]) -> str:
    if counts["cached_tokens"] is None:
        return "not reported"
    return _one(f"{counts['cached_tokens']:,}") + f", at most {counts['cached_tokens_max']:,}"


def _ratios(summary: RunSummary, width: int) -> list[str]:
    """Plain ratios of every further engine to the first: numbers, no verdicts."""
    names = list(summary.engines)
    counts = {n: e["counts"] for n, e in summary.engines.items()}
    lines = []
    for name in names[1:]:
        pair = (name, names[0])
        if dead := [n for n in pair if counts[n]["failed"] and not counts[n]["ok"]]:
            # There may be a throughput: tokens came, of answers that broke off.
            none_of = " and ".join(clean(n) for n in dead)
            lines.append(f"{clean(name)} / {clean(names[0])}: no request of {none_of} succeeded")
            continue
        parts = []
        for key, part, label in RATIOS:
            if part != "throughput_tokens_per_s" and summary.engines[name].get("levels"):
                continue  # of requests at other loads
            a = summary.engines[name][key].get(part)
            b = summary.engines[names[0]][key].get(part)
            if a is not None and b:
                parts.append(f"{label} {a / b:.2f}")
        if parts:
            parts += [f"{clean(n)} failed {_failed(counts[n])}" for n in pair if counts[n]["failed"]]
            lines += _packed(f"{clean(name)} / {clean(names[0])}:", parts, width)
    return lines


def _packed(start: str, parts: list[str], width: int) -> list[str]:
    """Lines of whole parts: a figure is not torn from its name by the end of a line."""
    lines = [start]
    for n, part in enumerate(parts):
        text = part + ("," if n < len(parts) - 1 else "")
        if len(lines[-1]) + 1 + len(text) <= width:
            lines[-1] += f" {text}"
        else:
            lines.append(f"  {text}")
    return lines
