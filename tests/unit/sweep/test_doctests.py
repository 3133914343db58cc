"""The examples in docstrings are true."""

import doctest
from types import ModuleType

import pytest

from loadgen.sweep import arguments, curve, estimate, names, plan


@pytest.mark.parametrize("module", [arguments, curve, estimate, names, plan])
def test_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
