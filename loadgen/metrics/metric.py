"""What a metric is: a name, a unit, and its samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from loadgen.metrics.columns import Bools, Columns, Floats, Ints


class Metric(ABC):
    """One figure of which every request (or gap) gives a sample; the subclass's docstring is its definition.

    `name` is the key in the journal, the JSON summary and the report; its suffix is its unit. An `optional`
    metric is left out of a summary where it has no samples. `higher_is_better` is None for what says
    something of the generator or the network: no engine is better by it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    optional: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = False

    @abstractmethod
    def samples(self, columns: Columns, rows: Bools) -> Floats:
        """The samples of the rows that the mask picks: a new array, in any order, without NaN."""

    def counted(self, columns: Columns, rows: Bools) -> tuple[Floats, Ints]:
        """The samples as sorted values and how often each occurs: all of them, in less memory where many are
        alike."""
        values, counts = np.unique(self.samples(columns, rows), return_counts=True)
        return values, counts.astype(np.int64)

    def mean(self, columns: Columns, rows: Bools) -> float | None:
        """The mean of the samples, None of none."""
        samples = self.samples(columns, rows)
        return float(samples.mean()) if len(samples) else None


def present(values: Floats) -> Floats:
    """The values there are: None (NaN here) and anything that is not finite is left out, as a copy."""
    return np.array(values[np.isfinite(values)], dtype=np.float64)
