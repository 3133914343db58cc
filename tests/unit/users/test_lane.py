import pytest

from loadgen.users.lane import CacheTally, cache_note, warm_note
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane


def tally(cached, limit=30, hit=None, prompt=50):
    t = CacheTally(limit=limit, hit=hit)
    for c in cached:
        t.add(c, prompt)
    return t


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (tally([]), None),
        (tally([0, 24, 30]), None),
        (tally([24, 31, 49]), "engine a: 2 of 3 requests found more tokens than the 30 of template and salt"),
        (tally([24, 31, 49]), "up to 49"),
        (tally([None, None], hit=None), "unverified"),
        (tally([None, None], hit=48), None),
        (tally([None, None], hit=96), "by its own counters 48 tokens a request"),
        # What requests report wins over counters, which other clients of the server move too.
        (tally([24, 24], hit=1000), None),
        # Without a tokenizer the limit is not known: half of a prompt is more than any template.
        (tally([10, 40], limit=None), "1 of 2 requests found more tokens in the prefix cache"),
        (tally([None], limit=None, hit=0), None),
        (tally([None], limit=None, hit=40), "40 tokens a request came from the prefix cache"),
    ],
)
def test_cache_note(case, says):
    note = cache_note("a", case)
    assert (note is None) if says is None else says in note


def test_counting_by_generation_would_warm_the_cache_so_it_counts_as_no_tokenizer():
    assert lane().count(Prompt(0, "abcd")) == 21
    assert lane(tokens=False).count(Prompt(0, "abcd")) is None


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (tally([]), None),
        (
            tally([0, 40, 35]),
            "engine a: 50% of its prompt tokens came from the prefix cache, as is",
        ),
        (tally([0, 0]), "nothing came from the prefix cache"),
        (tally([None]), "unverified"),
        (tally([None, None], hit=0), "nothing came from the prefix cache"),
        (tally([None, None], hit=80), "by its own counters 40 tokens a request"),
    ],
)
def test_a_cache_that_is_meant_to_help(case, says):
    note = warm_note("a", case)
    assert (note is None) if says is None else says in note
