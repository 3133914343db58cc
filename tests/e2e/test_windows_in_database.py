"""Seconds in a real database: exact points take the place of provisional ones and add up to the summary."""

from pathlib import Path

import orjson
import pytest

from loadgen.config import InfluxdbSpec
from loadgen.report import compute
from loadgen.sinks.delivery import Delivery, finish
from loadgen.sinks.influxdb import InfluxWriter
from tests.support.influxdb import Bucket
from tests.unit.metrics.rows import T0, row
from tests.unit.report.made import make_run

S = 10**9
TURNS = [
    ("a", 0, 0.2, 3.7, True),
    ("b", 1, 3.7, 7.3, True),
    ("b", 2, 7.4, 9.0, True),
    ("a", 3, 9.5, 11, True),
]
ROWS = [
    row(
        start + 0.05 * n,
        end - start - 0.05 * n,
        engine=engine,
        turn=turn,
        block=turn // 2,
        point_ns=T0 + 100 * turn + n,
        output_tokens=9 + n,
        event_us=[1000 * k for k in range(50, 900, 30 + n)],
    )
    for engine, turn, start, end, _ in TURNS
    for n in range(5)
]


def test_exact_seconds_take_the_place_of_provisional_ones(tmp_path: Path, bucket: Bucket) -> None:
    run = make_run(tmp_path, ROWS, turns=TURNS, engines=[{"name": "a", "model": "m"}, {"name": "b"}])
    live = [
        {
            "t_ns": T0 + t * S,
            "engine": engine,
            "worker": "local",
            "phase": "measure",
            "tokens": 999,
            "users": 5,
        }
        for t in range(11)
        for engine in "ab"
    ]
    (run.path / "windows.jsonl").write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in live))
    spec = InfluxdbSpec(url=bucket.url, org=bucket.org, bucket=bucket.name)
    delivery = Delivery(run, InfluxWriter(spec, bucket.token))
    while delivery.deliver_new():
        pass
    assert bucket.value("SELECT sum(provisional) FROM llm_window") == 22
    finish(delivery)
    assert delivery.dead == 0
    assert bucket.value('SELECT sum(provisional) FROM llm_window WHERE "users" > 0') == 0
    assert bucket.value('SELECT count(tokens) FROM llm_window WHERE "users" > 0') == 22
    for engine, figures in compute(run)["concurrency"].items():
        for measurement in ("llm_window", "llm_window_aligned"):
            sql = "SELECT sum(tokens) / sum(measured_s) FROM {} WHERE engine = '{}' AND measured_s > 0"
            expected = pytest.approx(figures["window"]["throughput_tokens_per_s"])
            assert bucket.value(sql.format(measurement, engine)) == expected
        sql = f"SELECT last(value) FROM run_summary WHERE metric = 'ttft_ms' AND engine = '{engine}'"
        assert bucket.value(sql) == figures["ttft_ms"]["p50"]
    # A series an engine: the tags of both kinds of points are the same.
    assert len(bucket.query("SELECT count(tokens) FROM llm_window GROUP BY *")) == 2
