import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.columns import ColumnBuilder
from loadgen.metrics.counts import count

rows = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 10**6), max_size=5)), max_size=12)


def built(some):
    builder = ColumnBuilder()
    for n, (_, events) in enumerate(some):
        builder.add({"sent_ns": n, "ttft_ms": n / 2, "event_us": events, "traffic_class": "xy"[n % 2]})
    return builder.build()


@given(rows)
def test_the_picked_rows_are_those_that_were_built_alone(some):
    mask = np.array([pick for pick, _ in some], dtype=np.bool_)
    picked = built(some).picked(mask)
    kept = [n for n, (pick, _) in enumerate(some) if pick]
    assert picked.whole["sent_ns"].tolist() == kept
    assert picked.number["ttft_ms"].tolist() == [n / 2 for n in kept]
    assert picked.word["traffic_class"].tolist() == ["xy"[n % 2] for n in kept]
    events = [picked.event_us[a:b].tolist() for a, b in zip(picked.starts, picked.starts[1:], strict=False)]
    assert events == [some[n][1] for n in kept]
    assert len(picked) == len(kept)


def test_requests_are_counted_by_replica():
    builder = ColumnBuilder()
    for replica in (0, 1, 1, None):
        builder.add({"sent_ns": 1, **({} if replica is None else {"replica": replica})})
    columns = builder.build()
    every = np.ones(4, dtype=np.bool_)
    assert count(columns, every)["replicas"] == {"0": 1, "1": 2}
    assert "replicas" not in count(columns, np.array([False, False, False, True]))
