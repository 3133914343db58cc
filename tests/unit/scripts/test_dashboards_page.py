"""docs/dashboards.md says what the dashboards say."""

from __future__ import annotations

from dashboards_page import PAGE, filled


def test_the_page_is_what_the_dashboards_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run scripts/dashboards_page.py"
    assert page.count("\n| May it be believed? |") == 1
