"""The scheduler against hand-computed times, and properties that hold for any load."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.sim.model import FAIL, PROGRESS, SLOT, TOKEN, Constants, Event, Job, Scheduler


def engine(kind: str = "vllm", **changes: Any) -> Scheduler:
    """Steps of 10 ms (+1 ms a further sequence), 1000 prompt tokens a second."""
    values: dict[str, Any] = {"step_s": 0.01, "step_seq_s": 0.001, "prefill_tok_s": 1000.0, "slots": 4}
    return Scheduler(Constants(kind=kind, **{**values, **changes}))


def job(i: int = 0, prompt: int = 100, output: int = 3, **more: Any) -> Job:
    return Job(tuple(1_000_000 * (i + 1) + k for k in range(prompt)), (9,) * output, **more)


def run(s: Scheduler) -> list[Event]:
    events = []
    while (due := s.next_due()) is not None:
        events += s.advance(due)
    return events


def times(events: list[Event], j: Job, kind: str = TOKEN) -> list[float]:
    return [round(e.t, 6) for e in events if e.job is j and e.kind == kind]


def test_one_request() -> None:
    """Prefill of 100 tokens: 10 ms + 100 ms; then a token every 10 ms."""
    s, j = engine(), job()
    s.submit(j, 5.0)
    events = run(s)
    assert times(events, j) == [5.11, 5.12, 5.13]
    assert times(events, j, SLOT) == [5.0]
    assert (j.arrived, j.started, j.cached) == (5.0, 5.0, 0)


def test_overhead_and_base_delay_the_first_token_only() -> None:
    s, j = engine(overhead_s=0.5, prefill_base_s=0.2), job()
    s.submit(j, 1.0)
    assert times(run(s), j) == [1.81, 1.82, 1.83]


def test_kv_slows_decoding() -> None:
    """A step reads 101 then 102 tokens of KV at 0.1 ms each."""
    s, j = engine(step_kv_s=0.0001), job()
    s.submit(j, 0.0)
    assert times(run(s), j) == [0.11, 0.1301, 0.1503]


def test_what_comes_during_a_step_waits_for_its_end() -> None:
    s, a, b = engine(), job(0, output=4), job(1, output=2)
    s.submit(a, 0.0)
    s.submit(b, 0.115)  # a decodes from 0.11 to 0.12
    events = run(s)
    # 0.12: a decodes while b prefills 100 tokens: 10 ms + 100 ms; then both decode: 10 + 1 ms
    assert times(events, a) == [0.11, 0.12, 0.23, 0.241]
    assert times(events, b) == [0.23, 0.241]


def test_both_prompts_share_a_step() -> None:
    s, a, b = engine(), job(0), job(1)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    events = run(s)
    assert times(events, a) == times(events, b) == [0.21, 0.221, 0.232]


def test_long_prompts_take_several_steps() -> None:
    s, j = engine(batch_tokens=40), job(output=1)
    s.submit(j, 0.0)
    events = run(s)
    assert times(events, j, PROGRESS) == [0.05, 0.1, 0.13]
    assert [e.index for e in events if e.kind == PROGRESS] == [40, 80, 100]
    assert times(events, j) == [0.13]


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_the_fifth_request_waits_for_one_of_four_slots(kind: str) -> None:
    s = engine(kind)
    jobs = [job(i, output=10 + i) for i in range(5)]
    for j in jobs:
        s.submit(j, 0.0)
    assert [e.kind for e in s.advance(0.0)] == [SLOT] * 4
    assert len(s.waiting) == 1
    events = run(s)
    assert jobs[0].last is not None
    assert times(events, jobs[4], SLOT) == [round(jobs[0].last, 6)]


def test_llamacpp_keeps_the_common_beginning_of_a_slot() -> None:
    s = engine("llamacpp")
    first = Job((1, 2, 3, 4, 5, 6), (9, 9))
    again = Job((1, 2, 3, 4, 7, 8), (9, 9))
    same = Job((1, 2, 3, 4, 7, 8), (9, 9))
    for j in (first, again, same):
        s.submit(j, j.arrived)
        run(s)
    assert [first.cached, again.cached, same.cached] == [0, 4, 5]  # one token is always computed


def test_vllm_shares_full_blocks() -> None:
    s = engine(block=16)
    for i, expected in enumerate([0, 96]):
        j = Job((*range(100), i), (9, 9))
        s.submit(j, float(i))
        run(s)
        assert j.cached == expected  # 6 blocks of 16


def test_salted_prompts_share_what_precedes_the_salt() -> None:
    """24 tokens of template: llama.cpp keeps all of them, vLLM the one full block."""
    for kind, expected in (("vllm", 16), ("llamacpp", 24)):
        s = engine(kind)
        for salt in range(4):
            j = Job(tuple(range(24)) + tuple(1000 * (salt + 1) + k for k in range(50)), (9, 9))
            s.submit(j, float(salt))
            run(s)
            assert j.cached == (expected if salt else 0)


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_no_reuse_when_asked_not_to(kind: str) -> None:
    s = engine(kind)
    for i in range(2):
        j = job(0, reuse=False)
        s.submit(j, float(i))
        run(s)
        assert j.cached == 0


def test_vllm_preempts_the_latest_when_memory_is_full() -> None:
    """Room for 12 blocks; two sequences of 5 to 7 blocks each: the second gives way and starts over."""
    s = engine(kv_tokens=12 * 16)
    a, b = job(0, prompt=80, output=30), job(1, prompt=80, output=30)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    events = run(s)
    assert s.stats.preemptions >= 1
    assert (a.preemptions, b.preemptions > 0) == (0, True)
    for j in (a, b):
        assert [e.index for e in events if e.job is j and e.kind == TOKEN] == list(range(30))
    assert a.last is not None
    assert b.last is not None
    assert b.last > a.last
    assert len([e for e in events if e.kind == SLOT]) == 2


def test_vllm_queues_what_does_not_fit() -> None:
    s = engine(kv_tokens=10 * 16)
    a, b = job(0, prompt=100, output=5), job(1, prompt=100, output=5)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    s.advance(0.0)
    assert (len(s.running), len(s.waiting)) == (1, 1)
    run(s)
    assert s.stats.preemptions == 0
    assert b.done


def test_llamacpp_fails_everything_when_the_shared_memory_is_full() -> None:
    s = engine("llamacpp", kv_tokens=210)
    a, b = job(0, output=50), job(1, output=50)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    events = run(s)
    assert [e.job for e in events if e.kind == FAIL] == [a, b]
    assert a.sent == b.sent == 5  # 2 x 105 tokens fit, 2 x 106 do not
    after = job(2)
    s.submit(after, 100.0)
    run(s)
    assert after.sent == 3


def test_llamacpp_computes_a_shared_prompt_once() -> None:
    s = engine("llamacpp")
    a = job(output=2)
    b = Job(a.prompt, (8, 8), follows=a)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    events = run(s)
    assert b.cached == 99
    assert times(events, a) == times(events, b) == [0.111, 0.122]


def test_a_client_that_leaves_frees_its_slot_at_the_steps_end() -> None:
    s = engine("llamacpp", slots=1)
    a, b = job(0, output=1000), job(1, output=1)
    s.submit(a, 0.0)
    s.submit(b, 0.0)
    s.advance(0.115)
    s.cancel(a)
    events = s.advance(0.2)
    assert times(events, b, SLOT) == [0.12]
    assert not times(events, a)


def test_speed_scales_everything() -> None:
    slow = engine(overhead_s=0.3, prefill_base_s=0.1, step_kv_s=0.001)
    quick = Scheduler(slow.constants.at_speed(10))
    for s, factor in ((slow, 1), (quick, 10)):
        j = job()
        s.submit(j, 0.0)
        scaled = [t * factor for t in times(run(s), j)]
        assert scaled == pytest.approx([0.51, 0.621, 0.733])


LOADS = st.lists(
    st.tuples(st.floats(0, 2), st.integers(1, 120), st.integers(1, 40), st.booleans()),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(
    load=LOADS,
    kind=st.sampled_from(["vllm", "llamacpp"]),
    slots=st.integers(1, 5),
    kv=st.sampled_from([160, 320, 5000]),
    batch=st.sampled_from([16, 64, 2048]),
)
def test_any_load(
    load: list[tuple[float, int, int, bool]], kind: str, slots: int, kv: int, batch: int
) -> None:
    """Every token once, in order, never before its cause; no memory is lost; nobody waits for ever."""
    s = engine(kind, slots=slots, kv_tokens=kv, batch_tokens=batch)
    jobs = [job(0 if same else i, prompt, output) for i, (_, prompt, output, same) in enumerate(load)]
    events = []
    for (t, *_), j in sorted(zip(load, jobs, strict=True), key=lambda pair: pair[0][0]):
        events += s.advance(t)
        s.submit(j, t)
        assert len(s.running) <= slots
    events += run(s)
    assert [e.t for e in events] == sorted(e.t for e in events)
    failed = {e.job for e in events if e.kind == FAIL}
    for j in jobs:
        tokens = [e for e in events if e.job is j and e.kind == TOKEN]
        assert [e.index for e in tokens] == list(range(len(tokens)))
        assert j.done
        if j not in failed:
            assert len(tokens) == len(j.output)
            gaps = [b.t - a.t for a, b in pairwise(tokens)]
            assert all(gap >= 0.01 - 1e-9 for gap in gaps)
            assert tokens[0].t >= j.arrived + 0.01 - 1e-9
    assert not (kind == "vllm" and failed)
    assert not s.running
    assert not s.waiting
    assert s.memory.used() == 0
    assert s.stats.output_tokens == sum(e.kind == TOKEN for e in events)
    assert s.stats.cached_tokens == sum(j.cached for j in jobs if j.started is not None)
