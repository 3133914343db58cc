"""EngineRows: from one engine's /metrics texts to the rows of engine.jsonl. Pure."""

from __future__ import annotations

from typing import Any

from loadgen.engines.metricnames import engine_fields

RATES = {
    "prompt_tokens_per_s": "prompt_tokens_total",
    "generation_tokens_per_s": "generation_tokens_total",
}


class EngineRows:
    """The rows of one engine, scrape after scrape. `model` tells its lines from other models' lines.

    Rates are a counter's difference to the scrape before, over the time between them: a server's own gauges
    of that kind start anew whenever anybody scrapes them. They are absent on the first scrape, after an error
    and when a counter has gone down (the server was started again).
    """

    def __init__(self, engine: str, model: str | None = None) -> None:
        self._engine = engine
        self._model = model
        self._before: tuple[int, dict[str, float]] | None = None
        self._trouble: str | None = None

    def sample(self, text: str, t_ns: int, mono_ns: int, scrape_ms: float) -> dict[str, Any] | None:
        """The row of a text that the server gave at `t_ns` (wall) and `mono_ns`; None if the text holds no
        metric that is known here."""
        fields = engine_fields(text, self._model)
        if not fields:
            return None
        row: dict[str, Any] = {"t_ns": t_ns, "engine": self._engine, **fields}
        row.update(self._rates(fields, mono_ns))
        row["scrape_ms"] = round(scrape_ms, 3)
        self._before = (mono_ns, fields)
        self._trouble = None
        return row

    def error(self, state: str, sentence: str, t_ns: int) -> dict[str, Any] | None:
        """The row that tells of a failed scrape; None if the engine was in this state at the last one too."""
        self._before = None
        if state == self._trouble:
            return None
        self._trouble = state
        return {"t_ns": t_ns, "engine": self._engine, "error": sentence}

    def _rates(self, fields: dict[str, float], mono_ns: int) -> dict[str, float]:
        if self._before is None:
            return {}
        before_ns, before = self._before
        seconds = (mono_ns - before_ns) / 1e9
        counters = [name for name in fields if name.endswith("_total") and name in before]
        if seconds <= 0 or any(fields[name] < before[name] for name in counters):
            return {}
        return {
            rate: (fields[name] - before[name]) / seconds for rate, name in RATES.items() if name in counters
        }
