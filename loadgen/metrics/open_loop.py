"""What an open loop offered, and whether the generator kept the schedule.

- offered_per_s = requests that were scheduled / seconds in which they were due. Beside it stands the window's
  requests_per_s, the rate at which they were served.
- late = requests that were sent more than LATE_MS after their time; late_share = late / sent.
- dropped = requests that were never sent, since as many as --max-in-flight allows were in flight.
- peak_in_flight: the most at once in any turn (over several workers, the sum of their peaks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns
from loadgen.metrics.send_lag import LATE_MS
from loadgen.metrics.turns import Turn


def open_loop(columns: Columns, turns: Sequence[Turn]) -> dict[str, Any] | None:
    """Over these turns; None in a closed loop."""
    known = [turn for turn in turns if turn.schedule_s is not None]
    if not known:
        return None
    lags = [columns.scheduled_lag_ms[columns.of_turn(turn.turn)] for turn in known]
    sent = sum(len(lag) for lag in lags)
    late = sum(int((np.nan_to_num(lag) > LATE_MS).sum()) for lag in lags)
    scheduled = sum(turn.scheduled for turn in known)
    seconds = sum(turn.schedule_s or 0.0 for turn in known)
    return {
        "scheduled": scheduled,
        "schedule_s": seconds,
        "offered_per_s": scheduled / seconds if seconds > 0 else None,
        "late": late,
        "late_share": late / sent if sent else 0.0,
        "dropped": sum(turn.dropped for turn in known),
        "peak_in_flight": max(turn.peak_in_flight for turn in known),
    }
