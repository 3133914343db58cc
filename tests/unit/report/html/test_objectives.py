"""What was asked of the engines, on the page: the answers of `loadgen check`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.report.html import Results, results_of
from loadgen.report.html.objectives import objectives_line, objectives_of, objectives_table
from loadgen.slo.objectives import parse_slo
from loadgen.store import Suite
from tests.support.madeups import FAST, SLOW, Made, made_run, made_suite
from tests.unit.report.html.test_markup import Reader

COLOURS = {"vllm": 0, "llamacpp": 1}


def asked(path: Path, *slo: str, **more: object) -> Results:
    return results_of([made_run(path, blocks=6, gpus=0, **more)], slo=parse_slo(slo))  # type: ignore[arg-type]


def words(markup: str | None) -> str:
    spaced = re.sub(r"<(p|li|td|th|small|caption|span class=\"badge)", r" <\1", markup or "")
    return " ".join("".join(Reader(spaced).texts).split())


def test_the_first_screen_says_who_keeps_them(tmp_path: Path) -> None:
    found = asked(tmp_path, "ttft_p95<130ms", "failures<5%")  # TTFT of 180 and 95 ms
    said = words(objectives_line(found.digests, ["16 users"], COLOURS))
    assert said == "Objectives ✕not met vllm not met (ttft_p95<130ms), llamacpp met"


def test_the_table_has_every_objective_by_engine(tmp_path: Path) -> None:
    found = asked(tmp_path, "ttft_p95<130ms", "tpot_p99<1s")
    (one,) = found.digests
    assert one.checked
    said = words(objectives_table(one.checked, COLOURS))
    assert said.startswith("Objectives ✕not met Met, or not met, only if the whole 95 % interval")
    assert "ttft_p95<130ms ✕not met" in said
    assert "tpot_p99<1s ?not decidable" in said  # 192 samples are too few for a bound of p99


def test_a_void_run_decides_nothing(tmp_path: Path) -> None:
    bad = Made("vllm", 100.0, 10.0, failing=4)
    run = made_run(tmp_path, (bad, SLOW), blocks=6, gpus=0)
    found = results_of([run], slo=parse_slo(["ttft_p95<1s"]))
    assert "decided by nothing, since the run is void" in words(
        objectives_line(found.digests, ["x"], COLOURS)
    )
    (one,) = found.digests
    assert one.checked
    assert "The run is void, so it decides nothing: not decidable." in words(
        objectives_table(one.checked, COLOURS)
    )


def test_several_runs_are_lines_and_many_are_counted(tmp_path: Path) -> None:
    suite = made_suite(tmp_path / "a", blocks=6)
    found = results_of([suite], slo=parse_slo(["ttft_p95<300ms"]))
    said = words(objectives_line(found.digests, ["one", "two", "three"], COLOURS))
    assert "two: vllm not met (ttft_p95<300ms), llamacpp not met (ttft_p95<300ms) three:" in said
    many = Suite.create(tmp_path / "b")
    for users in (1, 2, 4, 8, 16, 32):
        made_run(tmp_path / "b", (FAST,), users=users, blocks=2, requests=64, gpus=0, suite=many)
    found = results_of([many], slo=parse_slo(["ttft_p95<300ms"]))
    assert words(objectives_line(found.digests, [""] * 6, COLOURS)) == "Objectives ✓met met in 6 runs"


def test_each_traffic_class_is_asked_by_itself(tmp_path: Path) -> None:
    run = made_run(tmp_path, blocks=6, gpus=0)
    lines = run.journal_path.read_bytes().splitlines()  # every second request is of the one or the other
    named = [
        line.replace(b"{", b'{"traffic_class":"%s",' % (b"chat", b"batch")[n % 2], 1)
        for n, line in enumerate(lines)
    ]
    run.journal_path.write_bytes(b"\n".join(named) + b"\n")
    found = results_of([run], slo=parse_slo(["ttft_p95<130ms"]))
    said = words(objectives_line(found.digests, ["16 users"], COLOURS))
    assert "all requests: vllm not met (ttft_p95<130ms), llamacpp met" in said
    assert "chat: vllm not met (ttft_p95<130ms), llamacpp met" in said
    table = words(objectives_of(found.digests[0], COLOURS))
    assert "Objectives of batch ✕not met" in table
    assert table.count("96 requests") == 4  # of each class and engine


def test_without_objectives_there_is_nothing(tmp_path: Path) -> None:
    found = results_of([made_run(tmp_path, blocks=1, gpus=0)])
    assert objectives_line(found.digests, ["x"], COLOURS) is None


@pytest.mark.parametrize("two", [False, True])
def test_every_run_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two: bool) -> None:
    from loadgen.compare import part

    read: list[str] = []
    real = part.load_run
    monkeypatch.setattr(part, "load_run", lambda run: (read.append(run.name), real(run))[1])
    runs = [made_run(tmp_path, blocks=6, gpus=0) for _ in range(1 + two)]
    found = results_of(runs, slo=parse_slo(["interactive"]))
    assert len(found.across) == two
    assert sorted(read) == sorted(run.name for run in runs)
