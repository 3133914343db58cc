"""The presets reproduce the published experiment (its latency row excepted: it contradicts Little's law)."""

from __future__ import annotations

import pytest

from loadgen.sim.model import TOKEN, Job, Scheduler
from loadgen.sim.presets import PRESETS

OUTPUT = 256
TEMPLATE = tuple(range(24))  # the chat template's own tokens, before any salt
WITHIN = 0.03


def _prompt(i: int, tokens: int) -> tuple[int, ...]:
    """A salted prompt: nothing but the template is shared with any other."""
    return TEMPLATE + tuple(10_000 * (i + 1) + k for k in range(tokens - len(TEMPLATE)))


def _turn(preset: str, users: int, count: int, tokens: int) -> tuple[list[Job], float]:
    """A warmed-up closed-loop turn, empty to empty: its jobs and its throughput in tokens a second."""
    engine = Scheduler(PRESETS[preset])
    warm = Job(_prompt(100_000, tokens), (7,) * 8)
    engine.submit(warm, 0.0)
    while (due := engine.next_due()) is not None:
        engine.advance(due)
    assert warm.last is not None
    start = warm.last + 5
    jobs = [Job(_prompt(i, tokens), (7,) * OUTPUT) for i in range(count)]
    todo = iter(jobs)
    for user in range(users):
        engine.submit(next(todo), start + 0.0003 * user)
    while (due := engine.next_due()) is not None:
        for event in engine.advance(due):
            if event.kind == TOKEN and event.index == OUTPUT - 1:
                job = next(todo, None)
                if job is not None:
                    engine.submit(job, event.t + 0.0005)
    return jobs, count * OUTPUT / (max(j.last or 0 for j in jobs) - start)


@pytest.mark.parametrize(
    ("preset", "tokens", "ttft_s", "decode_tok_s"),
    [
        ("vllm-v100", 50, 0.180, 42),
        ("vllm-v100", 2000, 1.2, 40),
        ("llamacpp-v100", 50, 0.095, 58),
        ("llamacpp-v100", 2000, 2.8, 55),
    ],
)
def test_single_user(preset: str, tokens: int, ttft_s: float, decode_tok_s: float) -> None:
    jobs, _ = _turn(preset, users=1, count=3, tokens=tokens)
    for job in jobs:
        assert job.first is not None
        assert job.last is not None
        assert job.first - job.arrived == pytest.approx(ttft_s, rel=WITHIN)
        assert (OUTPUT - 1) / (job.last - job.first) == pytest.approx(decode_tok_s, rel=WITHIN)


@pytest.mark.parametrize(("preset", "throughput"), [("vllm-v100", 380), ("llamacpp-v100", 210)])
def test_sixteen_users(preset: str, throughput: float) -> None:
    _, measured = _turn(preset, users=16, count=64, tokens=50)
    assert measured == pytest.approx(throughput, rel=WITHIN)


@pytest.mark.parametrize(("preset", "throughput"), [("vllm-v100", 380), ("llamacpp-v100", 210)])
def test_latency_of_sixteen_users_follows_littles_law(preset: str, throughput: float) -> None:
    """16 = throughput / 256 * mean latency, so it can't be the published 1.8 or 3.5 s."""
    jobs, _ = _turn(preset, users=16, count=64, tokens=50)
    mean = sum((j.last or 0) - j.arrived for j in jobs) / len(jobs)
    expected = 16 * OUTPUT / throughput  # 10.8 s and 19.5 s
    # the last users' drain makes the mean a little shorter than in an endless run
    assert expected * 0.85 < mean < expected * 1.05
