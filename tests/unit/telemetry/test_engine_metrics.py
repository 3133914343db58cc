"""The scraper against canned servers: beats, keys, errors said once, one that hangs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from loadgen.config import EngineSpec
from loadgen.telemetry.engine_metrics import Scraper
from tests.support.canned import Answer, CannedServer, Seen, as_json, captured_routes


class Rows(list[dict[str, Any]]):
    """What the scraper wrote, and a way to wait for it."""

    def until(self, what: Callable[[dict[str, Any]], bool], count: int = 1) -> None:
        deadline = time.monotonic() + 20
        while sum(what(row) for row in list(self)) < count:
            assert time.monotonic() < deadline, f"not written: {self}"
            time.sleep(0.01)


def spec(url: str, name: str = "a", kind: str = "vllm", **more: Any) -> EngineSpec:
    return EngineSpec(name=name, kind=kind, url=url, **more)  # type: ignore[arg-type]


def counting(step: int = 10) -> Callable[[Seen], Answer]:
    """A page whose counter grows with each scrape."""
    seen = [0]

    def page(_: Seen) -> Answer:
        seen[0] += step
        return Answer(200, f"vllm:generation_tokens_total {seen[0]}\n".encode())

    return page


def test_both_servers_as_captured() -> None:
    rows = Rows()
    with CannedServer(captured_routes("vllm")) as v, CannedServer(captured_routes("llamacpp")) as ll:
        scraper = Scraper([spec(v.url, "v"), spec(ll.url, "l", "llamacpp")], 0.1, rows.append)
        before = time.time_ns()
        scraper.start()
        rows.until(lambda r: r["engine"] == "v", 2)
        rows.until(lambda r: r["engine"] == "l", 2)
        scraper.stop()
        after = time.time_ns()
        assert ll.asked("/metrics")[0].headers["connection"] == "close"
    llama = [r for r in rows if r["engine"] == "l"]
    assert (llama[0]["running"], llama[0]["cache_hits_total"]) == (1, 1451)
    assert "generation_tokens_per_s" not in llama[0]
    assert llama[1]["generation_tokens_per_s"] == 0
    assert all(before <= r["t_ns"] <= after and r["scrape_ms"] > 0 for r in rows)
    times = [r["t_ns"] for r in llama]
    assert times == sorted(times)


def test_scrape_now_makes_no_row_and_shortens_no_interval() -> None:
    rows = Rows()
    with CannedServer({"/metrics": counting()}) as server:
        scraper = Scraper([spec(server.url)], 0.2, rows.append)
        text = scraper.scrape_now("a")  # before the beat, too
        assert text == "vllm:generation_tokens_total 10\n"
        scraper.start()
        rows.until(lambda r: True)
        for _ in range(5):
            assert scraper.scrape_now("a")
        rows.until(lambda r: True, 3)
        scraper.stop()
    totals = [r["generation_tokens_total"] for r in rows]
    # Five scrapes of ours lie between the first beat and the last, and none made a row.
    assert totals[0] == 20
    assert totals[-1] - totals[0] == 10 * (len(rows) - 1 + 5)
    # The rates cover the time from beat to beat, so that they add up to all that was counted.
    ns = [r["t_ns"] for r in rows]
    counted = sum(
        r["generation_tokens_per_s"] * (b - a) / 1e9 for r, a, b in zip(rows[1:], ns, ns[1:], strict=False)
    )
    assert counted == pytest.approx(totals[-1] - totals[0], rel=0.02)


def test_key_and_headers_come_along() -> None:
    with CannedServer({"/metrics": counting()}) as server:
        keyed = spec(server.url, api_key_env="ENGINE_KEY", headers={"X-Team": "blue"})
        scraper = Scraper([keyed], 1, Rows().append, {"ENGINE_KEY": "abc123"})
        assert scraper.scrape_now("a")
        assert scraper.problem("a") is None
        seen = server.asked("/metrics")[0].headers
        assert (seen["authorization"], seen["x-team"]) == ("Bearer abc123", "blue")


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (as_json({"error": {"message": "Start it with `--metrics`"}}, 501), "llamacpp", "with --metrics"),
        (as_json({"detail": "Not Found"}, 404), "vllm", "is not there (HTTP 404: Not Found)"),
        (as_json({"error": "no"}, 401), "vllm", "refuses the key (HTTP 401"),
        (as_json({"error": {"message": "Loading model"}}, 503), "llamacpp", "not ready (HTTP 503: Loading"),
        (Answer(500, b"oh"), "vllm", "answers HTTP 500: oh"),
        (Answer(200, b"<html>hello</html>"), "openai", "none of the metrics of vLLM or llama.cpp"),
    ],
)
def test_what_is_absent_is_told_in_a_sentence(answer: Answer, kind: str, said: str) -> None:
    rows = Rows()
    with CannedServer({"/metrics": answer}) as server:
        scraper = Scraper([spec(server.url, kind=kind)], 0.05, rows.append)
        scraper.start()
        rows.until(lambda r: "error" in r)
        scraper.stop()
    assert len(rows) == 1
    assert rows[0].keys() == {"t_ns", "engine", "error"}
    assert said in rows[0]["error"]
    assert rows[0]["error"].startswith("engine a: ")


def test_a_key_that_is_not_set_is_a_row_and_no_crash() -> None:
    rows = Rows()
    scraper = Scraper([spec("http://127.0.0.1:9", api_key_env="NO_SUCH_KEY")], 0.05, rows.append, {})
    scraper.start()
    rows.until(lambda r: "NO_SUCH_KEY is not set" in r["error"])
    scraper.stop()


def test_an_engine_that_comes_goes_and_comes_again() -> None:
    state = {"up": False}
    page = counting()
    loading = as_json({"error": {"message": "Loading model", "code": 503}}, 503)
    rows = Rows()
    with CannedServer({"/metrics": lambda seen: page(seen) if state["up"] else loading}) as server:
        scraper = Scraper([spec(server.url)], 0.03, rows.append)
        scraper.start()
        rows.until(lambda r: "error" in r)
        for up in (True, False, True):
            sign = "generation_tokens_per_s" if up else "error"
            so_far = sum(sign in r for r in rows)
            state["up"] = up
            rows.until(lambda r: sign in r, so_far + 1)  # noqa: B023
        scraper.stop()
    kinds = ["error" if "error" in r else "rate" if "generation_tokens_per_s" in r else "first" for r in rows]
    changes = [k for k, before in zip(kinds, ["", *kinds], strict=False) if k != before]
    assert changes == ["error", "first", "rate", "error", "first", "rate"]
    assert kinds.count("error") == 2


def test_one_that_hangs_holds_up_no_other_and_no_stop() -> None:
    let_go = threading.Event()
    rows = Rows()

    def hang(_: Seen) -> Answer:
        let_go.wait(30)
        return Answer(200, b"vllm:num_requests_running 1\n")

    with CannedServer({"/metrics": hang}) as slow, CannedServer({"/metrics": counting()}) as quick:
        scraper = Scraper([spec(slow.url, "slow"), spec(quick.url, "quick")], 0.05, rows.append)
        scraper.start()
        rows.until(lambda r: r["engine"] == "quick", 5)
        scraper.stop()
        written = len(rows)
        let_go.set()
        for thread in scraper._threads:
            thread.join(20)
    assert all(r["engine"] == "quick" for r in rows)
    assert len(rows) == written


def test_an_unknown_engine() -> None:
    scraper = Scraper([], 1, Rows().append)
    assert scraper.scrape_now("nobody") is None
    assert scraper.problem("nobody") == "there is no engine nobody"


def test_the_child_needs_no_gevent() -> None:
    code = "import sys, loadgen.telemetry.engine_metrics; print({'locust', 'gevent'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
