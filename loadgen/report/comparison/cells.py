"""The words and numbers of a comparison's tables, before any layout. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loadgen.compare.memory import NUMBERS, TITLES
from loadgen.compare.outcome import factor
from loadgen.compare.result import Row, RunComparison
from loadgen.compare.verdict import BETTER
from loadgen.report.plain import clean, number, plural

GIB = 2**30
# Figures by what they are called in a narrow table, with their unit there. Others are not in short tables.
SHORT = {
    "ttft_ms": ("TTFT", "ms"),
    "ttfa_ms": ("TTFA", "ms"),
    "tpot_ms": ("TPOT", "ms"),
    "decode_tokens_per_s": ("decode", "tok/s"),
    "e2e_ms": ("e2e", "ms"),
    "chunk_gap_ms": ("chunk gap", "ms"),
    "scheduled_ttft_ms": ("sched. TTFT", "ms"),
    "scheduled_e2e_ms": ("sched. e2e", "ms"),
    "throughput_tokens_per_s": ("throughput", "tok/s"),
    "requests_per_s": ("requests", "1/s"),
    "joules_per_output_token": ("energy", "J/tok"),
    "joules_per_request": ("energy", "J/req"),
}
LONG = {"first_event_ms": ("first event", "ms"), "headers_ms": ("head", "ms")}


def shown(comparison: RunComparison, *, everything: bool = False) -> list[Row]:
    """The rows of a table: those of the usual figures, or all. TTFA is unusual where it is TTFT, as it is for
    models that don't reason."""
    if everything:
        return list(comparison.rows)
    known = {
        (r.engine, r.baseline, r.figure, r.statistic): (r.value, r.baseline_value, r.ratio)
        for r in comparison.rows
    }

    def usual(row: Row) -> bool:
        ttft, own = (
            known.get((row.engine, row.baseline, figure, row.statistic)) for figure in ("ttft_ms", row.figure)
        )
        return row.figure in SHORT and (row.figure != "ttfa_ms" or own != ttft)

    return [row for row in comparison.rows if usual(row)]


def name(row: Row) -> tuple[str, str, str]:
    """(figure, statistic, unit); a figure of one value has no statistic."""
    title, unit = {**SHORT, **LONG}.get(row.figure, (row.title, row.unit))
    return title, "" if row.statistic == "value" else row.statistic, unit


def values(row: Row) -> tuple[str, str]:
    """The engine's and the baseline's; `~` marks a percentile of too few samples."""
    mark = "~" if row.rough else ""
    return tuple(mark + number(v) if v is not None else "-" for v in (row.value, row.baseline_value))  # type: ignore[return-value]


def interval(row: Row) -> str:
    return f"{factor(row.low)} to {factor(row.high)}" if row.low is not None and row.high is not None else "-"


def answer(row: Row) -> str:
    return clean(row.better, 64) if row.answer == BETTER else row.answer


