from __future__ import annotations

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.arrivals import PROCESSES, Arrival, Stretch, offsets, part, share, start_offsets

RATES = st.floats(0.05, 500)
SEEDS = st.text(max_size=5)


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def test_users_begin_together_or_evenly() -> None:
    assert start_offsets(3, "burst", 9.0) == [0.0, 0.0, 0.0]
    assert start_offsets(4, "staggered", 2.0) == [0.0, 0.5, 1.0, 1.5]
    with pytest.raises(ValueError, match="neither burst nor staggered"):
        start_offsets(1, "poisson", 1.0)


def test_a_poisson_process_is_one() -> None:
    # Known of it: gaps of mean 1 / rate whose spread is their mean, of which e^-1 are longer than it, and as
    # many arrivals in a second as their variance says.
    times = offsets(8.0, "poisson", seed="s", seconds=4000)
    found = gaps(times)
    assert len(times) == pytest.approx(32000, rel=0.02)
    assert statistics.fmean(found) == pytest.approx(1 / 8, rel=0.02)
    assert statistics.stdev(found) == pytest.approx(1 / 8, rel=0.03)
    assert sum(g > 1 / 8 for g in found) / len(found) == pytest.approx(math.exp(-1), rel=0.03)
    counts = [0] * 4000
    for t in times:
        counts[int(t)] += 1
    assert statistics.variance(counts) == pytest.approx(8.0, rel=0.1)
    # One gap says nothing of the next.
    mean = statistics.fmean(found)
    lag = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(found)) / len(found)
    assert abs(lag / statistics.variance(found)) < 0.02


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 3.0])
def test_burstiness_is_the_variation_of_the_gaps(burstiness: float) -> None:
    found = gaps(offsets(5.0, "gamma", seed="s", burstiness=burstiness, requests=60_000))
    assert statistics.fmean(found) == pytest.approx(0.2, rel=0.05)
    assert statistics.stdev(found) / statistics.fmean(found) == pytest.approx(burstiness, rel=0.05)


@given(RATES, st.integers(1, 300))
def test_constant_arrivals_are_constant(rate: float, n: int) -> None:
    assert offsets(rate, "constant", seed="", requests=n) == [k / rate for k in range(n)]


@given(RATES, st.sampled_from(PROCESSES), SEEDS, st.integers(0, 200))
def test_a_schedule_is_a_function_of_its_seed(rate: float, process: str, seed: str, n: int) -> None:
    one = offsets(rate, process, seed=seed, requests=n)
    assert one == offsets(rate, process, seed=seed, requests=n)
    assert len(one) == n
    assert one == sorted(one)
    assert all(t >= 0 for t in one)
    longer = offsets(rate, process, seed=seed, requests=n + 5)
    assert longer[:n] == one  # it is cut, never squeezed


@given(RATES, st.sampled_from(PROCESSES), SEEDS, st.floats(0.01, 20))
def test_it_ends_before_its_time_and_only_then(rate: float, process: str, seed: str, seconds: float) -> None:
    one = offsets(rate, process, seed=seed, seconds=seconds)
    assert all(t < seconds for t in one)
    assert offsets(rate, process, seed=seed, requests=len(one) + 1)[-1] >= seconds


def test_other_seeds_are_other_schedules() -> None:
    assert offsets(1.0, seed="1/0", requests=5) != offsets(1.0, seed="1/1", requests=5)


def test_a_rate_that_changes_gives_each_stretch_its_own() -> None:
    steps = [Stretch(500, 2), Stretch(500, 0), Stretch(500, 10)]
    times = offsets(steps, "poisson", seed="s", seconds=1500)
    counts = [sum(a <= t < a + 500 for t in times) for a in (0, 500, 1000)]
    assert counts[0] == pytest.approx(1000, rel=0.1)
    assert counts[1] == 0
    assert counts[2] == pytest.approx(5000, rel=0.05)


@given(RATES, SEEDS, st.lists(st.floats(0.1, 50), min_size=1, max_size=5))
def test_stretches_of_one_rate_are_one_stretch(rate: float, seed: str, cuts: list[float]) -> None:
    whole = offsets(rate, seed=seed, requests=50)
    assert offsets([Stretch(s, rate) for s in cuts], seed=seed, requests=50) == pytest.approx(whole)


def test_a_last_stretch_without_requests_ends_it() -> None:
    assert offsets([Stretch(2, 1), Stretch(1, 0)], "constant", seed="") == [0.0, 1.0]


@given(st.lists(st.floats(0, 1000), max_size=60).map(sorted), st.integers(1, 9))
def test_workers_share_a_schedule_without_gaps_or_doubles(times: list[float], workers: int) -> None:
    whole = [Arrival(t, n) for n, t in enumerate(times)]  # told apart where times are equal
    parts = [part(whole, k, workers) for k in range(workers)]
    assert sorted((a for p in parts for a in p), key=lambda a: a.prompt_tokens or 0) == whole
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for p in parts:
        assert p == sorted(p, key=lambda a: a.offset_s)


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_a_limit_is_shared_out_whole(whole: int, of: int) -> None:
    shares = [share(whole, k, of) for k in range(of)]
    assert sum(shares) == whole
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rates": 1.0, "process": "burst", "requests": 1}, "arrivals are poisson"),
        ({"rates": 1.0}, "ends after some"),
        ({"rates": -1.0, "requests": 1}, "a rate is"),
        ({"rates": math.nan, "requests": 1}, "a rate is"),
        ({"rates": [], "requests": 1}, "at least one"),
        ({"rates": [Stretch(0, 1)], "requests": 1}, "lasts longer"),
        ({"rates": 1.0, "process": "gamma", "burstiness": 0.0, "requests": 1}, "burstiness"),
    ],
)
def test_what_is_no_schedule(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        offsets(seed="", **arguments)


def test_there_is_no_part_beyond_the_last() -> None:
    with pytest.raises(ValueError, match="no part 2 of 2"):
        part([], 2, 2)
