from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.sim.kvcache import BlockCache, Holding, KVMemory, SlotCache


def seq(start: int, n: int) -> tuple[int, ...]:
    return tuple(range(start, start + n))


def test_blocks_are_shared_and_counted_once() -> None:
    cache = BlockCache(capacity=10 * 16)
    a = cache.admit(seq(0, 40), reuse=True)
    assert a is not None
    cache.publish(a, seq(0, 40))
    b = cache.admit(seq(0, 33) + seq(900, 7), reuse=True)
    assert b is not None
    assert b.cached == 32
    assert cache.used() == 3 * 16 + 16  # a: 2 full and 1 open block; b: the same 2 and an open one


def test_idle_blocks_stay_until_memory_is_needed() -> None:
    cache = BlockCache(capacity=6 * 16)
    a = cache.admit(seq(0, 40), reuse=True)
    assert a is not None
    cache.publish(a, seq(0, 40))
    cache.release(a, seq(0, 40))
    assert cache.used() == 0
    again = cache.admit(seq(0, 40), reuse=True)
    assert again is not None
    assert again.cached == 32
    cache.release(again, seq(0, 40))
    big = cache.admit(seq(500, 90), reuse=True)
    assert big is not None  # the idle ones gave way
    cache.release(big, ())
    gone = cache.admit(seq(0, 40), reuse=True)
    assert gone is not None
    assert gone.cached == 0


def test_nothing_is_admitted_that_does_not_fit() -> None:
    cache = BlockCache(capacity=32)
    assert cache.admit(seq(0, 32), reuse=True) is None  # no room for the first answer token
    assert cache.admit(seq(0, 31), reuse=True) is not None
    assert cache.admit(seq(100, 1), reuse=True) is None


def test_slots_choose_the_longest_common_beginning() -> None:
    cache = SlotCache(capacity=1000, slots=2)
    a, b = cache.admit(seq(0, 10), reuse=True), cache.admit(seq(500, 10), reuse=True)
    assert a is not None
    assert b is not None
    assert cache.admit(seq(0, 5), reuse=True) is None
    cache.release(a, seq(0, 12))
    cache.release(b, seq(500, 12))
    c = cache.admit(seq(500, 6), reuse=True)
    assert c is not None
    assert (c.slot, c.cached) == (b.slot, 5)  # one token is always computed


def test_slots_forget_when_memory_is_short() -> None:
    cache = SlotCache(capacity=30, slots=2)
    a = cache.admit(seq(0, 20), reuse=True)
    assert a is not None
    cache.release(a, seq(0, 20))
    b = cache.admit(seq(500, 15), reuse=True)
    assert b is not None
    c = cache.admit(seq(0, 10), reuse=True)
    assert c is not None
    assert c.cached == 0


OPS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60), st.integers(0, 30)), max_size=30)


@given(OPS, st.booleans())
def test_nothing_is_lost(ops: list[tuple[int, int, int]], blocks: bool) -> None:
    """Whatever is admitted, grown and released, in the end nothing is held and never more than there is."""
    cache: KVMemory = BlockCache(12 * 16) if blocks else SlotCache(200, 3)
    held: list[tuple[Holding, tuple[int, ...]]] = []
    for start, n, more in ops:
        h = cache.admit(seq(100 * start, n), reuse=True)
        if h is None:
            if held:
                old, tokens = held.pop(0)
                cache.release(old, tokens)
            continue
        assert 0 <= h.cached < n
        cache.publish(h, seq(100 * start, n))
        grown = cache.grow(h, n + more)
        if blocks:
            assert cache.used() <= 12 * 16
        held.append((h, seq(100 * start, n + more if grown else n)))
    for h, tokens in held:
        cache.release(h, tokens)
    assert cache.used() == 0
