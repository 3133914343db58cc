"""The manifest: written in one step, read back, and without keys."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.store import Manifest, StoreError
from loadgen.store.manifest import COMPLETE, RUNNING


def settings(**engine: Any) -> Settings:
    spec = EngineSpec(name="a", kind="vllm", url="http://h:1", **engine)
    return Settings(engines=(spec,), scenario="single_user", seed=42)


def test_it_is_written_at_the_start_and_again_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    manifest = Manifest.new("r1", settings(), [{"name": "a", "simulated": True}], clock="user")
    manifest.write(path)
    first = Manifest.read(path)
    assert (first.run, first.scenario, first.state, first.end_ns) == ("r1", "single_user", RUNNING, None)
    assert first.seeds == {"prompts": 42}
    assert first.engines == [{"name": "a", "simulated": True}]
    assert first.settings["engines"][0]["url"] == "http://h:1"
    assert first.host["cores"] >= 1
    assert "locust" in first.packages
    manifest.note("the fan was off")
    manifest.note("the fan was off")
    manifest.finish(path)
    last = Manifest.read(path)
    assert (last.state, last.notes) == (COMPLETE, ["the fan was off"])
    assert last.end_ns is not None
    assert last.end_ns >= last.start_ns > 0
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_no_key_gets_in_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_A", "sk-0123456789")
    spec = settings(
        api_key_env="KEY_OF_A", headers={"X-Auth": "header-secret"}, start="serve --key sk-0123456789"
    )
    manifest = Manifest.new("r", spec, [{"name": "a", "args": ["--token", "header-secret"]}])
    manifest.note("started with sk-0123456789")
    manifest.write(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    assert "sk-0123456789" not in text
    assert "header-secret" not in text
    assert "serve --key <secret>" in text


def test_a_key_that_is_not_set_is_somebody_elses_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_OF_A", raising=False)
    assert Manifest.new("r", settings(api_key_env="KEY_OF_A")).run == "r"


def test_keys_of_a_newer_version_survive(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"run": "r", "verdict": {"a": 1}, "end_ns": None}))
    manifest = Manifest.read(path)
    assert manifest.extra == {"verdict": {"a": 1}}
    manifest.write(path)
    assert json.loads(path.read_text())["verdict"] == {"a": 1}


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000),
        *(b'{"notes": "x"}', b'{"notes": [1]}', b'{"start_ns": "soon"}'),
        *(b'{"engines": [1]}', b'{"engines": [{"facts": "x"}]}'),
    ],
    ids=lambda content: content[:30].decode(errors="replace"),
)
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"m\.json is damaged"):
        Manifest.read(path)


def test_a_path_that_is_not_utf8_survives(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    Manifest(run="r", settings={"prompt_file": "p\udcff"}).write(path)
    path.read_bytes().decode("utf-8")
    assert Manifest.read(path).settings == {"prompt_file": "p\udcff"}


def test_ctrl_c_while_writing_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{'m' * 250}.json"
    Manifest(run="old").write(path)

    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", pressed)
    with pytest.raises(KeyboardInterrupt):
        Manifest(run="new").write(path)
    assert Manifest.read(path).run == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_one_and_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        Manifest.read(tmp_path / "m.json")
    with pytest.raises(StoreError, match="cannot be written"):
        Manifest().write(tmp_path / "missing" / "m.json")
