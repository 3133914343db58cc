"""Every query of the dashboards on a real database, with made-up points whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from grafana.build import FOLDER
from tests.support.grafana import ALL, Dashboard
from tests.support.influxdb import Bucket, InfluxServer
from tests.unit.grafana import points

NAMES = ("comparison", "live", "gpu", "trend")
DAY_MS = points.DAY_S * 1000


@pytest.fixture(scope="module")
def database(influxdb: InfluxServer) -> Iterator[Bucket]:
    name = "dashboards"
    influxdb.create(name)
    answer = requests.post(
        f"{influxdb.url}/api/v2/write",
        params={"bucket": name, "org": influxdb.org, "precision": "ns"},
        headers={"Authorization": f"Token {influxdb.token}"},
        data="\n".join(filter(None, points.lines())).encode(),
        timeout=60,
    )
    assert answer.status_code == 204, answer.text
    yield Bucket(influxdb, name)
    influxdb.drop(name)


def opened(name: str, database: Bucket, days: int = 0, **chosen: str | list[str]) -> Dashboard:
    """A dashboard on the newer run alone, or on the days before too."""
    path = FOLDER / f"{name}.json"
    return Dashboard.open(path, database, points.START_MS - days * DAY_MS - 1, points.END_MS, **chosen)


@pytest.mark.parametrize("interval_ms", [1000, 10_000, 60_000])
@pytest.mark.parametrize("name", NAMES)
def test_every_panel_picker_and_annotation_finds_something(database, name, interval_ms):
    board = opened(name, database)
    assert all(board.found.values()), board.found
    answers = [*board.answers(interval_ms), *board.annotations()]
    assert [(a.panel, a.error) for a in answers if a.error] == []
    assert [(a.panel, a.ref, a.query) for a in answers if not a.values] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_database_is_no_error(bucket, name):
    board = opened(name, bucket)
    answers = [*board.answers(), *board.annotations()]
    assert [(a.panel, a.error) for a in answers if a.error or a.values] == []


@pytest.mark.parametrize("name", ["comparison", "live", "gpu"])
def test_the_run_picker_lists_the_runs_of_the_time_range_newest_first(database, name):
    assert opened(name, database).found["run"] == [points.LAST]
    assert opened(name, database, days=2).found["run"] == [points.LAST, points.FIRST]
    assert opened(name, database, days=2).chosen["run"] in (points.LAST, [points.LAST])


def test_throughput_is_tokens_by_measured_time(database):
    rows = opened("comparison", database).answer("Throughput").rows
    assert {r["engine"]: r["tokens/s"] for r in rows} == {"vllm": 380, "llamacpp": 210}


def test_percentiles_are_of_measured_requests_that_succeeded(database):
    """Four values (180 to 183 ms) twice: rank floor(8 x 0.5 + 0.5) is the fourth of eight, 181."""
    rows = {r["engine"]: r for r in opened("comparison", database).answer("TTFT").rows}
    assert (rows["vllm"]["p50"], rows["vllm"]["p95"], rows["vllm"]["p99"]) == (181, 183, 183)
    assert rows["llamacpp"]["p50"] == 96


def test_turns_laid_over_each_other_begin_together(database):
    answer = opened("comparison", database).answer("Throughput since the turn began")
    for series in answer.series:
        values = {t: v for t, v in series["values"] if v is not None}
        assert list(values) == [points.START_MS + s * 1000 for s in range(points.TURN_S)]
        assert set(values.values()) == {points.TOKENS_PER_S[series["tags"]["engine"]]}


def test_the_banner_shows_the_worst_that_was_found(database):
    board = opened("comparison", database, days=2, run=[points.FIRST, points.LAST])
    levels = {s["tags"]["run"]: s["values"][0][1] for s in board.answer("May it be believed?").series}
    assert levels == {points.FIRST: 0, points.LAST: 1}
    assert [r["reasons"] for r in board.answer("Why").rows if r["run"] == points.LAST] == ["the GPU was hot"]


def test_which_engine_for_which_use(database):
    rows = (
        opened("comparison", database)
        .answer("Which engine for which use: the newest run of each scenario in the time range")
        .rows
    )
    better = {r["metric"]: r["better"] for r in rows}
    assert better["throughput_tokens_per_s"] == "vllm"
    assert better["ttft_ms"] == "llamacpp"
    assert better["tpot_ms"] == "no difference"


def test_a_click_on_a_run_leads_to_its_own_time(database):
    board = opened("trend", database)
    (run,) = board.answer("Runs").rows
    assert run["start"] == points.START_MS - 2000
    assert run["end"] == points.START_MS + points.LENGTH_S * 1000 + 2000
    (requests,) = board.answer("Runs", "B").rows
    assert (requests["requests"], requests["failures"]) == (16, 4), "of complete turns, both engines"


def test_failures_by_kind_and_in_words(database):
    board = opened("comparison", database)
    kinds = board.answer("Failures by kind").rows
    assert {(r["engine"], r["error"], r["requests"]) for r in kinds} == {
        ("vllm", "http_503", 2),
        ("llamacpp", "http_503", 2),
    }
    words = board.answer("What went wrong").rows
    assert [r["error_text"] for r in words] == ['no slot: "busy"'] * 4
    shares = {
        s["tags"]["engine"]: s["values"][0][1] for s in board.answer("Failed, of measured requests").series
    }
    assert shares == {"vllm": 0.2, "llamacpp": 0.2}


def test_live_rates_are_of_whole_seconds(database):
    """Ten seconds of one engine's turn, the last of them half full; the other engine has zeros."""
    answer = opened("live", database).answer("Tokens per second", interval_ms=10_000)
    first = {s["tags"]["engine"]: next(v for _, v in s["values"] if v is not None) for s in answer.series}
    assert first == {"vllm": pytest.approx(380 * 9.5 / 10), "llamacpp": 0}


