"""The README's picture: it says that the engines are simulated, and fetches nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from readme_picture import IMAGES, WIDTHS, picture

from loadgen.report import summarise
from tests.unit.report.made import make_run


def words(svg: str) -> str:
    return " ".join("".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ").split())


@pytest.mark.parametrize("width", WIDTHS.values())
def test_a_summary_as_svg(tmp_path: Path, width: int) -> None:
    run = make_run(tmp_path, engines=[{"name": "e", "simulated": True}])
    svg = picture(summarise(run)[0], width)
    assert "loadgen summary · simulated engines" in words(svg)
    assert "TTFT" in words(svg)
    assert "font-face" not in svg
    # The only addresses are the namespace and the picture's own parts.
    assert set(re.findall(r"https?://[^\"')]+", svg)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", WIDTHS)
def test_the_picture_that_is_shown_is_of_simulated_engines(name: str) -> None:
    assert "simulated engines (vllm, llamacpp): this says nothing about real servers" in words(
        (IMAGES / name).read_text(encoding="utf-8")
    )
