import pytest

from loadgen.users.warmup import is_steady


@pytest.mark.parametrize(
    ("rounds", "steady"),
    [
        ([], False),
        ([[100.0]], False),
        ([[900.0], [100.0]], False),  # it still falls
        ([[900.0], [100.0], [95.0]], True),  # by 5 %
        ([[100.0], [140.0]], True),  # slower again is noise, not warming up
        ([[100.0, 500.0, 100.0], [99.0, 98.0, 700.0]], True),  # medians, not means
        ([[100.0], []], False),  # a round without any text says nothing
    ],
)
def test_is_steady(rounds, steady):
    assert is_steady(rounds) is steady
