"""Cost: what one event and one request take of the load generator, as measured on some machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).with_name("cost.json")  # benchmarks/cost.py writes it


@dataclass(frozen=True)
class Cost:
    """`event_us`, `request_us`: CPU of the process that sends, in microseconds, all that it does with them
    until they are in the journal. A worker spends `send_*_us` more on sending its records on, and the master
    `master_*_us` on taking them in.

    `journal_*_bytes`: of the journal; `channel_share`: of them that go through Locust's channel, compressed.
    `memory_mb`: of a process at rest, `memory_stream_kb`: for each stream at once. `source` says where, when
    and how that was.
    """

    event_us: float
    request_us: float
    send_event_us: float
    send_request_us: float
    master_event_us: float
    master_request_us: float
    journal_event_bytes: float
    journal_request_bytes: float
    channel_share: float
    memory_mb: float
    memory_stream_kb: float
    source: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cost:
        """Fields that are not known are left out. Raises KeyError if one is missing."""
        return cls(**{f.name: data[f.name] for f in fields(cls)})

    @classmethod
    def default(cls) -> Cost:
        """As benchmarks/cost.py has measured it."""
        return cls.from_dict(json.loads(MEASURED.read_text(encoding="utf-8")))


def fit(rows: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """(us an event, us a request) that explain the CPU time of these seconds best: least squares, neither
    negative. `rows` are those of windows.jsonl, of one engine; only seconds that were measured as a whole
    count, and they should differ in how many events a request has. Raises ValueError of too few."""
    import numpy as np
    from scipy.optimize import nnls

    found = [
        (r["tokens"], r["completions"] + r["failures"], r["cpu_percent"])
        for r in rows
        if r["measured_s"] == 1.0
    ]
    if len(found) < 4:
        raise ValueError(f"only {len(found)} whole seconds were measured")
    events, requests, percent = (np.array(column, dtype=float) for column in zip(*found, strict=True))
    # One percent of a core is 10,000 microseconds of a second.
    (event_us, request_us), _ = nnls(np.column_stack([events, requests]), percent * 1e4)
    return float(event_us), float(request_us)


def line_through(short: tuple[float, float], long: tuple[float, float]) -> tuple[float, float]:
    """(slope, value at 0) of the line through two points (x, y), neither below 0.

    >>> line_through((16, 48.0), (256, 528.0))
    (2.0, 16.0)
    """
    slope = max(0.0, (long[1] - short[1]) / (long[0] - short[0]))
    return slope, max(0.0, short[1] - slope * short[0])