def test_throttling_tells_which_card_and_why(database):
    answer = opened("gpu", database).answer("Why clocks were held down", interval_ms=10_000)
    worst = {
        (s["tags"]["gpu"], column): max(v for v in values if v is not None)
        for s in answer.series
        for column, *values in zip(s["columns"], *s["values"], strict=True)
        if column != "time"
    }
    assert worst["1", "thermal (hardware)"] == 1
    assert worst["0", "thermal (hardware)"] == 0
    assert worst["0", "power cap"] == worst["1", "power cap"] == 1


def test_one_card_alone(database):
    board = opened("gpu", database, gpu=["1"])
    assert {s["tags"]["gpu"] for s in board.answer("Temperature").series} == {"1"}
    assert board.answer("Cards").rows[0]["energy"] == 250 * (points.LENGTH_S - 1)


def test_turns_are_regions_with_an_end(database):
    turns = next(opened("live", database).annotations())
    first = dict(zip(turns.series[0]["columns"], turns.series[0]["values"][0], strict=True))
    assert first["title"] == "vllm: turn 0"
    assert first["end_ms"] - first["time"] == (points.TURN_S - 1) * 1000


def test_trend_leaves_out_what_the_pickers_leave_out(database):
    def throughput(**chosen: str) -> list[int]:
        answer = opened("trend", database, days=2, **chosen).answer("Throughput")
        return sorted(len(s["values"]) for s in answer.series)

    assert throughput() == [2, 2], "valid and suspect"
    assert throughput(worst="0") == [1, 1], "the newer run is suspect"
    assert throughput(engine=["vllm"]) == [2]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ([ALL], ".*"),
        (["a.b", "c"], r"(a\.b|c)"),
        (["v1"], "(v1)"),
    ],
)
def test_several_values_become_an_alternation(database, chosen, expected):
    board = opened("trend", database, engine=chosen)
    assert board.interpolated('"engine" =~ /^$engine$/') == f'"engine" =~ /^{expected}$/'
