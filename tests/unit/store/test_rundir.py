"""Names, `latest`, suites, and the sentence that a person gets when there is no such run."""

import os
from pathlib import Path

import pytest

from loadgen.store import RunDir, StoreError, Suite, resolve
from loadgen.store.rundir import newest


def make_run(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "requests.jsonl").touch()
    return path


def test_a_run_is_named_by_time_and_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "2026-11-30T16-41-02")
    runs = tmp_path / "runs"
    assert RunDir.create(runs, "concurrency").name == "2026-11-30T16-41-02_concurrency"
    assert RunDir.create(runs, "concurrency").name == "2026-11-30T16-41-02_concurrency-2"
    assert RunDir.create(runs, "../my run/é").name == "2026-11-30T16-41-02_my-run"


def test_latest_follows_the_newest(tmp_path: Path) -> None:
    RunDir.create(tmp_path, "a")
    second = RunDir.create(tmp_path, "b")
    second.journal_path.touch()
    assert (tmp_path / "latest").is_symlink()
    assert not os.path.isabs(os.readlink(tmp_path / "latest"))  # a runs directory can be moved
    assert resolve("latest", tmp_path) == RunDir(second.path.resolve())


def test_latest_without_symlinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("links are not allowed here")

    monkeypatch.setattr(os, "symlink", refuse)
    run = RunDir.create(tmp_path, "a")
    run.journal_path.touch()
    assert (tmp_path / "latest").read_text() == run.name + "\n"
    assert resolve("latest", tmp_path) == RunDir(run.path.resolve())


def test_latest_when_the_link_is_gone_or_dangles(tmp_path: Path) -> None:
    make_run(tmp_path / "2026-01-01T00-00-00_a")
    make_run(tmp_path / "2026-01-02T00-00-00_a")
    assert resolve("latest", tmp_path).name == "2026-01-02T00-00-00_a"
    os.symlink("deleted", tmp_path / "latest")
    assert resolve("latest", tmp_path).name == "2026-01-02T00-00-00_a"


def test_a_suite_holds_its_runs_in_order(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path, "reference")
    runs = [
        RunDir.create(tmp_path, name, suite=suite) for name in ("single_user", "long_prompt", "concurrency")
    ]
    for run in runs:
        run.journal_path.touch()
    latest = resolve("latest", tmp_path)
    assert isinstance(latest, Suite)
    assert [r.name for r in latest.runs()] == [r.name for r in runs]
    inside = resolve(runs[1].name, tmp_path)  # a run of a suite is found by its bare name
    assert inside.path == suite.path / runs[1].name
    assert resolve(f"{suite.name}/{runs[1].name}", tmp_path).path == inside.path


def test_a_deleted_run_is_left_out_of_its_suite(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path, "reference")
    RunDir.create(tmp_path, "single_user", suite=suite).path.rmdir()
    assert Suite.open(suite.path).runs() == []


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": 3}', '{"runs": ["../../etc"]}', '{"runs": [1]}'])
def test_a_damaged_suite_is_one_sentence(tmp_path: Path, content: str) -> None:
    suite = Suite.create(tmp_path, "reference")
    (suite.path / "suite.json").write_text(content)
    with pytest.raises(StoreError, match="is damaged"):
        resolve(suite.name, tmp_path)


def test_a_run_is_found_by_path_and_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "runs" / "r1")
    monkeypatch.chdir(tmp_path)
    assert resolve("runs/r1", Path("elsewhere")).name == "r1"
    assert resolve("r1", Path("runs")).name == "r1"
    assert resolve(str(tmp_path / "runs" / "r1" / ""), Path("x")).name == "r1"
    (tmp_path / "r1").mkdir()  # a directory of that name that is no run doesn't stand in the way
    assert resolve("r1", Path("runs")).path == Path("runs/r1")


def test_no_such_run_lists_the_newest(tmp_path: Path) -> None:
    for day in range(1, 9):
        make_run(tmp_path / f"2026-01-0{day}T00-00-00_a")
    with pytest.raises(StoreError, match=r"no run 'nope'; the newest in .*: 2026-01-08.*, 2026-01-04\S*$"):
        resolve("nope", tmp_path)
    assert len(newest(tmp_path)) == 5


@pytest.mark.parametrize("name", ["latest", "x"])
def test_an_empty_or_missing_runs_directory(tmp_path: Path, name: str) -> None:
    for runs_dir in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match=r"there are no runs in .* yet"):
            resolve(name, runs_dir)


def test_things_that_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="plain is not a run directory"):
        resolve(str(tmp_path / "plain"), tmp_path)
    with pytest.raises(StoreError, match="file is a file, not a run directory"):
        resolve(str(tmp_path / "file"), tmp_path)
    with pytest.raises(StoreError, match="there is no directory"):
        RunDir.open(tmp_path / "gone")
    with pytest.raises(StoreError, match="there is no run"):
        resolve("[a-z]*?", tmp_path)


def test_a_directory_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(StoreError, match=r"cannot be read: Permission denied"):
        resolve("secret", tmp_path)


def test_a_runs_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="no run directory can be made in"):
        RunDir.create(tmp_path / "file", "a")


def test_workers_journals_are_read_after_the_runs_own(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "a")
    run.worker_journal_path("host/1").touch()
    assert [p.name for p in RunDir.open(run.path).journals()] == ["requests-host-1.jsonl"]
    run.journal_path.touch()
    assert [p.name for p in run.journals()] == ["requests.jsonl", "requests-host-1.jsonl"]