def pairs(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by (engine, baseline)."""
    out: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        out.setdefault((row.engine, row.baseline), []).append(row)
    return out


def basis(comparison: RunComparison, rows: Iterable[Row]) -> Iterator[str]:
    """What the intervals and answers rest on, in a line each."""
    rows = list(rows)
    blocks = max((row.blocks for row in rows), default=0)
    methods = list(dict.fromkeys(row.method for row in rows if row.method))
    yield f"{comparison.confidence * 100:.0f} % intervals: {plural(blocks, 'block')}; {'; '.join(methods)}"
    adjusted = ", answers corrected for the number of claims" if any(row.adjusted for row in rows) else ""
    yield f"margin {(comparison.margin - 1) * 100:.3g} %{adjusted}"
    yield from (clean(note, 600) for note in comparison.notes)
    if any(row.rough for row in rows):
        yield "~ rests on too few samples for this percentile"
    if comparison.simulated:
        yield f"simulated engines ({', '.join(comparison.simulated)}): this says nothing about real servers"


def made_of(comparison: RunComparison) -> Iterator[str]:
    """A line an engine: what it is, where that is known."""
    from loadgen.compare.quantisation import quantisation

    for engine in comparison.engines:
        info = comparison.infos.get(engine, {})
        words = " ".join(str(info[k]) for k in ("server", "version") if info.get(k)) or str(
            info.get("kind", "")
        )
        model, weights = str(info.get("model") or ""), quantisation(info) or ""
        parts = [words, model, "" if weights.lower() in model.lower() else weights]
        simulated = " (simulated)" if engine in comparison.simulated else ""
        if any(parts) or simulated:
            yield f"{clean(engine)}: {', '.join(clean(p, 60) for p in parts if p)}{simulated}"


def memory_cells(comparison: RunComparison) -> Iterator[tuple[str, list[str]]]:
    """(label, a cell an engine) of what is known of memory, energy and cost; nothing where nothing is."""
    parts = comparison.parts
    memory, energy, cost = (
        [parts.get(part, {}).get(engine, {}) for engine in comparison.engines]
        for part in ("memory", "energy", "cost")
    )
    for key in NUMBERS:
        cells = [_size(of.get(key, {})) for of in memory]
        if any(cells):
            yield f"{TITLES[key]}, GiB", [cell or "-" for cell in cells]
    for label, of, key in (
        ("energy, J/token", energy, "joules_per_output_token"),
        ("energy, J/request", energy, "joules_per_request"),
        ("mean power, W", energy, "mean_power_w"),
        ("GPUs", cost, "gpus"),
        ("tokens/s per GPU", cost, "tokens_per_s_per_gpu"),
        ("cost of 1M tokens", cost, "per_million_output_tokens"),
    ):
        if any(key in one for one in of):
            yield (
                label,
                [f"{one[key]}" if key == "gpus" and key in one else number(one.get(key)) for one in of],
            )


def _size(of: dict[str, Any]) -> str:
    tokens = f"{of['tokens']:,} tokens" if "tokens" in of else ""
    if "bytes" not in of:
        return f"- ({tokens})" if tokens else ""
    size = number(of["bytes"] / GIB)
    return f"{size} ({tokens})" if tokens else size


def sources(comparison: RunComparison) -> Iterator[str]:
    """Where the numbers of the memory table are from, and what is missing."""
    memory = comparison.parts.get("memory", {})
    for key in NUMBERS:
        by: dict[str, list[str]] = {}
        for engine, of in memory.items():
            if source := of.get(key, {}).get("source"):
                by.setdefault(source, []).append(clean(engine))
        if by:
            yield f"{TITLES[key]}: " + "; ".join(f"{source} ({', '.join(who)})" for source, who in by.items())
    for engine, of in memory.items():
        if missing := [text.partition(":")[0] for text in of.get("missing", ())]:
            yield f"not known of {clean(engine)}: {', '.join(missing)} (its log may tell: --engine-log)"
    if of_all := [
        clean(e) for e, of in comparison.parts.get("energy", {}).items() if not of.get("gpus_named")
    ]:
        yield f"energy: of all GPUs that were watched ({', '.join(of_all)})"
    counted: dict[str, list[str]] = {}
    for engine, of in comparison.parts.get("cost", {}).items():
        counted.setdefault(of["gpus_source"], []).append(clean(engine))
    if counted:
        yield "GPUs: " + "; ".join(f"{source} ({', '.join(who)})" for source, who in counted.items())


def against_baseline(comparison: RunComparison) -> Iterator[str]:
    """A sentence an engine whose memory or cost can be held against its baseline's."""
    for engine, memory in comparison.parts.get("memory", {}).items():
        if "ratio" in (against := memory.get("against_baseline", {})):
            pair = f"{clean(engine)} / {clean(against['baseline'])}"
            yield f"least memory needed: {pair} {factor(against['ratio'])}"
    for engine, cost in comparison.parts.get("cost", {}).items():
        against = cost.get("against_baseline", {})
        if "gpu_hour" in cost and "ratio" in against:
            low, high = against.get("low"), against.get("high")
            sure = f" ({factor(low)} to {factor(high)})" if low and high else ""
            pair = f"{clean(engine)} / {clean(against['baseline'])}"
            ratio = f"{factor(against['ratio'])}{sure}"
            yield f"cost of a token: {pair} {ratio}, at {cost['gpu_hour']:g} a GPU hour"


def difference_cells(comparison: RunComparison) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(what, a, b) of the differences that matter, and the names of those that do not."""
    matter, rest = [], []
    for one in comparison.differences:
        if one["matters"]:
            matter.append((clean(one["what"], 80), _value(one["a"]), _value(one["b"])))
        else:
            rest.append(clean(one["what"], 80))
    return matter, rest


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(value, 120)
