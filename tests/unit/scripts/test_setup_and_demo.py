"""setup.sh on a machine whose Python does not fit; the demo's table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from demo import SIMULATED, overview

from loadgen.workload.scenarios import REFERENCE

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("version", ["Python 3.8.10", "Python 3.14.0"])
def test_a_python_that_does_not_fit_is_named(tmp_path: Path, version: str) -> None:
    python = tmp_path / "python-of-this-machine"
    python.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit 0\nexit 1\n')
    python.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        [str(ROOT / "scripts" / "setup.sh"), str(venv)],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(python)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"loadgen needs Python 3.10 to 3.13, and this machine has '{version}'")
    assert not venv.exists()


def test_overview_puts_what_was_published_beside_what_was_measured() -> None:
    engine = {"simulated": True, "ttft_ms": {"p50": 181.4}, "decode_tokens_per_s": {"p50": 42.1}}
    text = overview({"single_user": {"vllm": engine, "mine": engine}}, SIMULATED.published)
    first, _, ttft, decode, long_ttft, *_ = text.splitlines()
    assert first.split() == ["In", "short", "(simulated", "engines)", "vllm", "published", "mine"]
    assert ttft.split()[-3:] == [
        "181",
        "180",
        "181",
    ]  # measured, published, measured; nobody published "mine"
    assert decode.split()[-3:] == ["42", "42", "42"]
    assert long_ttft.split()[-3:] == ["-", "1,200", "-"]  # not run
    assert max(map(len, text.splitlines())) <= 80


def test_the_demo_runs_the_whole_reference_suite_and_says_that_it_is_simulated() -> None:
    assert tuple(SIMULATED.flags) == REFERENCE
    assert "SIMULATED" in SIMULATED.about
    assert "instead of" in SIMULATED.shortened
