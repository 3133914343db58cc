"""llama.cpp's own counters during a run: one scraper, and turns that leave no mark on its rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from engine_server import RealServer

from tests.support.locust_run import LocustRun, run_loadgen, run_locust
from tests.support.tap import Tap

pytestmark = pytest.mark.real_llamacpp

USERS, SLOTS, N, OUTPUT, BEAT_S = 6, 4, 12, 40, 0.2


@dataclass(frozen=True)
class Scraped:
    run: LocustRun
    tap: Tap
    rows: list[dict[str, Any]]
    window: dict[str, Any]


@pytest.fixture(scope="module")
def scraped(real_llamacpp: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Scraped:
    folder = tmp_path_factory.mktemp("scraped")
    (folder / "loadgen.toml").write_text(f'[telemetry]\ngpu = "off"\ninterval_s = {BEAT_S}\n')
    runs = folder / "runs"
    with Tap(real_llamacpp.url) as tap:
        run = run_locust(
            runs,
            *("--engine", f"l=llamacpp:{tap.url}", "--users", str(USERS), "--turn-requests", str(N)),
            *("--blocks", "2", "--warmup-requests", "1", "--cooldown", "0", "--output-tokens", str(OUTPUT)),
        )
    assert run.code == 0, run.err
    rows = [json.loads(line) for line in (run.dir / "engine.jsonl").read_bytes().splitlines()]
    told = run_loadgen(runs, "summary", "latest", "--runs-dir", str(runs), "--json")
    return Scraped(run, tap, rows, json.loads(told.out)["concurrency"]["l"]["window"])


def test_every_row_is_a_sample(scraped: Scraped) -> None:
    assert [row for row in scraped.rows if "error" in row] == []
    assert {row["engine"] for row in scraped.rows} == {"l"}


def test_only_one_process_scrapes(scraped: Scraped) -> None:
    # The generator keeps its connections, the scraper does not. The other scrapes are those at the turns'
    # edges, which made no rows.
    scrapes = scraped.tap.asked("/metrics")
    assert all("connection: close" in head for head in scrapes)
    edges = 2 * len(scraped.run.turns())
    assert len(scraped.rows) + edges - 1 <= len(scrapes) <= len(scraped.rows) + edges + 1


def test_rates_cover_the_time_from_beat_to_beat(scraped: Scraped) -> None:
    """If a scrape at a turn's edge had shortened an interval, or moved a counter's baseline, the rates would
    not add up to what was counted."""
    rows = scraped.rows
    for rate, total in (
        ("prompt_tokens_per_s", "prompt_tokens_total"),
        ("generation_tokens_per_s", "generation_tokens_total"),
    ):
        counted = sum(b[rate] * (b["t_ns"] - a["t_ns"]) / 1e9 for a, b in pairwise(rows))
        assert counted == pytest.approx(rows[-1][total] - rows[0][total], rel=0.02)


def test_the_counters_are_those_of_the_journal(scraped: Scraped) -> None:
    tokens = sum(r["output_tokens"] for r in scraped.run.records)
    assert tokens == (USERS + 2 * N) * OUTPUT
    first, last = scraped.rows[0], scraped.rows[-1]
    # The last beat may come before the last answers have ended, which is when llama.cpp counts their tokens.
    assert (
        0 <= tokens - (last["generation_tokens_total"] - first["generation_tokens_total"]) <= USERS * OUTPUT
    )


def test_the_queue_is_seen(scraped: Scraped) -> None:
    assert max(row["running"] for row in scraped.rows) == SLOTS
    assert max(row["waiting"] for row in scraped.rows) == USERS - SLOTS


def test_our_concurrency_is_the_server_s(scraped: Scraped) -> None:
    window = scraped.window
    assert window["server_concurrency_contradicts"] is False
    assert window["server_concurrency"] == pytest.approx(window["concurrency"], rel=0.25)
