"""The report in a real browser: drawn, readable, of the screen's width, and without a stranger's script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.report.html import write_html
from loadgen.slo.objectives import parse_slo
from loadgen.store import Suite
from tests.support.chromium import DESKTOP, PHONE, Browser, Page
from tests.support.madeups import FAST, SLOW, Made, made_run
from tests.unit.report.html.test_markup import luminance

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
READY = "document.documentElement.dataset.ready === 'yes'"
VIEWS = [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)]


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with GPUs and failures, whose server and settings say what they should not."""
    folder = tmp_path_factory.mktemp("evil")
    bad = Made(
        f"vllm {EVIL}", 180, 23.8, failing=11, error_text=EVIL, error=EVIL, model=EVIL, facts={EVIL: EVIL}
    )
    slo = parse_slo(["ttft_p95<130ms", "chunk_gap_p99.9<=2000ms", "goodput>0.9", "failures<1%"])
    write_html([made_run(folder, (bad, SLOW), blocks=6, gpus=2)], folder / "report.html", slo=slo)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep: six runs, folded."""
    folder = tmp_path_factory.mktemp("steps")
    suite = Suite.create(folder)
    for users in (1, 2, 4, 8, 16, 32):
        made_run(folder, (FAST, SLOW), users=users, requests=2 * users, blocks=2, gpus=0, suite=suite)
    write_html([suite], folder / "report.html")
    return (folder / "report.html").as_uri()


def colour(page: Page, selector: str, what: str = "color") -> str:
    found: str = page.value(f"getComputedStyle(document.querySelector({selector!r})).{what.replace('-', '')}")
    red, green, blue = re.findall(r"\d+", found)[:3]
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}"


@pytest.mark.parametrize(("size", "dark"), VIEWS)
def test_it_is_drawn(browser: Browser, evil: str, size: tuple[int, int], dark: bool) -> None:
    with browser.page(evil, size, dark=dark) as page:
        page.wait_for(READY)
        assert page.complaints() == []
        assert page.requested() == [evil]
        assert page.value("document.documentElement.scrollWidth") == size[0]
        # Five charts: a line an engine; in time three of each engine, and four of each GPU.
        traces = "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.trace').length)"
        assert page.value(traces) == [2, 2, 2, 2, 14]
        assert page.value(
            "[...document.querySelectorAll('.main-svg')].every(s => s.clientWidth <= innerWidth)"
        )
        assert page.value("document.querySelectorAll('.plot .main-svg').length") > 0


@pytest.mark.parametrize(("size", "dark"), VIEWS)
def test_text_is_legible(browser: Browser, evil: str, size: tuple[int, int], dark: bool) -> None:
    """WCAG 2.1, 1.4.3: a contrast of 4.5, on the page and on cards."""
    with browser.page(evil, size, dark=dark) as page:
        page.wait_for(READY)
        paper = colour(page, "body", "backgroundColor")
        card = colour(page, ".card", "backgroundColor")
        assert (luminance(paper) < 0.1) == dark
        inks = [colour(page, s) for s in ("body", "small", ".badge", ".about")] + [
            colour(page, ".plot text", "fill")
        ]
        for ink in inks:
            for ground in (paper, card):
                light, shade = max(luminance(ink), luminance(ground)), min(luminance(ink), luminance(ground))
                assert (light + 0.05) / (shade + 0.05) >= 4.5, (ink, ground)


def test_the_first_screen_has_answer_picture_and_validity(browser: Browser, tmp_path: Path) -> None:
    write_html([made_run(tmp_path, gpus=0)], tmp_path / "report.html")
    with browser.page((tmp_path / "report.html").as_uri()) as page:
        for selector in (".verdict h2", ".forest", ".validity .badge"):
            assert (
                page.value(f"document.querySelector({selector!r}).getBoundingClientRect().bottom")
                <= DESKTOP[1]
            )


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_objectives_keep_whole_words(browser: Browser, evil: str, size: tuple[int, int]) -> None:
    with browser.page(evil, size) as page:
        assert page.value("document.querySelectorAll('.asked tbody th').length") == 4
        heights = "[...document.querySelectorAll('.asked tbody th')].map(h => { const r = "
        heights += "document.createRange(); r.selectNodeContents(h); return r.getClientRects().length })"
        assert page.value(heights) == [1, 1, 1, 1]
        assert page.value("document.querySelectorAll('.verdict .objectives li').length") == 1


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_strangers_script_is_text(browser: Browser, evil: str, size: tuple[int, int]) -> None:
    with browser.page(evil, size) as page:
        page.wait_for(READY)
        assert page.value("document.querySelector('.samples pre').textContent") == EVIL
        assert page.value("document.querySelectorAll('img, .plot a').length") == 0
        assert "owned" not in page.value("document.title").replace(EVIL, "")
        # Even markup that got in would not run: the page's policy names its own scripts only.
        page.value("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.owned = 1'>`)")
        page.value("window.script = document.createElement('script'); script.text = 'window.owned = 2'")
        page.value("document.body.append(window.script)")
        assert page.value("window.owned ?? null") is None
        assert any("Content Security Policy" in c for c in page.complaints())


def test_a_folded_run_is_drawn_when_it_is_opened(browser: Browser, steps: str) -> None:
    drawn = "document.querySelectorAll('.plot[data-drawn]').length"
    with browser.page(steps, PHONE) as page:
        page.wait_for(READY)
        assert page.value(drawn) == 3  # the curves of the sweep
        page.value("document.querySelector('.folded details').open = true")
        page.wait_for(f"{drawn} === 8")
        page.wait_for("document.querySelectorAll('.folded .main-svg').length > 0")
        assert page.value("document.documentElement.scrollWidth") == PHONE[0]
        assert page.complaints() == []


def test_on_paper(browser: Browser, evil: str, tmp_path: Path) -> None:
    with browser.page(evil, dark=True) as page:
        page.wait_for(READY)
        page.pdf(tmp_path / "report.pdf")
        pdf = (tmp_path / "report.pdf").read_bytes()
        assert pdf.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 3
        page.call("Emulation.setEmulatedMedia", media="print")
        assert colour(page, "body", "backgroundColor") == "#ffffff"
        assert page.complaints() == []


def test_without_javascript_the_answer_is_there(browser: Browser, evil: str) -> None:
    with browser.page(evil, javascript=False) as page:
        words = page.value("document.body.innerText")
        assert "has the lower TTFT" in words
        assert "The curves need JavaScript" in words
