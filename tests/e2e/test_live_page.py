"""The live page in a real browser: from Locust's form through a run to its report, and what comes between."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.sim.launch import SimProcess
from loadgen.webui.feed import KINDS
from loadgen.webui.history import History
from tests.e2e.conftest import engine_flags
from tests.e2e.test_locust_web import Web
from tests.support.chromium import DESKTOP, PHONE, Browser, Page
from tests.support.telemetry_child import environment

READY = "document.documentElement.dataset.ready === 'yes'"
STATE = "document.getElementById('state').textContent"
TRACES = "document.querySelectorAll('#charts figure:not([hidden]) .trace').length"
VIEWS = [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)]
FETCHED = (
    "performance.getEntriesByType('resource').some(r => r.name.includes('/stats/requests') && r.responseEnd)"
)
EVIL = "<img src=x onerror='window.owned=1'><b>bold</b>"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Locust's page for two simulated engines and two recorded GPUs, after a run that a person started."""
    runs = tmp_path_factory.mktemp("live") / "runs"
    # The recorded GPUs get hot in a turn, and stay so.
    (runs.parent / "loadgen.toml").write_text("cooldown_degrees = 100\n")
    flags = ("--turn-requests", "16", "--blocks", "1", "--output-tokens", "32", "--cooldown", "0")
    with SimProcess("vllm", speed=4) as a, SimProcess("llamacpp", speed=4) as b:
        engines = engine_flags(vllm=a, llamacpp=b)
        started = Web(runs, *engines, *flags, env={"PYTHONPATH": environment(gpus=2)["PYTHONPATH"]})
        yield started
        started.run.send(signal.SIGINT)
        started.run.wait()
        assert "Traceback" not in started.run.err


@pytest.fixture(scope="module")
def address(web: Web) -> str:
    return f"http://127.0.0.1:{web.port}"


def fill(page: Page, name: str, value: str) -> None:
    """As if typed: React listens to its own setter."""
    page.value(
        f"""(() => {{
            const field = document.querySelector('input[name="{name}"]');
            Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, '{value}');
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
        }})()"""
    )


def test_from_form_to_report(browser: Browser, web: Web, address: str, tmp_path: Path) -> None:
    with browser.page(f"{address}/llm") as live, browser.page(f"{address}/") as page:
        live.wait_for(READY)
        assert live.value(STATE) == "waiting"
        page.wait_for("!!document.querySelector('button[type=submit]')")
        # Locust's page asks for the state once at first; an answer after the click would undo it.
        page.wait_for(FETCHED)
        time.sleep(0.3)
        fill(page, "userCount", "4")
        fill(page, "slo", "ttft_p95<0.8s")
        page.value("document.querySelector('button[type=submit]').click()")
        live.call("Page.bringToFront")  # a page that nobody sees asks less often
        live.wait_for(f"{STATE} === 'running' && {TRACES} > 0")
        assert "TTFT < 800 ms" in live.value("document.getElementById('good').textContent")
        assert "block 1 of 1" in live.value("document.getElementById('stage').textContent")
        assert live.value("document.getElementById('report').hidden")

        page.call("Page.bringToFront")
        page.wait_for("[...document.querySelectorAll('[role=tab]')].some(t => t.textContent === 'LLM')")
        page.value("[...document.querySelectorAll('[role=tab]')].find(t => t.textContent === 'LLM').click()")
        page.wait_for("document.querySelector('table')?.innerText.includes('vllm (simulated)')")
        assert "TTFT p95" in page.value("document.querySelector('table').innerText")
        assert page.value("document.getElementById('loadgen-live').getAttribute('href')") == "./llm"

        live.call("Page.bringToFront")
        live.wait_for(f"{STATE} === 'complete'")
        live.wait_for("!document.getElementById('figures').innerText.includes('so far')")
        web.run.wait_for(lambda r: (r.dir / "summary.json").exists())
        (figures,) = json.loads((web.run.dir / "summary.json").read_text()).values()
        shown = live.value("[...document.querySelectorAll('#figures tbody tr')].map(r => r.innerText)")
        for line, name in zip(shown, ("vllm", "llamacpp"), strict=True):
            cells = line.split("\t")
            assert cells[0] == f"{name} (simulated)"
            assert cells[3] == "16"
            assert float(cells[4].split()[0]) == pytest.approx(figures[name]["ttft_ms"]["p50"], rel=0.01)
            throughput = figures[name]["window"]["throughput_tokens_per_s"]
            assert float(cells[8].replace(",", "")) == pytest.approx(throughput, rel=0.01)
        assert web.run.manifest["settings"]["users"] == 4

        link = live.value("document.getElementById('report').href")
        report = live.value(f"fetch({link!r}).then(r => r.text())")
        assert report.startswith("<!doctype html>")
        assert web.run.dir.resolve().name in report
        assert live.complaints() == page.complaints() == []
        assert all(url.startswith((address, "data:", "blob:")) for url in live.requested())


