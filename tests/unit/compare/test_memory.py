"""The five numbers of an engine's memory, against what real engines logged on a real card."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.compare.enginelog import LogMemory, log_memory
from loadgen.compare.kvuse import most_tokens_in_flight, most_used_share
from loadgen.compare.memory import MemorySources, engine_memory
from tests.unit.metrics.rows import columns, row

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "enginelog"
MIB, GIB = 2**20, 2**30
RESERVED = 47_043_313_664  # of vLLM's process, by NVML, in the recording of that start


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text().splitlines()


def test_vllm_log() -> None:
    found = log_memory(lines("vllm_h200.log"))
    assert found.weights == round(7.26 * GIB)
    assert found.kv_capacity == round(33.67 * GIB)
    assert found.kv_tokens == 245_200
    assert found.working == pytest.approx((0.78 + 0.22 + 0.95) * GIB, abs=3)


def test_llamacpp_log_tells_the_load_after_the_trial() -> None:
    assert log_memory(lines("llamacpp_verbose.log")) == LogMemory(
        weights=round(92.10 * MIB), kv_capacity=90 * MIB, kv_tokens=4096, working=round(15.64 * MIB)
    )


def test_llamacpp_log_of_usual_verbosity_tells_only_tokens() -> None:
    assert log_memory(lines("llamacpp_h200.log")) == LogMemory(kv_tokens=16 * 4096)
    assert log_memory(["load_model: initializing, n_slots = 4, n_ctx_slot = 8192, kv_unified = 'true'"]) == (
        LogMemory(kv_tokens=8192)
    )


def test_two_starts_in_one_log_are_the_second() -> None:
    first = [line.replace("7.26", "9.99").replace("pid=4596", "pid=11") for line in lines("vllm_h200.log")]
    assert log_memory([*first, *lines("vllm_h200.log")]) == log_memory(lines("vllm_h200.log"))
    twice = [*lines("llamacpp_verbose.log"), *lines("llamacpp_verbose.log")]
    assert log_memory(twice) == log_memory(lines("llamacpp_verbose.log"))


def test_workers_of_tensor_parallel_are_added_up_and_the_cache_is_one() -> None:
    log = []
    for rank in range(2):
        who = f"(Worker_TP{rank} pid={100 + rank}) INFO [x.py:1]"
        log += [
            f"{who} Model loading took 4.25 GiB memory and 3 seconds",
            f"{who} Available KV cache memory: 20.5 GiB",
        ]
        log += [f"{who} Actual usage is 4.5 GiB for weight, 1.0 GiB for peak activation"]
    log.append("(EngineCore pid=99) INFO [y.py:2] GPU KV cache size: 300,000 tokens")
    assert log_memory(log) == LogMemory(round(8.5 * GIB), 41 * GIB, 300_000, 2 * GIB)


def test_llamacpp_on_gpus_leaves_host_memory_out() -> None:
    log = """
