"""Samples: percentiles of a stream of values in bounded memory. Pure."""

from __future__ import annotations

import math
from bisect import insort

from loadgen.metrics.percentiles import rank

EXACT = 20_000
_PER_DECADE = 2302.585  # buckets: each 0.1 % wide


class Samples:
    """Exact nearest-rank percentiles of up to 20,000 values; of more, within 0.05 %."""

    def __init__(self, exact: int = EXACT) -> None:
        self.n = 0
        self.total = 0.0
        self.most = 0.0
        self._exact = exact
        self._values: list[float] = []
        self._buckets: dict[int, int] | None = None

    def add(self, value: float) -> None:
        self.n += 1
        self.total += value
        self.most = max(self.most, value)
        if self._buckets is not None:
            self._count(value)
            return
        insort(self._values, value)
        if self.n > self._exact:
            self._buckets = {}
            for v in self._values:
                self._count(v)
            self._values = []

    def _count(self, value: float) -> None:
        assert self._buckets is not None
        key = math.floor(math.log10(max(value, 1e-6)) * _PER_DECADE)
        self._buckets[key] = self._buckets.get(key, 0) + 1

    @property
    def mean(self) -> float | None:
        return self.total / self.n if self.n else None

    def percentile(self, p: float) -> float | None:
        """None of no samples."""
        if not self.n:
            return None
        wanted = rank(self.n, p)
        if self._buckets is None:
            return self._values[wanted]
        seen = 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen > wanted:
                return float(10 ** ((key + 0.5) / _PER_DECADE))
        return self.most
