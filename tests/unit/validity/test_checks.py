"""One planted fault each, the level it has, and a clean run that raises none."""

from typing import Any

import pytest

from loadgen.users.lane import CacheTally, cache_note
from loadgen.validity import Evidence, Level, check_run
from loadgen.validity.generator_rows import GeneratorLoad
from tests.unit.validity.made import engine, evidence

NO_TURN = {"turns_complete": 0, "turns": []}
STEPPED = {"turns": [{"turn": 0, "block": 0, "complete": True, "clock_stepped": True}]}
CUT = {
    "turns": [
        {"turn": 0, "block": 0, "complete": True, "clock_stepped": False, "seconds": 20.0},
        {"turn": 2, "block": 1, "complete": False, "clock_stepped": False, "seconds": 41.0},
    ]
}
SERVER = {"server_concurrency": 31.0, "server_concurrency_contradicts": True}


def busy(cpu: float = 30.0, lag: float = 2.0) -> GeneratorLoad:
    return GeneratorLoad(90, cpu_percent=cpu, cpu_percent_p95=cpu, loop_lag_ms_p95=lag)


def opened(served: float = 7.9, **offered: Any) -> Any:
    """An engine in an open loop, eight requests a second."""
    clean = {"scheduled": 600, "offered_per_s": 8.0, "late_share": 0.005, "dropped": 0, "peak_in_flight": 40}
    window = {"requests_per_s": served, "seconds": 75.0}
    return engine(window=window, open_loop={**clean, **offered}, send_lag_ms={"p95": 35.0})


def test_an_open_loop_that_is_kept_raises_nothing() -> None:
    assert check_run(evidence(opened())).findings == ()
    assert check_run(evidence(opened(served=7.5))).findings == ()  # chance


def test_a_clean_run_raises_nothing() -> None:
    assert check_run(evidence(generator=busy())) == check_run(evidence())
    got = check_run(evidence())
    assert (got.level, got.findings, got.reasons) == (Level.VALID, (), [])


CASES: list[tuple[str, str, Evidence, str]] = [
    ("state", "void", evidence(engine(window=NO_TURN)), "a: no turn is complete"),
    ("state", "void", evidence(engine({"requests": 0}, NO_TURN)), "a: no request was measured"),
    ("state", "suspect", evidence(state="failed"), "ended with an error"),
    ("state", "valid", evidence(state="interrupted"), "before its last block"),
    ("cut_turns", "suspect", evidence(engine(window=CUT)), "had already lasted 41.0 s, the longest complete"),
    (
        "workers",
        "suspect",
        evidence(workers_lost=["w1", "w3"]),
        "2 workers lost in the middle of the run (w1, w3)",
    ),
    ("failures", "valid", evidence(engine({"failed": 3})), "a: 3 requests of 384 failed (0.78 %)"),
    ("failures", "suspect", evidence(engine({"failed": 4})), "a: 4 requests of 384 failed (1.0 %)"),
    ("failures", "void", evidence(engine({"failed": 39})), "39 requests of 384 failed (10.2 %)"),
    ("littles_law", "suspect", evidence(engine(window={"littles_residual": 0.002})), "residual is 0.20 %"),
    ("littles_law", "void", evidence(engine(window={"littles_residual": 0.2})), "residual is 20.0 %"),
    ("server_concurrency", "suspect", evidence(engine(window=SERVER)), "counted 31.0 requests where 15.9"),
    ("cache", "valid", evidence(settings={"salt": "off"}), "without salt"),
    ("short_answers", "valid", evidence(engine({"short_answers": 1})), "1 answer of 384 shorter"),
    ("short_answers", "suspect", evidence(engine({"short_answers": 64})), "64 answers of 384 shorter"),
    ("clock", "suspect", evidence(engine({"clock_steps": 2})), "was set while 2 requests ran"),
    ("clock", "suspect", evidence(engine(window={**STEPPED, "turns_complete": 1})), "was set during a turn"),
    (
        "clock",
        "valid",
        evidence(engine({"clock": {"read": 384}})),
        "384 requests timed without kernel stamps",
    ),
    ("coalesced", "suspect", evidence(engine({"inexact_ttft": 20})), "TTFT of 20 requests (5.2 %)"),
    ("coalesced", "suspect", evidence(engine({"coalesced_events": 384 + 1967})), "2.0 % of the events"),
    ("send_lag", "suspect", evidence(engine(send_lag_ms={"p95": 35.0})), "was sent 35.0 ms late"),
    ("open_loop", "void", evidence(opened(dropped=3)), "3 requests of 600 were never sent, since 40 were"),
    ("open_loop", "suspect", evidence(opened(late_share=0.02)), "2.0 % of the requests were sent"),
    ("open_loop", "void", evidence(opened(late_share=0.2)), "20.0 % of the requests"),
    (
        "open_loop",
        "valid",
        evidence(opened(served=5.0)),
        "8.00 requests came each second and 5.00",
    ),
    ("generator", "suspect", evidence(generator=busy(cpu=85)), "85 % of a core on average over 90 measured"),
    ("generator", "void", evidence(generator=busy(cpu=99)), "99 % of a core"),
    ("generator", "suspect", evidence(generator=busy(lag=150)), "the generator was 150.0 ms late"),
    (
        "generator",
        "suspect",
        evidence(engine({"clock": {"read": 384}}, read_lag_ms={"p95": 30.0})),
        "bytes that waited 30.0 ms",
    ),
    ("simulated", "valid", evidence(engine(simulated=True)), "simulated: a"),
    (
        "blocks",
        "valid",
        evidence(engine(window={"turns": engine()["window"]["turns"][:5]})),
        "5 complete blocks",
    ),
]


@pytest.mark.parametrize(
    ("check", "level", "run", "text"), CASES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_planted_fault_is_caught(check: str, level: str, run: Evidence, text: str) -> None:
    found = check_run(run)
    (one,) = [f for f in found.findings if f.check == check]
    assert one.level.word == level
    assert text in one.evidence
    assert one.advice or one.level == Level.VALID  # a fault says what to do about it
    assert found.level >= one.level
    assert (one.sentence() in found.reasons) == (one.level > Level.VALID)


TALLIES: list[tuple[CacheTally, str | None]] = [
    (CacheTally(limit=25, requests=96, reported=96, most=25), None),
    (CacheTally(limit=25, requests=96, reported=96, most=60, over=3), "suspect"),
    (CacheTally(limit=25, requests=10, hit=2000), "suspect"),
    (CacheTally(limit=None, requests=10, hit=2000), "suspect"),
    (CacheTally(limit=25, requests=10), "valid"),
]


@pytest.mark.parametrize(("tally", "level"), TALLIES)
def test_caches_as_a_run_notes_them(tally: CacheTally, level: str | None) -> None:
    note = cache_note("a", tally)
    found = check_run(evidence(notes=[note] if note else [])).findings
    assert [f.level.word for f in found if f.check == "cache"] == ([level] if level else [])


def test_the_worst_comes_first_and_decides() -> None:
    found = check_run(evidence(engine({"failed": 100, "short_answers": 9}, simulated=True)))
    assert [(f.check, f.level.word) for f in found.findings] == [
        ("failures", "void"),
        ("short_answers", "suspect"),
        ("simulated", "valid"),
    ]
    assert found.level == Level.VOID
    assert [r.split(":")[0] for r in found.reasons] == ["a", "a"]


def test_one_engine_needs_no_blocks_to_be_told_from_another() -> None:
    one: Any = {"a": engine(window={"turns": [], "turns_complete": 1})}
    assert check_run(Evidence("complete", one)).findings == ()
