"""Cache counters before and after a turn come through whoever scrapes the engine during the run."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from pathlib import Path
from typing import Any

import orjson
import pytest
from gevent.event import Event

from loadgen.config import EngineSpec, Settings
from loadgen.engines import make_engine
from loadgen.users import telemetry as module
from loadgen.users.crew import Crew
from loadgen.users.director import Director
from loadgen.users.lane import Lane
from loadgen.users.run import Run
from loadgen.users.telemetry import Telemetry
from tests.support.canned import Answer, CannedServer


def page(hits: int) -> bytes:
    return f"vllm:prefix_cache_queries_total {1000 + hits}\nvllm:prefix_cache_hits_total {hits}\n".encode()


class Scraping:
    """What the director knows of the telemetry process."""

    def __init__(self, *texts: bytes | None, scrapes: bool = True) -> None:
        self.texts = list(texts)
        self.scrapes = scrapes

    def scrape(self, engine: str) -> str | None:
        assert engine == "v"
        text = self.texts.pop(0)
        return None if text is None else text.decode()


def turn(tmp_path: Path, server: CannedServer, telemetry: Any) -> Lane:
    """Reads the counters as before and after a measured turn."""
    settings = Settings(engines=(EngineSpec(name="v", kind="vllm", url=server.url),), runs_dir=tmp_path)
    lane = Lane(make_engine(settings.engines[0], settings))
    run = Run(settings, [lane], clock="kernel")
    director = Director(
        run,
        Crew(),
        None,  # type: ignore[arg-type]
        None,
        users_in=Event(),
        user_count=lambda: 0,
        want_users=lambda n: None,
        end=lambda: None,
        telemetry=telemetry,
    )
    director._read_cache_counters(lane, before=True)
    director._read_cache_counters(lane, before=False)
    run.close("complete")
    return lane


@pytest.mark.parametrize("telemetry", [None, Scraping(scrapes=False)])
def test_nobody_scrapes_so_the_engine_is_asked(tmp_path: Path, telemetry: Any) -> None:
    pages = [Answer(200, page(10)), Answer(200, page(34))]
    with CannedServer({"/metrics": lambda _: pages.pop(0)}) as server:
        lane = turn(tmp_path, server, telemetry)
    assert lane.cache.hit == 24


def test_somebody_scrapes_so_the_engine_is_left_alone(tmp_path: Path) -> None:
    with CannedServer({"/metrics": Answer(200, page(99))}) as server:
        lane = turn(tmp_path, server, Scraping(page(10), page(34)))
        assert server.seen == []
    assert (lane.cache.hit, lane.cache.counters) == (24, True)


def test_what_the_scraper_cannot_tell_is_not_asked_for_again(tmp_path: Path) -> None:
    with CannedServer({"/metrics": Answer(200, page(99))}) as server:
        lane = turn(tmp_path, server, Scraping(page(10), None))
        assert server.seen == []
    assert (lane.cache.hit, lane.cache.counters) == (None, False)


@pytest.mark.parametrize(("engine_metrics", "scrapes"), [("on", True), ("off", False)])
def test_the_process_gets_what_it_needs_to_ask_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine_metrics: str, scrapes: bool
) -> None:
    monkeypatch.setattr(module, "MODULE", "tests.support.echo_sidecar")
    spec = EngineSpec(name="v", kind="vllm", url="http://h:1", headers={"X-Key": "open sesame"})
    telemetry: Any = {"engine_metrics": engine_metrics}
    run = Run(Settings(engines=(spec,), runs_dir=tmp_path, telemetry=telemetry), [], clock="kernel")
    watch = Telemetry(run)
    said = watch._wait_ready()
    assert watch.scrapes is scrapes
    watch.stop()
    run.close("complete")
    assert watch.scrapes is False
    assert said is not None
    assert EngineSpec(**said["first"]["engines"][0]) == spec
    for file in run.dir.path.iterdir():
        assert b"open sesame" not in file.read_bytes()
    assert orjson.loads(run.dir.manifest_path.read_bytes())["settings"]["engines"][0]["headers"] == {
        "X-Key": "<set>"
    }
