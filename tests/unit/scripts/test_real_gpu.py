"""scripts/real_gpu/agreement.py: what it reads of a server's counters and log."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[3] / "scripts" / "real_gpu"


@pytest.fixture(scope="module")
def agreement() -> ModuleType:
    spec = importlib.util.spec_from_file_location("agreement", FOLDER / "agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_histograms_sum_and_count_over_all_engines(agreement: ModuleType) -> None:
    text = "\n".join(
        f'vllm:e2e_request_latency_seconds_{part}{{engine="{engine}",model_name="m"}} {value}'
        for engine, values in {"0": (1.5, 2), "1": (0.25, 1)}.items()
        for part, value in zip(("sum", "count"), values, strict=True)
    )
    assert agreement.histogram(text, "vllm:e2e_request_latency_seconds") == (1.75, 3.0)
    assert agreement.histogram(text, "vllm:time_to_first_token_seconds") == (0, 0)


def test_llamacpps_log_gives_time_and_length_of_each_answer(agreement: ModuleType) -> None:
    log = (
        "I slot print_timing: id 10 | task 30744 | prompt eval time =      12.10 ms /    25 tokens"
        " (    0.48 ms per token,  2065.60 tokens per second)\n"
        "I slot print_timing: id 10 | task 30744 |        eval time =     557.02 ms /   128 tokens"
        " (    4.39 ms per token,   228.00 tokens per second)\n"
    )
    assert agreement.TIMED.findall(log) == [("prompt eval", "12.10", "25"), ("eval", "557.02", "128")]


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.sh")), ids=lambda p: p.name)
def test_the_shell_scripts_are_shell(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script]).returncode == 0
