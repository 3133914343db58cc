"""What lies in a directory of runs, and what of it may be removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from loadgen.sinks.lock import delivery_lock
from loadgen.store import Manifest, RunDir, StoreError, Suite
from loadgen.store.inventory import Entry, entries
from loadgen.store.prune import doomed, remove

DAY_NS = 86_400 * 10**9
NOW = 1_800_000_000_000_000_000


def made(
    runs_dir: Path, name: str, *, days_ago: float = 0, state: str = "complete", suite: Suite | None = None
) -> RunDir:
    """A run that was made, and last written, so many days before NOW."""
    run = RunDir((suite.path if suite else runs_dir) / name)
    run.path.mkdir(parents=True)
    start_ns = NOW - int(days_ago * DAY_NS)
    manifest = Manifest(run=name, scenario="concurrency", state=state, start_ns=start_ns)
    manifest.write(run.manifest_path)
    run.journal_path.touch()
    if suite:
        suite.add(run)
    return run


def silent(*runs: RunDir, seconds: float = 4000) -> None:
    """Nothing was written there for a while."""
    at = time.time() - seconds
    for run in runs:
        for path in run.path.iterdir():
            os.utime(path, (at, at))


def name(day: int) -> str:
    return f"2026-11-{day:02}T10-00-00_concurrency"


def names(found: list[Entry]) -> list[str]:
    return [e.name[8:10] for e in found]


def test_runs_and_suites_newest_first(tmp_path: Path) -> None:
    made(tmp_path, name(1), days_ago=3)
    suite = Suite.create(tmp_path)
    for n, day in enumerate((2, 3)):
        made(tmp_path, name(day), days_ago=2 - n / 10, suite=suite)
    made(tmp_path, name(4), days_ago=1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "a.txt").touch()
    found = entries(tmp_path)
    assert [(e.suite, [r.name[8:10] for r in e.runs]) for e in found] == [
        (False, ["04"]),
        (True, ["02", "03"]),
        (False, ["01"]),
    ]
    assert found[1].runs[0].suite == suite.name
    assert entries(tmp_path / "nowhere") == []


def test_states(tmp_path: Path) -> None:
    going = made(tmp_path, name(1), state="running")
    killed = made(tmp_path, name(2), state="running")
    silent(killed, seconds=200)
    made(tmp_path, name(3)).manifest_path.write_text("{")
    made(tmp_path, name(4)).manifest_path.unlink()
    states = {r.name[8:10]: r.state for e in entries(tmp_path) for r in e.runs}
    assert states == {"01": "running", "02": "killed", "03": "damaged", "04": "unknown"}
    assert going.path.exists()


def test_a_damaged_suite_still_lists_its_runs(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    made(tmp_path, name(2), suite=suite)
    (suite.path / "suite.json").write_text("{")
    (entry,) = entries(tmp_path)
    assert [r.name for r in entry.runs] == [name(2)]


@pytest.mark.parametrize(
    ("keep", "before_days", "going"),
    [
        (None, 2.5, ["02", "01"]),
        (3, None, ["02", "01"]),
        (0, None, ["05", "04", "03", "02", "01"]),
        (4, 2.5, ["01"]),
        (1, 2.5, ["02", "01"]),
        (9, 0, []),
        (None, 9, []),
    ],
)
def test_what_goes(tmp_path: Path, keep: int | None, before_days: float | None, going: list[str]) -> None:
    for day in range(1, 6):
        made(tmp_path, name(day), days_ago=5 - day)
    before_ns = None if before_days is None else NOW - int(before_days * DAY_NS)
    assert doomed(entries(tmp_path), keep=keep, before_ns=before_ns) == (
        [e for e in entries(tmp_path) if e.name[8:10] in going],
        [],
    )
    assert names(doomed(entries(tmp_path), keep=keep, before_ns=before_ns)[0]) == going


def test_what_stays_in_any_case(tmp_path: Path) -> None:
    made(tmp_path, name(1), state="running")
    killed = made(tmp_path, name(2), state="running")
    silent(killed, seconds=600)
    made(tmp_path, name(3)).manifest_path.unlink()
    made(tmp_path, "my-extension")
    going_on = Suite.create(tmp_path)
    made(tmp_path, name(4), suite=going_on)
    going, spared = doomed(entries(tmp_path), keep=0)
    assert going == []
    assert {s.partition(" stays: ")[2] for s in spared} == {
        "it is running",
        "it was killed within the last hour, or still goes on",
        "it has no manifest that can be read, look at it first",
        "its name is not one that loadgen gave",
        "a suite that was written within the last half hour may go on",
    }


def test_what_was_killed_long_ago_goes_and_a_suite_that_is_over(tmp_path: Path) -> None:
    killed = made(tmp_path, name(2), state="running")
    silent(killed)
    suite = Suite.create(tmp_path)
    silent(made(tmp_path, name(4), suite=suite), RunDir(suite.path))
    going, spared = doomed(entries(tmp_path), keep=0)
    assert (len(going), spared) == (2, [])


def test_removing(tmp_path: Path) -> None:
    old, new = (made(tmp_path, name(day), days_ago=5 - day) for day in (1, 2))
    os.symlink(old.name, tmp_path / "latest")
    newest, oldest = entries(tmp_path)
    with delivery_lock(new.path), pytest.raises(StoreError, match="is being delivered already"):
        remove(newest)
    assert new.path.exists()
    remove(oldest)
    assert not old.path.exists()
    assert not os.path.lexists(tmp_path / "latest")
    assert new.path.exists()