@pytest.mark.parametrize(("size", "dark"), VIEWS)
def test_it_fits(browser: Browser, web: Web, address: str, size: tuple[int, int], dark: bool) -> None:
    with browser.page(f"{address}/llm", size, dark=dark) as page:
        page.wait_for(f"{READY} && {TRACES} >= 14")
        assert page.value("document.documentElement.scrollWidth") == size[0]
        drawn = page.value("[...document.querySelectorAll('#charts figure:not([hidden])')].map(f => f.id)")
        assert drawn == [
            f"chart-{name}"
            for name in ("tokens", "ttft", "flight", "queue", "clock", "temperature", "power", "memory")
        ]
        # Turns lie behind every chart, in their engines' colours; and the warm-up.
        assert page.value("document.querySelectorAll('#chart-tokens .shapelayer path').length") >= 5
        assert page.complaints() == []


def test_a_ramp(browser: Browser, sim: Callable[..., SimProcess], tmp_path: Path) -> None:
    """Its levels are marked, and the users' curve climbs them; on each engine in turn."""
    flags = (*engine_flags(a=sim("vllm", speed=10)), "--turn-requests", "8", "--output-tokens", "8")
    web = Web(tmp_path / "runs", *flags, "--warmup-requests", "1", "--cooldown", "0", scenario="ramp")
    try:
        address = f"http://127.0.0.1:{web.port}"
        with browser.page(f"{address}/") as page:
            page.wait_for("!!document.querySelector('input[name=shape]')")
            page.wait_for(FETCHED)
            time.sleep(0.3)
            fill(page, "shape", "steps:1,3,2@3s")
            page.value("document.querySelector('button[type=submit]').click()")
            web.run.wait_for(lambda r: r.manifest)
        with browser.page(f"{address}/llm") as page:
            page.wait_for(f"{STATE} === 'complete'")
            page.wait_for("document.querySelectorAll('#chart-tokens .annotation-text').length === 3")
            users = page.value(
                "document.querySelector('#chart-flight .plot').data.find(d => d.name === 'a users').y"
            )
            assert {1, 2, 3} <= set(users)
            assert page.complaints() == []
            link = page.value("document.getElementById('report').href")
            assert "<!doctype html>" in page.value(f"fetch({link!r}).then(r => r.text())")
        web.run.send(signal.SIGINT)
        web.run.wait()
        assert "Traceback" not in web.run.err
    finally:
        web.run.stop()


def test_a_lost_connection_and_another_run(browser: Browser, web: Web, address: str) -> None:
    with browser.page(f"{address}/llm") as page:
        page.wait_for(READY)
        first = page.value("document.getElementById('title').textContent")
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.call("Network.emulateNetworkConditions", offline=True, **offline)
        page.wait_for("!document.getElementById('lost').hidden", 15)
        assert page.value("document.getElementById('title').textContent") == first
        web.swarm(user_count=2, turn_requests=200)
        page.call("Network.emulateNetworkConditions", offline=False, **offline)
        page.wait_for(f"document.getElementById('lost').hidden && {STATE} === 'running'", 20)
        assert page.value("document.getElementById('title').textContent") != first
        web.stop()
        page.wait_for(f"{STATE} === 'interrupted'", 30)
        page.wait_for("!document.getElementById('report').hidden")


