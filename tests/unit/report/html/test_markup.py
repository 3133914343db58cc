"""What anybody says stays text, in elements, attributes, data and charts."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.report.html.markup import Html, data_block, join, plot_text, script_hash, tag, text
from loadgen.report.html.words import NEUTRAL, PALETTE, duration, factor, interval, scenario_title


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(st.text(), st.text())
def test_any_text_is_one_element_with_that_text(words: str, title: str) -> None:
    read = Reader(tag("p", words, title=title))
    assert [name for name, _ in read.tags] == ["p"]
    assert set(read.tags[0][1]) == {"title"}
    assert "".join(read.texts).split() == text_as_shown(words).split()


def text_as_shown(words: str) -> str:
    from loadgen.report.plain import clean

    return clean(words, 500)


def test_elements_within_elements() -> None:
    made = tag("ul", [tag("li", n) for n in (1, 2)], None, class_="list", hidden=True, id=None)
    assert made == '<ul class="list" hidden><li>1</li><li>2</li></ul>'
    assert join("a ", tag("br"), " b & c") == "a <br> b &amp; c"
    assert text(Html("<b>")) == "<b>"


@pytest.mark.parametrize("control", ["\x00", "\x1b[31m", "\u202e"])
def test_control_characters_are_shown_as_such(control: str) -> None:
    assert control[0] not in text(f"a{control}b")


@given(st.recursive(st.text() | st.integers(-(2**53), 2**53) | st.none(), lambda x: st.lists(x)))
def test_data_is_the_same_behind_its_element(value: object) -> None:
    block = data_block("x", value)
    raw = block.removeprefix('<script type="application/json" id="x">').removesuffix("</script>")
    assert "<" not in raw
    assert json.loads(raw) == value


def test_a_chart_gets_no_tags() -> None:
    assert plot_text('<a href="javascript:x">y</a>') == '&lt;a href="javascript:x"&gt;y&lt;/a&gt;'


def test_the_hash_of_a_script() -> None:
    # The example of the CSP specification's text about hashes: alert('Hello, world.');
    assert script_hash("alert('Hello, world.');") == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"


@pytest.mark.parametrize("colour", [*PALETTE, *NEUTRAL])
@pytest.mark.parametrize("background", ["#ffffff", "#171c23"])
def test_lines_are_seen_on_light_and_dark(colour: str, background: str) -> None:
    """WCAG 2.1, 1.4.11: graphics need a contrast of 3."""
    a, b = sorted((luminance(colour), luminance(background)))
    assert (b + 0.05) / (a + 0.05) >= 3


def luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words() -> None:
    assert [factor(v) for v in (None, 0.5123, 1.8149, 12.34, 123.4)] == ["–", "0.512", "1.81", "12.3", "123"]
    assert interval(0.45, 1.561) == "0.450 to 1.56"
    assert interval(None, None) == "no interval"
    assert [duration(s) for s in (0.4, 59.6, 61, 3600, 93784)] == [
        "0.4 s",
        "60 s",
        "1 min 1 s",
        "1 h 0 min",
        "26 h 3 min",
    ]
    assert scenario_title("concurrency", {"users": 16}) == "16 users at once"
    assert scenario_title("concurrency", {"users": 64}) == "concurrency, 64 users"
    assert scenario_title("concurrency_64", {"users": 64}) == "concurrency, 64 users"
    assert scenario_title("my_own", {}) == "my own"
