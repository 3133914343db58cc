"""Rows of engine.jsonl from recorded pages and made-up ones."""

from __future__ import annotations

import math

import pytest

from loadgen.telemetry.engine_rows import EngineRows
from tests.support.metricsfile import recorded

S = 10**9


def text(prompt: float, output: float) -> str:
    return f"vllm:prompt_tokens_total {prompt}\nvllm:generation_tokens_total {output}\n"


def test_a_row() -> None:
    rows = EngineRows("a")
    first = rows.sample(text(100, 50), 7, 1 * S, 1.23456)
    assert first == {
        "t_ns": 7,
        "engine": "a",
        "prompt_tokens_total": 100,
        "generation_tokens_total": 50,
        "scrape_ms": 1.235,
    }
    second = rows.sample(text(300, 150), 9, 3 * S, 1.0)
    assert second is not None
    assert (second["prompt_tokens_per_s"], second["generation_tokens_per_s"]) == (100, 50)


@pytest.mark.parametrize("restarted", [text(99, 60), text(100, 49), text(0, 0)])
def test_no_rate_across_a_restart(restarted: str) -> None:
    rows = EngineRows("a")
    rows.sample(text(100, 50), 0, 0, 1)
    row = rows.sample(restarted, 0, S, 1)
    assert row is not None
    assert "generation_tokens_per_s" not in row
    assert "prompt_tokens_per_s" not in row
    again = rows.sample(text(200, 200), 0, 2 * S, 1)
    assert again is not None
    assert "prompt_tokens_per_s" in again


def test_no_rate_across_an_error() -> None:
    # A server that was started again may have counted past where it was.
    rows = EngineRows("a")
    rows.sample(text(100, 50), 0, 0, 1)
    rows.error("unreachable", "it is away", 1)
    row = rows.sample(text(200, 100), 0, 2 * S, 1)
    assert row is not None
    assert "prompt_tokens_per_s" not in row


def test_an_error_is_said_once_for_each_change() -> None:
    rows = EngineRows("a")
    away = {"t_ns": 1, "engine": "a", "error": "away 1"}
    assert rows.error("unreachable", "away 1", 1) == away
    assert rows.error("unreachable", "away 2", 2) is None
    assert rows.error("loading", "loads", 3) is not None
    assert rows.sample(text(1, 1), 4, 4, 1) is not None
    assert rows.error("loading", "loads", 5) is not None


def test_a_text_that_says_nothing() -> None:
    assert EngineRows("a").sample("go_threads 4\n", 0, 0, 1) is None


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_rates_of_a_recorded_load_add_up_to_the_tokens(engine: str) -> None:
    pages = recorded(engine)
    rows = EngineRows(engine)
    tokens, before = 0.0, None
    for page in pages:
        row = rows.sample(page.text, page.t_ns, page.t_ns, 1)
        assert row is not None
        if before is not None:
            tokens += row["generation_tokens_per_s"] * (page.t_ns - before) / S
        before = page.t_ns
    assert math.isclose(tokens, (147 if engine == "vllm" else 139) * 256, rel_tol=1e-9)
