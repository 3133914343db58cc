"""One Locust run against the real vLLM and the real llama.cpp, which serve the same small model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from engine_server import RealServer

from loadgen.record import OK, RequestRecord
from tests.support.locust_run import LocustRun, run_loadgen, run_locust

pytestmark = [pytest.mark.real_vllm, pytest.mark.real_llamacpp, pytest.mark.timeout(300)]

N, OUTPUT, PROMPT = 3, 24, 60


@dataclass(frozen=True)
class Compared:
    run: LocustRun
    records: dict[str, list[RequestRecord]]
    figures: dict[str, Any]


@pytest.fixture(scope="module")
def compared(
    real_vllm: RealServer, real_llamacpp: RealServer, tmp_path_factory: pytest.TempPathFactory
) -> Compared:
    runs = tmp_path_factory.mktemp("both") / "runs"
    run = run_locust(
        runs,
        *("--engine", f"v=vllm:{real_vllm.url}", "--engine", f"l=llamacpp:{real_llamacpp.url}"),
        *("--turn-requests", str(N), "--blocks", "2", "--warmup-requests", "1", "--cooldown", "0"),
        *("--prompt-tokens", str(PROMPT), "--output-tokens", str(OUTPUT)),
        scenario="single_user",
    )
    assert run.code == 0, run.err
    told = run_loadgen(runs, "summary", "latest", "--runs-dir", str(runs), "--json")
    measured = [RequestRecord.from_dict(row) for row in run.measured()]
    records = {name: [r for r in measured if r.engine == name] for name in ("v", "l")}
    return Compared(run, records, json.loads(told.out)["single_user"])


def test_turns_go_there_and_back(compared: Compared) -> None:
    assert compared.run.turns() == [("v", True), ("l", True), ("l", True), ("v", True)]


def test_both_had_the_same_prompts_of_the_length_asked(compared: Compared) -> None:
    lengths = {name: {r.pair: r.prompt_tokens for r in rows} for name, rows in compared.records.items()}
    assert lengths["v"] == lengths["l"]
    assert set(lengths["v"].values()) == {PROMPT}


def test_every_answer_has_the_tokens_asked(compared: Compared) -> None:
    for rows in compared.records.values():
        assert len(rows) == 2 * N
        assert {(r.outcome, r.output_tokens, r.token_source) for r in rows} == {(OK, OUTPUT, "usage")}


def test_vllm_keeps_its_connection_and_llama_cpp_does_not(compared: Compared) -> None:
    by_turn: dict[int, list[bool]] = {}
    for r in compared.records["v"]:
        by_turn.setdefault(r.turn, []).append(r.connection_reused)
    # vLLM closes what has been idle for 5 s, which the other engine's turn may take.
    assert all(all(reused[1:]) for reused in by_turn.values())
    assert not any(r.connection_reused for r in compared.records["l"])


def test_the_summary_has_both_and_they_are_not_called_simulated(compared: Compared) -> None:
    assert list(compared.figures) == ["v", "l"]
    for figures in compared.figures.values():
        assert not figures.get("simulated")
        assert figures["counts"]["ok"] == 2 * N
        assert abs(figures["window"]["littles_residual"]) < 0.001
