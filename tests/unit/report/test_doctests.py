"""The examples in docstrings and in docs/summary.md are true."""

import doctest
from pathlib import Path
from types import ModuleType

import pytest

from loadgen import plain
from loadgen.metrics import littles, percentiles
from loadgen.report import listing

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", [littles, percentiles, plain, listing])
def test_docstrings(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_docs_summary() -> None:
    result = doctest.testfile(str(ROOT / "docs" / "summary.md"), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
