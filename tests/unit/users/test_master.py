from __future__ import annotations

import pytest

from loadgen.users.master import _only_here


@pytest.mark.parametrize(
    ("address", "only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("*", False),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.7", False),
        ("gpu.example.com", False),
    ],
)
def test_which_addresses_are_reached_from_this_machine_alone(address: str, only_here: bool) -> None:
    assert _only_here(address) is only_here
