"""Figures: what the LLM tab says of each engine while a run goes on. Pure.

Provisional until the run is over: tokens are counted as events and corrected by what completed requests say,
and a run that has not ended has not been judged. Then the summary's figures take their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.config import ConfigError
from loadgen.metrics.goodput import MAY_BE_MISSING, VALUES, Limit
from loadgen.plain import clean, number, percent
from loadgen.record import CANCELLED, FAILED, MEASURE, OK, WARMUP, RequestRecord
from loadgen.slo import parse_slo
from loadgen.validity.failures import SUSPECT_SHARE, VOID_SHARE
from loadgen.validity.finding import Level
from loadgen.validity.generator import SUSPECT_CPU_PERCENT, SUSPECT_LAG_MS, VOID_CPU_PERCENT
from loadgen.webui.samples import Samples

DEFAULT_SLO = ("interactive",)
WHOLE_S = 0.98
FEW = 20  # requests before a share of failures says anything

Row = dict[str, Any]


@dataclass
class Limits:
    """What a good request keeps, in words and as limits."""

    words: str
    limits: tuple[Limit, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Limits:
        """From SLO expressions; those of the preset `interactive` where there are none that a single request
        can keep."""
        for asked in (tuple(texts), DEFAULT_SLO):
            if not asked:
                continue
            try:
                slo = parse_slo([*asked, "goodput>0"])
            except ConfigError:
                continue
            chosen = [o for o in slo.limits if o.kind.figure in VALUES]
            words = ", ".join(f"{o.kind.title} {o.op} {o.limit:g} {o.kind.unit}" for o in chosen)
            return cls(words, tuple(o.as_limit for o in chosen))
        raise AssertionError("the default has limits")

    def met(self, record: RequestRecord) -> bool:
        return all(self._meets(limit, record) for limit in self.limits)

    @staticmethod
    def _meets(limit: Limit, record: RequestRecord) -> bool:
        value = _value(record, limit.figure)
        if value is None:
            return limit.figure in MAY_BE_MISSING
        if limit.reached and value == limit.bound:
            return True
        return value < limit.bound if limit.most else value > limit.bound


def _value(record: RequestRecord, figure: str) -> float | None:
    if figure == "decode_tokens_per_s":
        return 1000.0 / record.tpot_ms if record.tpot_ms else None
    if figure.startswith("scheduled_"):
        value = getattr(record, figure.removeprefix("scheduled_"))
        return None if value is None else value + (record.send_lag_ms or 0.0)
    found: float | None = getattr(record, figure)
    return found


@dataclass
class _Requests:
    """The measured requests of one engine, or of one traffic class of it."""

    ttft: Samples = field(default_factory=Samples)
    tpot: Samples = field(default_factory=Samples)
    lag: Samples = field(default_factory=Samples)
    ended: int = 0
    failed: int = 0
    good: int = 0
    output_tokens: int = 0
    events: int = 0

    def add(self, record: RequestRecord, good: bool) -> None:
        self.ended += 1
        self.failed += record.outcome == FAILED
        self.good += good
        if record.read_lag_ms is not None:
            self.lag.add(record.read_lag_ms)
        if record.outcome != OK:
            return
        self.output_tokens += record.output_tokens or 0
        self.events += record.events
        if record.ttft_ms is not None:
            self.ttft.add(record.ttft_ms)
        if record.tpot_ms is not None:
            self.tpot.add(record.tpot_ms)


@dataclass
class _Seconds:
    """The measured seconds of one engine."""

    events: float = 0.0
    measured_s: float = 0.0
    late: Samples = field(default_factory=Samples)
    cpu: dict[str, Samples] = field(default_factory=dict)  # by worker
    now: dict[str, tuple[int, float]] = field(default_factory=dict)  # in flight, and in which second
    newest: int = 0


class Figures:
    """`engines` are in their order; `simulated` those that are."""

    def __init__(self, scenario: str, engines: Iterable[str], slo: Iterable[str] = ()) -> None:
        self.scenario = scenario
        self.simulated: set[str] = set()
        self.doubts: list[str] = []  # about the whole run: a worker was lost
        self._limits = Limits.of(slo)
        self._seconds = {name: _Seconds() for name in engines}
        self._requests: dict[tuple[str, str], _Requests] = {(name, ""): _Requests() for name in engines}

    @property
    def good_means(self) -> str:
        return self._limits.words

    def add(self, record: RequestRecord) -> None:
        if record.phase == WARMUP or record.outcome == CANCELLED or record.engine not in self._seconds:
            return
        good = record.outcome == OK and self._limits.met(record)
        kind = record.traffic_class or ""
        for key in {(record.engine, ""), (record.engine, kind)}:
            self._requests.setdefault(key, _Requests()).add(record, good)

    def second(self, row: Mapping[str, Any]) -> None:
        """A row of windows.jsonl."""
        seconds = self._seconds.get(row.get("engine", ""))
        if seconds is None:
            return
        worker, t = str(row.get("worker")), int(row["t_ns"]) // 10**9
        seconds.newest = max(seconds.newest, t)
        seconds.now[worker] = t, row.get("in_flight") or 0
        if row.get("phase") == MEASURE and row.get("measured_s"):
            # In a second that a turn begins or ends in there may be tokens of the warm-up.
            if row["measured_s"] * (row.get("workers") or 1) >= WHOLE_S:
                seconds.events += row.get("tokens") or 0
                seconds.measured_s += row["measured_s"]
            seconds.late.add(row.get("loop_lag_ms") or 0.0)
            seconds.cpu.setdefault(worker, Samples()).add(row.get("cpu_percent") or 0.0)

    def tokens_per_event(self, engine: str) -> float:
        """As completed requests say; 1 before."""
        requests = self._requests.get((engine, ""))
        if requests is None or not requests.events or not requests.output_tokens:
            return 1.0
        return requests.output_tokens / requests.events

    def rows(self) -> list[Row]:
        """One an engine, and one for each class of its requests where there are several."""
        out = []
        for name in self._seconds:
            kinds = sorted(k for n, k in self._requests if n == name and k)
            for kind in ["", *(kinds if len(kinds) > 1 else [])]:
                out.append(self._row(name, kind))
        return out

    def _row(self, name: str, kind: str) -> Row:
        requests, seconds = self._requests[name, kind], self._seconds[name]
        level, reasons = self._level(name)
        tokens = requests.output_tokens if kind else seconds.events * self.tokens_per_event(name)
        return {
            "engine": name,
            "scenario": self.scenario,
            "class": kind,
            "simulated": name in self.simulated,
            "in_flight": None if kind else sum(v for t, v in seconds.now.values() if t >= seconds.newest - 3),
            "requests": requests.ended,
            "ttft_p50_ms": requests.ttft.percentile(50),
            "ttft_p95_ms": requests.ttft.percentile(95),
            "ttft_p99_ms": requests.ttft.percentile(99),
            "tpot_p50_ms": requests.tpot.percentile(50),
            "tokens_per_s": tokens / seconds.measured_s if seconds.measured_s else None,
            "goodput": requests.good / requests.ended if requests.ended else None,
            "failed": requests.failed,
            "lag_p99_ms": requests.lag.percentile(99),
            "validity": level.word,
            "reasons": reasons,
            "final": False,
        }

    def _level(self, name: str) -> tuple[Level, list[str]]:
        """What the checks that can be made by now say; the others are made when the run is over."""
        requests, seconds = self._requests[name, ""], self._seconds[name]
        found: list[tuple[Level, str]] = [(Level.SUSPECT, text) for text in self.doubts]
        if requests.failed and requests.ended >= FEW:
            share = requests.failed / requests.ended
            if share >= SUSPECT_SHARE:
                level = Level.VOID if share >= VOID_SHARE else Level.SUSPECT
                found.append((level, f"{percent(share)} failed"))
        cpu = max((s.mean or 0.0 for s in seconds.cpu.values()), default=0.0)
        if cpu >= SUSPECT_CPU_PERCENT:
            level = Level.VOID if cpu >= VOID_CPU_PERCENT else Level.SUSPECT
            found.append((level, f"the generator uses {cpu:.0f} % of a core"))
        late = seconds.late.percentile(95) or 0.0
        if late >= SUSPECT_LAG_MS:
            found.append((Level.SUSPECT, f"the generator is {number(late)} ms late"))
        found.sort(key=lambda f: -f[0])
        return (found[0][0] if found else Level.VALID), [text for _, text in found]


def final_rows(summary: Any, live: Iterable[Row]) -> list[Row]:
    """The rows of a run that is over, from its RunSummary; goodput and lag as they were counted."""
    validity = summary.validity
    out = []
    for row in live:
        figures = summary.engines.get(row["engine"])
        if figures is not None and row["class"]:
            figures = (figures.get("classes") or {}).get(row["class"])
        new = {**row, "in_flight": None if row["class"] else 0}
        if validity is not None:
            reasons = [clean(reason, 400) for reason in validity.reasons]
            new.update(validity=validity.level.word, reasons=reasons, final=True)
        if figures is not None:
            ttft, tpot = figures.get("ttft_ms") or {}, figures.get("tpot_ms") or {}
            new.update(
                requests=figures["counts"]["requests"],
                failed=figures["counts"]["failed"],
                tokens_per_s=figures["window"].get("throughput_tokens_per_s"),
                tpot_p50_ms=tpot.get("p50"),
                **{f"ttft_p{p}_ms": ttft.get(f"p{p}") for p in (50, 95, 99)},
            )
        out.append(new)
    return out


def shown(row: Row) -> dict[str, str]:
    """A row as Locust's table shows it."""
    name = f"{row['engine']} (simulated)" if row["simulated"] else row["engine"]
    failed = f"{row['failed']:,}"
    if row["failed"] and row["requests"]:
        failed += f" ({percent(row['failed'] / row['requests'])})"
    so_far = "" if row["final"] else " so far"
    return {
        "name": name,
        "scenario": row["scenario"] + (f": {row['class']}" if row["class"] else ""),
        "in_flight": "–" if row["in_flight"] is None else f"{row['in_flight']:,.0f}",
        "requests": f"{row['requests']:,}",
        **{f"ttft_{p}": _text(row[f"ttft_{p}_ms"], " ms") for p in ("p50", "p95", "p99")},
        "tpot": _text(row["tpot_p50_ms"], " ms"),
        "tokens": _text(row["tokens_per_s"]),
        "goodput": "–" if row["goodput"] is None else percent(row["goodput"]),
        "failures": failed,
        "lag": _text(row["lag_p99_ms"], " ms"),
        "validity": clean(f"{row['validity']}{so_far}" + "".join(f": {r}" for r in row["reasons"][:1]), 160),
    }


def _text(value: float | None, unit: str = "") -> str:
    return "–" if value is None else f"{number(value)}{unit}"


__all__ = ["Figures", "Limits", "Row", "final_rows", "shown"]
