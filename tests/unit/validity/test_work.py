"""Steady state, comparable engines, samples, GPU clocks and sharing: one planted fault each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadgen.metrics.turns import Turn
from loadgen.report.summary import summarise_run
from loadgen.validity import Evidence, check_run
from loadgen.validity.gpu_rows import gpu_load
from loadgen.validity.modelname import base_model
from tests.unit.slo.made import slow_run
from tests.unit.validity.made import S, engine, evidence
from tests.unit.validity.test_telemetry import FACTS, recording, sample


def found(run: Evidence, check: str) -> list[tuple[str, str]]:
    return [(f.level.word, f.evidence) for f in check_run(run).findings if f.check == check]


def settled(effect: float, errors: float = 9.0, requests: int = 32) -> Any:
    return {"settling": {"ttft_ms": {"requests": requests, "of": 384, "effect": effect, "errors": errors}}}


def drifted(change: float, p: float = 2 / 720) -> Any:
    return {"turns": {"throughput_tokens_per_s": {"change": change, "p": p, "turns": 6}}}


def inside(low: float, high: float) -> Any:
    return {"within": {"tpot_ms": {"change": (low + high) / 2, "low": low, "high": high, "turns": 6}}}


@pytest.mark.parametrize(
    ("steady", "says"),
    [
        (settled(0.049), None),
        (settled(0.2, errors=2.9), None),
        (
            settled(0.05),
            "TTFT of the first 32 of 384 requests is unlike the rest and makes the mean 5.0 % higher",
        ),
        (settled(-0.06), "makes the mean 6.0 % lower"),
        (drifted(-0.04), None),
        (drifted(-0.15, p=0.017), None),
        (
            drifted(-0.15),
            "throughput drifts from turn to turn: 15.0 % lower by the last of 6 turns (chance 0.28 %)",
        ),
        (inside(0.05, 0.4), None),
        (inside(-0.09, 0.09), None),
        (inside(0.11, 0.19), "TPOT drifts inside turns: 15.0 % higher in the last third"),
        (inside(-0.3, -0.1), "TPOT drifts inside turns: 20.0 % lower"),
    ],
)
def test_steady_state(steady: Any, says: str | None) -> None:
    got = found(evidence(engine(steady=steady)), "steady_state")
    assert [level for level, _ in got] == (["suspect"] if says else [])
    assert all(says in text for _, text in got if says)


def test_prompts_of_a_file_may_have_an_order() -> None:
    run = evidence(engine(steady=inside(0.3, 0.4)), settings={"prompt_file": "chats.jsonl"})
    assert found(run, "steady_state") == []


def infos(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "a", **a}, {"name": "b", **b}]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"model": "Qwen3-8B-FP8"}, {"model": "qwen3-8b-q4_k_m.gguf"}, []),
        (
            {"model": "Qwen3-8B-FP8"},
            {"model": "qwen3-4b-q4_k_m.gguf"},
            [("suspect", "the base models differ: a qwen3-8b, b qwen3-4b")],
        ),
        ({"model": "Qwen3-8B-FP8"}, {"model": "chat"}, []),
        (
            {"facts": {"n_vocab": 151936}},
            {"facts": {"n_vocab": 128256}},
            [("suspect", "the vocabularies differ in size: a 151,936, b 128,256")],
        ),
        ({"context": 8192}, {"context": 40960}, [("valid", "the context lengths differ: a 8,192, b 40,960")]),
        ({"context": 8192}, {"context": None}, []),
    ],
)
def test_comparable_models(a: Any, b: Any, expected: list[tuple[str, str]]) -> None:
    assert found(evidence(infos=infos(a, b)), "comparable") == expected


@pytest.mark.parametrize(("mean", "caught"), [(2000, False), (2020, False), (2021, True), (1900, True)])
def test_the_same_prompts_are_as_many_tokens(mean: int, caught: bool) -> None:
    run = evidence(engine({"prompt_tokens": 384 * 2000}))
    run.engines["b"]["counts"]["prompt_tokens"] = 384 * mean  # type: ignore[index]
    got = found(run, "comparable")
    assert [level for level, _ in got] == (["suspect"] if caught else [])
    assert all(text == f"the same prompts are 2,000 tokens to a and {mean:,} to b" for _, text in got)


def test_a_token_of_short_prompts_does_not_matter() -> None:
    run = evidence(engine({"prompt_tokens": 384 * 50}))
    run.engines["b"]["counts"]["prompt_tokens"] = 384 * 52  # type: ignore[index]
    assert found(run, "comparable") == []


def test_samples() -> None:
    assert found(evidence(engine({"ok": 20})), "samples") == []
    assert found(evidence(engine({"ok": 19})), "samples") == [
        ("suspect", "a: 19 successful requests, so p95 is the slowest of them")
    ]


TURN = {"a": [Turn(0, 0, 0, 101 * S, 101.0)]}


def clocked(slow: int, mhz: float, reasons: list[str] | None = None, **more: Any) -> Any:
    """A hundred samples at 1980 MHz, but for some."""
    rows = [sample(t, [], sm_clock_mhz=1980, **more) for t in range(102)]
    for row in rows[20 : 20 + slow]:
        row |= {"sm_clock_mhz": mhz, "throttle_reasons": reasons or []}
    return gpu_load([FACTS, *rows], TURN)


@pytest.mark.parametrize(
    ("slow", "mhz", "reasons", "caught"),
    [
        (5, 1700, [], True),
        (4, 1700, [], False),
        (50, 1790, [], False),
        (50, 1400, ["sw_power_cap"], False),  # gpu_throttling tells of it
        (50, 1400, ["applications_clocks_setting"], False),
    ],
)
def test_clocks_by_the_cards_own_measure(slow: int, mhz: float, reasons: list[str], caught: bool) -> None:
    got = found(evidence(gpus=clocked(slow, mhz, reasons)), "gpu_clocks")
    assert [level for level, _ in got] == (["suspect"] if caught else [])
    assert all(
        "SM clock 1,700 of the 1,980 MHz that it reached, in 5.0 % of 100 samples" in t for _, t in got
    )


def test_a_card_that_gives_no_reasons_at_all_is_judged_by_its_clocks() -> None:
    rows = [{**sample(t, []), "sm_clock_mhz": 1400 if t > 50 else 1980} for t in range(102)]
    for row in rows:
        del row["throttle_reasons"]
    assert [level for level, _ in found(evidence(gpus=gpu_load(rows, TURN)), "gpu_clocks")] == ["suspect"]


def test_a_card_with_little_to_do_may_clock_down() -> None:
    assert found(evidence(gpus=clocked(50, 345, busy=30.0)), "gpu_clocks") == []


@pytest.mark.parametrize(("slow", "level"), [(0, None), (1, "void")])
def test_the_rule_of_a_lowest_clock(slow: int, level: str | None) -> None:
    run = evidence(gpus=clocked(slow, 1199), settings={"void_below_sm_clock_mhz": 1200})
    got = found(run, "gpu_clocks")
    assert [word for word, _ in got] == ([level] if level else [])
    assert all("SM clock below 1,200 MHz in 1.0 % of 100 samples under load, 1,199 MHz" in t for _, t in got)


@pytest.mark.parametrize(("limit", "words"), [(None, []), (1100, []), (1200, ["void"])])
def test_the_real_recording(limit: float | None, words: list[str]) -> None:
    """An H200 under its power cap: most of the time at 1,470 MHz of 1,980, and once, for a second, at 1,125.
    By its own measure nothing is wrong with it; by a rule made for another card the run is void."""
    rows, load, _ = recording()
    gpus = gpu_load([FACTS, *rows], {"a": [load]})
    run = evidence(gpus=gpus, settings={"void_below_sm_clock_mhz": limit})
    assert [word for word, _ in found(run, "gpu_clocks")] == words


@pytest.mark.parametrize(
    ("residency", "where", "expected"),
    [
        ("shared", ("a", "b"), []),
        ("parallel", ("a",), [("valid", "engines were measured at the same time, and nobody saw which")]),
        ("parallel", ("a", "b"), [("void", "GPU 0 of box: a and b were measured on it at the same time")]),
    ],
)
def test_one_gpu_for_two_at_the_same_time(residency: str, where: tuple[str, ...], expected: Any) -> None:
    held = [{"pid": n, "memory_bytes": 1, "engine": name} for n, name in enumerate(where)]
    rows = [sample(t, [], processes=held) for t in range(102)]
    both = {"a": TURN["a"], "b": TURN["a"]}
    run = evidence(gpus=gpu_load(rows, both), settings={"residency": residency})
    assert [(level, text[:60]) for level, text in found(run, "gpu_sharing")] == [
        (level, text[:60]) for level, text in expected
    ]


def test_each_on_a_gpu_of_its_own() -> None:
    rows = []
    for t in range(102):
        for gpu, name in enumerate("ab"):
            held = [{"pid": 1, "memory_bytes": 1, "engine": name}]
            rows.append({**sample(t, [], processes=held), "gpu": gpu})
    run = evidence(gpus=gpu_load(rows, {"a": TURN["a"], "b": TURN["a"]}), settings={"residency": "parallel"})
    assert found(run, "gpu_sharing") == []


NAMES = {
    "qwen3-8b": [
        "Qwen/Qwen3-8B",
        "Qwen3-8B-FP8",
        "qwen3-8b-q4_k_m.gguf",
        "/models/Qwen3-8B-UD-Q4_K_XL.gguf",
        "/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B-FP8/snapshots/0123abcd",
        "Qwen_Qwen3-8B-GGUF",
        "Qwen3-8B_Q4_K_M-00001-of-00003.gguf",
    ],
    "llama-3.1-8b-instruct": [
        "Meta-Llama-3.1-8B-Instruct-FP8",
        "Llama-3.1-8B-Instruct-quantized.w4a16",
        "Llama-3.1-8B-Instruct-FP8-dynamic",
        "llama-3.1-8b-instruct-awq-int4",
    ],
    "llama-3.1-8b": ["meta-llama/Llama-3.1-8B"],
    "mixtral-8x7b-instruct-v0.1": [
        "Mixtral-8x7B-Instruct-v0.1-GPTQ",
        "mixtral-8x7b-instruct-v0.1.Q5_K_M.gguf",
    ],
    "gemma-3-4b-it": ["google/gemma-3-4b-it", "gemma-3-4b-it-qat-q4_0.gguf"],
    "qwen3-30b-a3b-instruct-2507": [
        "qwen3-30b-a3b-instruct-2507.IQ4_XS.gguf",
        "Qwen3-30B-A3B-Instruct-2507-FP8",
    ],
    None: ["default", "gpt-oss", "", "model-q4_k_m.gguf"],
}


@pytest.mark.parametrize(("base", "name"), [(base, name) for base, names in NAMES.items() for name in names])
def test_names_of_models(base: str | None, name: str) -> None:
    assert base_model({"model": name}) == base


def test_a_path_says_more_than_an_alias() -> None:
    info = {"model": "chat", "facts": {"model_path": "/models/Qwen3-8B-Q4_K_M.gguf"}}
    assert base_model(info) == "qwen3-8b"
    assert base_model({}) is None


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        ([[100.0] * 30] * 6, None),
        ([[300.0] * 30, *[[100.0] * 30] * 5], "e: TTFT of the first 30 of 180 requests is unlike the rest"),
        ([[100.0 + 5 * t] * 30 for t in range(6)], "e: TTFT drifts from turn to turn: 2"),
    ],
)
def test_from_the_journal_to_the_judgement(
    tmp_path: Path, turns: list[list[float]], says: str | None
) -> None:
    validity = summarise_run(slow_run(tmp_path, turns)).validity
    assert validity is not None
    evidences = [f.evidence for f in validity.findings if f.check == "steady_state"]
    assert validity.level.word == ("suspect" if says else "valid")
    assert any(e.startswith(says) for e in evidences) if says else evidences == []


def of_classes(means: dict[str, int]) -> Any:
    """Ten requests of each class, of these mean lengths."""
    classes = {name: {"counts": {"ok": 10, "prompt_tokens": 10 * mean}} for name, mean in means.items()}
    return engine({"prompt_tokens": sum(10 * mean for mean in means.values())}, classes=classes)


@pytest.mark.parametrize(
    ("a", "b", "caught"),
    [
        ({"short": 50, "long": 2000}, {"short": 50, "long": 2000}, False),
        ({"short": 50, "long": 2000}, {"short": 60, "long": 2000}, True),
        # Later turns hold the engine's own answers, which are as long as they are.
        ({"first-turn": 600, "warm-turns": 900}, {"first-turn": 600, "warm-turns": 990}, False),
        ({"first-turn": 600, "warm-turns": 900}, {"first-turn": 660, "warm-turns": 990}, True),
    ],
)
def test_prompts_of_classes_are_held_against_their_like(a: Any, b: Any, caught: bool) -> None:
    run = evidence(engines={"a": of_classes(a), "b": of_classes(b)})
    assert bool(found(run, "comparable")) is caught
