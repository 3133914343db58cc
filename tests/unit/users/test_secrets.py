"""What a server repeats of the keys it was sent reaches neither journal nor notes."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from pathlib import Path

import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.engines import make_engine
from loadgen.users.run import Run
from tests.unit.users.fakes import record

KEY, HEADER = "sk-from-the-environment", "sk-from-the-file"


def test_error_texts_and_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENGINE_KEY", KEY)
    spec = EngineSpec(
        name="a", kind="vllm", url="http://h:1", api_key_env="ENGINE_KEY", headers={"X-Key": HEADER}
    )
    settings = Settings(engines=(spec,), runs_dir=tmp_path)
    said = make_engine(spec, settings).http_error_text(401, f"key {KEY} or {HEADER} is wrong".encode())
    assert said == "HTTP 401: key <secret> or <secret> is wrong"
    run = Run(settings, [], clock="kernel")
    failed = record(outcome="failed", error="in_stream", error_text=f"who is {KEY}?")
    run.write(failed)
    run.note(f"the server does not like {HEADER}")
    run.close("complete")
    assert failed.error_text == "who is <secret>?"
    assert run.manifest.notes == ["the server does not like <secret>"]
    everything = caplog.text + "".join(p.read_text() for p in run.dir.path.iterdir())
    assert KEY not in everything
    assert HEADER not in everything