load_tensors: loading model tensors, this can take a while... (mmap = true)
load_tensors:   CPU_Mapped model buffer size =   303.75 MiB
load_tensors:        CUDA0 model buffer size =  2200.00 MiB
load_tensors:        CUDA1 model buffer size =  2000.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =  4608.00 MiB
llama_kv_cache:      CUDA1 KV buffer size =  4608.00 MiB
llama_kv_cache: size = 9216.00 MiB ( 65536 cells,  36 layers, 16 seqs), K (f16): 4608.00 MiB
llama_context:      CUDA0 compute buffer size =   304.00 MiB
llama_context:  CUDA_Host compute buffer size =   136.00 MiB
llama_context:      CUDA0 compute buffer size =   310.00 MiB
""".splitlines()
    assert log_memory(log) == LogMemory(4200 * MIB, 9216 * MIB, 65_536, 310 * MIB)


@given(st.lists(st.text(max_size=80), max_size=30))
def test_any_text_is_read(log: list[str]) -> None:
    assert log_memory(log).empty


def test_five_numbers_of_a_real_vllm() -> None:
    # kv_cache_usage_perc stood at 0.02094753328112764 at most, with 16 users of about 51 + 24 + 256 tokens.
    got = engine_memory(
        MemorySources(
            info={"total_context": 245_200},
            reserved=RESERVED,
            log=log_memory(lines("vllm_h200.log")),
            share=0.02094753328112764,
        )
    )
    assert got["reserved"]["bytes"] == RESERVED
    assert got["kv_used"]["tokens"] == 5136
    # 147,456 bytes a token: 2 x 36 layers x 8 heads x 128 x 2 bytes; the log rounds to hundredths of a GiB.
    assert got["kv_used"]["bytes"] / got["kv_used"]["tokens"] == pytest.approx(147_456, rel=1e-3)
    assert got["least_needed"]["bytes"] == pytest.approx(RESERVED - 33.67 * GIB + 5136 * 147_456, rel=1e-3)
    assert got["missing"] == []


def test_llamacpp_with_a_quiet_log_says_what_is_missing() -> None:
    got = engine_memory(
        MemorySources(
            info={"facts": {"size": 4_700_000_000}, "total_context": None},
            reserved=14_719_909_888,
            log=log_memory(lines("llamacpp_h200.log")),
            tokens=5360,
        )
    )
    assert got["weights"] == {"bytes": 4_700_000_000, "source": "llama.cpp: tensors of the model file"}
    assert got["kv_capacity"] == {"tokens": 65_536, "source": "its log"}
    assert got["kv_used"]["share"] == pytest.approx(5360 / 65_536)
    assert "least_needed" not in got
    assert [text.split(":")[0] for text in got["missing"]] == [
        "KV capacity in bytes",
        "KV used in bytes",
        "least needed",
    ]


@pytest.mark.parametrize(
    ("known", "numbers"),
    [
        (MemorySources({}), set()),
        (MemorySources({}, tokens=100), set()),  # what requests hold says nothing of a server's memory
        (MemorySources({}, reserved=5), {"reserved"}),
        (MemorySources({"facts": {"size": True}}, reserved=5), {"reserved"}),
        (MemorySources({"total_context": 1000}, share=0.5), {"kv_capacity", "kv_used"}),
        (
            # More than is reserved can't be in it: a log of another start. Its own working memory counts.
            MemorySources({}, reserved=5, log=LogMemory(10, 10, 100, 3), share=0.5),
            {"reserved", "weights", "kv_capacity", "kv_used", "least_needed"},
        ),
    ],
)
def test_what_nobody_tells_is_absent(known: MemorySources, numbers: set[str]) -> None:
    got = engine_memory(known)
    assert got.keys() - {"missing"} == numbers
    if "least_needed" in numbers:
        assert got["least_needed"]["bytes"] == 10 + 5 + 3


def test_the_gauge_at_its_highest() -> None:
    rows: list[dict[str, Any]] = [
        {"engine": "v", "kv_used_share": 0.0},
        {"engine": "v", "kv_used_share": 0.4},
        *({"engine": "v", "kv_used_share": 0.2} for _ in range(9)),
        {"engine": "v", "error": "gone"},
        {"engine": "l", "running": 3},
        {"engine": 7, "kv_used_share": 0.9},
    ]
    assert most_used_share(rows) == {"v": 0.4}
    # Nine readings of a cache in use have likely missed its peak.
    assert most_used_share(rows[:-4]) == {}


def test_tokens_in_flight() -> None:
    # (sent at, ends after): 0-10 s, 2-4 s, 4-6 s: never more than two at once, as the third takes the place
    # of the second at the very moment.
    three = [
        row(sent, end, prompt_tokens=prompt, output_tokens=10)
        for sent, end, prompt in ((0, 10, 100), (2, 2, 50), (4, 2, 70))
    ]
    assert most_tokens_in_flight(columns(three)) == 110 + 80
    warm = row(0, 10, prompt_tokens=900, output_tokens=10, phase="warmup")
    assert most_tokens_in_flight(columns([*three, warm])) == 190
    assert most_tokens_in_flight(columns(three), slots=1) == 110
    assert most_tokens_in_flight(columns(three), slots=4) == 190
    assert most_tokens_in_flight(columns([row(0, 1)])) is None
    assert most_tokens_in_flight(columns([])) is None


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 1000)), min_size=1, max_size=20)
)
def test_tokens_in_flight_are_those_of_the_fullest_moment(spans: list[tuple[int, int, int]]) -> None:
    rows = [row(s, length, prompt_tokens=n, output_tokens=1) for s, length, n in spans]
    fullest = max(
        sum(n + 1 for s, length, n in spans if s <= t < s + length)
        for t in range(max(s for s, _, _ in spans) + 1)
    )
    assert most_tokens_in_flight(columns(rows)) == fullest
