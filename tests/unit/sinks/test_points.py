"""A row of each journal, and the points it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from loadgen.sinks.context import RunContext
from loadgen.sinks.points import CONVERTERS, RowError
from loadgen.sinks.points.requests import chunk_gaps
from loadgen.sinks.schema import BY_NAME

T0 = 1_796_056_862_000_000_000
REQUEST = {
    "run": "r1", "scenario": "concurrency", "engine": "vllm", "model": "Qwen3-8B", "worker": "local",
    "user": 3, "sequence": 12, "turn": 2, "block": 1, "phase": "measure", "pair": 7,
    "response_id": "chatcmpl-1", "outcome": "ok", "status": 200, "finish_reason": "length",
    "short_answer": False, "point_ns": T0 + 5,
    "sent_ns": T0 - 2 * 10**9, "scheduled_ns": T0 - 2 * 10**9 - 500_000, "headers_ms": 1.5, "ttft_ms": 190.25,
    "e2e_ms": 1690.25, "complete_ms": 1691, "tpot_ms": 50.0, "connection_reused": True, "clock_step": False,
    "prompt_tokens": 50, "output_tokens": 31, "asked_output_tokens": 31, "e2e_error_ms": 1.25,
    "ttft_error_ms": 0.0, "events": 33, "coalesced_events": 1, "response_bytes": 8127,
    "event_us": [190250, 230250, 250250],
    "server_timings": {"x": 1}, "clock": "kernel",
}  # fmt: skip


@pytest.fixture
def context() -> RunContext:
    return RunContext("r1", "concurrency", "bench host", {"vllm": "Qwen3-8B", "llamacpp": "q4.gguf"})


def parts(line: str) -> tuple[str, dict[str, str], dict[str, str], int]:
    """A line without spaces or commas in its values, taken apart."""
    head, body, time_ns = line.replace("\\ ", "_").split(" ")
    measurement, *tags = head.split(",")
    return (
        measurement,
        dict(t.split("=") for t in tags),
        dict(f.split("=") for f in body.split(",")),
        int(time_ns),
    )


def test_a_request(context: RunContext) -> None:
    (line,) = CONVERTERS["requests"](REQUEST, context)
    measurement, tags, fields, time_ns = parts(line)
    assert (measurement, time_ns) == ("llm_request", T0 + 5)
    assert tags == {
        "run": "r1", "scenario": "concurrency", "engine": "vllm", "model": "Qwen3-8B", "host": "bench_host",
        "worker": "local", "phase": "measure", "outcome": "ok",
    }  # fmt: skip
    assert fields == {
        "headers_ms": "1.5", "ttft_ms": "190.25", "e2e_ms": "1690.25", "complete_ms": "1691",
        "tpot_ms": "50.0", "decode_tokens_per_s": "20.0", "chunk_gap_p50_ms": "20.0", "chunk_gap_p99_ms":
        "40.0", "chunk_gap_max_ms": "40.0", "scheduled_ttft_ms": "190.75", "scheduled_e2e_ms": "1690.75",
        "prompt_tokens": "50", "output_tokens": "31", "asked_output_tokens": "31", "e2e_error_ms": "1.25",
        "events": "33", "coalesced_events": "1", "response_bytes": "8127", "status": "200", "turn": "2",
        "block": "1", "user": "3", "sequence": "12", "pair": "7", "failed": "0", "short_answer": "0",
        "connection_reused": "1", "clock_step": "0", "sent_ns": f"{T0 - 2 * 10**9}i",
        "scheduled_ns": f"{T0 - 2 * 10**9 - 500_000}i", "response_id": '"chatcmpl-1"',
        "finish_reason": '"length"',
    }  # fmt: skip


def test_a_failed_request_has_its_kind_as_a_tag_and_no_times(context: RunContext) -> None:
    row = {"engine": "vllm", "phase": "measure", "outcome": "failed", "error": "http_429", "status": 429,
           "error_text": "x" * 900, "pair": -1, "point_ns": T0, "worker": "w1"}  # fmt: skip
    (line,) = CONVERTERS["requests"](row, context)
    _, tags, fields, _ = parts(line)
    assert (tags["error"], tags["outcome"], tags["worker"], tags["model"]) == (
        "http_429",
        "failed",
        "w1",
        "Qwen3-8B",
    )
    assert fields["failed"] == "1"
    assert len(fields["error_text"]) == 500 + 2
    assert not {"ttft_ms", "pair", "chunk_gap_p50_ms", "decode_tokens_per_s"} & fields.keys()


@pytest.mark.parametrize(
    ("event_us", "gaps"),
    [
        ([0, 10_000], (10.0, 10.0, 10.0)),
        (list(range(0, 101_000, 1000)), (1.0, 1.0, 1.0)),
        # 200 gaps of 1..200 us: the 100th, the 198th and the last in order
        ([n * (n + 1) // 2 for n in range(201)], (0.1, 0.198, 0.2)),
        ([5], None),
        ([], None),
        (None, None),
        (["a", "b"], None),
        ([0, 2**70], None),
    ],
)
def test_gaps_by_nearest_rank(event_us: Any, gaps: tuple[float, ...] | None) -> None:
    assert chunk_gaps(event_us) == gaps


def test_a_window(context: RunContext) -> None:
    row = {"t_ns": T0, "engine": "llamacpp", "worker": "local", "phase": "measure", "turn": 1, "block": 0,
           "turn_s": 3.0, "measured_s": 1.0, "tokens": 812, "in_flight": 16, "users": 16, "completions": 2,
           "failures": 0, "loop_lag_ms": 0.4, "cpu_percent": 31.5}  # fmt: skip
    (line,) = CONVERTERS["windows"](row, context)
    measurement, tags, fields, time_ns = parts(line)
    assert (measurement, time_ns, tags["engine"], tags["model"]) == ("llm_window", T0, "llamacpp", "q4.gguf")
    assert fields == {
        "tokens": "812", "tokens_per_s": "812", "in_flight": "16", "users": "16", "completions": "2",
        "failures": "0", "measured_s": "1.0", "turn": "1", "block": "0", "turn_s": "3.0",
        "loop_lag_ms": "0.4", "cpu_percent": "31.5", "provisional": "1", "phase": '"measure"',
    }  # fmt: skip


def test_gpu_samples_get_the_cards_facts_and_its_processes_by_engine(context: RunContext) -> None:
    convert = CONVERTERS["gpu"]
    facts = {"kind": "facts", "host": "h", "gpu": 0, "name": "NVIDIA H200", "power_limit_w": 700.0,
             "max_sm_clock_mhz": 1980, "memory_total_bytes": 150_000}  # fmt: skip
    assert convert(facts, context) == []
    sample = {"kind": "sample", "t_ns": T0, "host": "h", "gpu": 0, "source": "nvml", "power_w": 123.5,
              "sm_clock_mhz": 345, "throttle_mask": 4, "throttle_reasons": ["sw_power_cap"],
              "processes": [{"pid": 1, "memory_bytes": 70, "engine": "vllm"},
                            {"pid": 2, "memory_bytes": 5, "engine": "vllm"},
                            {"pid": 3, "memory_bytes": 9}]}  # fmt: skip
    gpu, process = convert(sample, context)
    measurement, tags, fields, _ = parts(gpu)
    assert (measurement, tags) == (
        "gpu",
        {"run": "r1", "host": "h", "gpu": "0", "gpu_name": "NVIDIA_H200", "source": "nvml"},
    )
    assert fields["throttle_reasons"] == '"sw_power_cap"'
    assert (fields["throttle_sw_power_cap"], fields["throttle_gpu_idle"]) == ("1", "0")
    assert (fields["power_w"], fields["power_limit_w"], fields["memory_total_bytes"]) == (
        "123.5",
        "700.0",
        "150000",
    )
    assert "temperature_c" not in fields
    assert process == f"gpu_process,engine=vllm,gpu=0,host=h,run=r1 memory_bytes=75 {T0}"


def test_a_card_that_does_not_say_why_it_is_slow_has_no_flags(context: RunContext) -> None:
    (line,) = CONVERTERS["gpu"](
        {"kind": "sample", "t_ns": T0, "host": "h", "gpu": 1, "power_w": 50.0}, context
    )
    assert line == f"gpu,gpu=1,host=h,run=r1 power_w=50.0 {T0}"


def test_an_engines_counters_and_its_silence(context: RunContext) -> None:
    convert = CONVERTERS["engine"]
    row = {"t_ns": T0, "engine": "vllm", "running": 16, "waiting": 0, "kv_used_share": 0.25}
    assert convert(row, context) == [
        f"engine,engine=vllm,run=r1,scenario=concurrency running=16,waiting=0,kv_used_share=0.25 {T0}"
    ]
    (note,) = convert({"t_ns": T0, "engine": "vllm", "error": "no answer"}, context)
    assert note.startswith("run_event,engine=vllm,kind=note,run=r1,")
    assert 'text="no answer"' in note


def test_a_turn_is_one_point_that_gets_its_end(context: RunContext) -> None:
    convert = CONVERTERS["events"]
    at = {"engine": "vllm", "turn": 3, "block": 1}
    (start,) = convert({"t_ns": T0, "kind": "turn_start", "users": 16, **at}, context)
    (end,) = convert({"t_ns": T0 + 9 * 10**9, "kind": "turn_end", "complete": True, **at}, context)
    head = "run_event,engine=vllm,kind=turn,run=r1,scenario=concurrency "
    body = 'title="vllm: turn 3",tags="turn,vllm",turn=3,block=1,users=16'
    assert start == f"{head}{body},start_ms={T0 // 10**6} {T0}"
    assert end == f"{head}{body},complete=1,start_ms={T0 // 10**6},end_ms={T0 // 10**6 + 9000} {T0}"
    assert convert({"t_ns": T0, "kind": "turn_end", **at}, context) == []  # ended already


@pytest.mark.parametrize(
    ("row", "expected", "end"),
    [
        ({"kind": "note", "text": "hot"},
         'kind=note,run=r1,scenario=concurrency title="note",text="hot",tags="note"', ""),
        ({"kind": "run_end", "state": "complete"},
         'kind=run_end,run=r1,scenario=concurrency title="run ends",text="complete",tags="run_end"', ""),
        ({"kind": "cooldown_start", "seconds": 5.0},
         'kind=cooldown,run=r1,scenario=concurrency title="cool-down",tags="cooldown"',
         ",end_ms=1796056867000"),
        ({"kind": "level", "engine": "a", "turn": 1, "users": 8, "title": "8 users"},
         'engine=a,kind=level,run=r1,scenario=concurrency title="8 users",tags="level,a",turn=1,users=8',
         ""),
    ],
)  # fmt: skip
def test_other_events(context: RunContext, row: dict[str, Any], expected: str, end: str) -> None:
    line = f"run_event,{expected},start_ms={T0 // 10**6}{end} {T0}"
    assert CONVERTERS["events"]({"t_ns": T0, **row}, context) == [line]


def test_how_many_users_there_are_is_in_the_windows(context: RunContext) -> None:
    row = {"t_ns": T0, "kind": "users", "engine": "a", "turn": 1, "users": 8, "settled": True}
    assert CONVERTERS["events"](row, context) == []


def test_derived_points_are_taken_as_they_are(context: RunContext) -> None:
    row = {"measurement": "run_summary", "time_ns": T0, "tags": {"run": "r1", "metric": "ttft_ms"},
           "fields": {"value": 190.5, "n": 64, "p99": None, "better": "no difference"}}  # fmt: skip
    assert CONVERTERS["derived"](row, context) == [
        f'run_summary,metric=ttft_ms,run=r1 value=190.5,n=64,better="no difference" {T0}'
    ]


def test_class_and_replica_are_tags_where_there_are_some(context: RunContext) -> None:
    (line,) = CONVERTERS["requests"]({**REQUEST, "traffic_class": "long", "replica": 0}, context)
    tags = parts(line)[1]
    assert (tags["class"], tags["replica"]) == ("long", "0")
    (line,) = CONVERTERS["requests"](REQUEST, context)
    assert not {"class", "replica"} & parts(line)[1].keys()


@pytest.mark.parametrize("time", [None, 0, -1, 1.5, "1796056862000000000", 2**63 - 1, True])
@pytest.mark.parametrize("kind", CONVERTERS)
def test_a_row_without_a_time_says_so(context: RunContext, kind: str, time: Any) -> None:
    name = {"requests": "point_ns", "derived": "time_ns"}.get(kind, "t_ns")
    row = {name: time, "kind": "sample", "measurement": "m", "tags": {}, "fields": {"v": 1}}
    with pytest.raises(RowError, match=name):
        CONVERTERS[kind]({k: v for k, v in row.items() if v is not None}, context)


@pytest.mark.parametrize("value", [[1], {"a": 1}, "text", None])
@pytest.mark.parametrize("kind", [k for k in CONVERTERS if k != "derived"])
def test_values_of_a_wrong_kind_break_nothing(context: RunContext, kind: str, value: Any) -> None:
    fields = [f.name for m in BY_NAME.values() for f in m.fields]
    row = dict.fromkeys([*fields, "processes", "event_us", "kind", "host", "gpu", "engine", "worker"], value)
    time = {"t_ns": T0, "point_ns": T0}
    try:
        lines = CONVERTERS[kind]({**row, **time}, context)
    except RowError:
        return
    assert all(isinstance(line, str) and "\n" not in line for line in lines)


def test_every_field_made_is_in_the_schema(context: RunContext) -> None:
    facts = {"kind": "facts", "host": "h", "gpu": 0, "max_sm_clock_mhz": 1, "power_limit_w": 1.0}
    CONVERTERS["gpu"](facts, context)
    everything = {f.name: 1.5 for m in BY_NAME.values() for f in m.fields}
    row = {
        **everything,
        **REQUEST,
        "t_ns": T0,
        "kind": "sample",
        "host": "h",
        "gpu": 0,
        "throttle_reasons": [],
    }
    for kind in ("requests", "windows", "gpu", "engine"):
        for line in CONVERTERS[kind](row, context):
            measurement, tags, fields, _ = parts(line.replace('""', '"-"'))
            schema = BY_NAME[measurement]
            assert fields.keys() <= {f.name for f in schema.fields}
            assert tags.keys() <= {t.name for t in schema.tags}
