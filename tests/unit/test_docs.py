"""Pages in the repository: links lead somewhere, and every `make` and `loadgen` command in them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.cli import COMMANDS
from loadgen.workload.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("docs/*.md")])
IDS = [str(p.relative_to(ROOT)) for p in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_and_pictures_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.M)) <= targets
    assert set(re.findall(r"(?:^    |`)loadgen ([a-z][a-z-]*)", text, re.M)) <= set(COMMANDS)
    workloads = set(re.findall(r"(?:^    |`)loadgen run ([a-z_]+)", text, re.M))
    assert workloads <= {*SCENARIOS, "reference"}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200