def answer_with(page: Page, found: dict) -> None:
    """From now on the page gets this, whatever it asks."""
    page.value(
        f"void (window.fetch = async () => new Response({json.dumps(json.dumps(found))}, "
        "{headers: {'content-type': 'application/json'}}))"
    )


def test_after_an_hour_it_draws_at_once(browser: Browser, web: Web, address: str) -> None:
    history, now = History(KINDS), int(time.time())
    for s in range(3600):
        for n in range(4):
            t = now - 3600 + s
            history.put("engine", f"engine {n}", t, {f.name: 100.0 + s % 90 for f in KINDS["engine"]})
            history.put("gpu", f"GPU {n}", t, {f.name: 100.0 + s % 90 for f in KINDS["gpu"]})
    run = {"name": "long", "scenario": "s", "engines": [f"engine {n}" for n in range(4)], "good_means": ""}
    found = {"epoch": "e", "now": now, "rows": [], **history.since(0)}
    with browser.page(f"{address}/llm") as page:
        page.wait_for(READY)
        answer_with(page, {**found, "run": {**run, "state": "running", "start": now - 3600}})
        page.wait_for(f"document.getElementById('title').textContent === 'long' && {TRACES} >= 16")
        drawn_ms = page.value(
            "(() => { const t = performance.now(); document.querySelectorAll('#ranges button')[3].click(); "
            "return performance.now() - t })()"
        )
        assert drawn_ms < 3000  # a quarter of a second where nothing else runs
        line = page.value("document.querySelector('#chart-tokens .plot').data[0].y")
        assert len(line) in (900, 901)
        assert None not in line  # no gap where seconds become tens


def test_what_a_server_says_stays_text(browser: Browser, web: Web, address: str) -> None:
    """In names, notes, reasons and marks alike."""
    now = int(time.time())
    row = {"engine": EVIL, "scenario": EVIL, "class": EVIL, "simulated": False, "requests": 1, "failed": 0}
    numbers = dict.fromkeys(
        ("in_flight", "ttft_p50_ms", "ttft_p95_ms", "ttft_p99_ms", "tpot_p50_ms", "tokens_per_s", "goodput")
    )
    evil = {
        "epoch": "e",
        "cursor": 9,
        "reset": True,
        "now": now,
        "run": {
            "name": EVIL,
            "scenario": EVIL,
            "engines": [EVIL],
            "good_means": EVIL,
            "state": "running",
            "stage": EVIL,
            "notes": [EVIL],
            "start": now - 20,
        },
        "rows": [
            {**row, **numbers, "lag_p99_ms": None, "validity": "suspect", "reasons": [EVIL], "final": False}
        ],
        "tracks": [
            {
                "kind": "engine",
                "name": EVIL,
                "t": [now - 9, now - 5],
                "step": [1, 1],
                "figures": {"tokens_per_s": [1, 2]},
            }
        ],
        "marks": [{"id": 1, "kind": "moment", "t": now - 7, "open": False, "text": EVIL}],
    }
    with browser.page(f"{address}/llm") as page:
        page.wait_for(READY)
        answer_with(page, evil)
        page.wait_for("document.querySelectorAll('#notes li').length === 2")
        page.wait_for("document.querySelectorAll('#chart-tokens .annotation-text').length === 1")
        assert page.value("document.querySelector('#notes li').textContent") == EVIL
        assert EVIL[:20] in page.value("document.querySelector('#chart-tokens .annotation-text').textContent")
        assert page.value("document.querySelectorAll('img, main b').length") == 0
        page.value("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.owned=2'>`)")
        assert page.value("window.owned ?? null") is None
