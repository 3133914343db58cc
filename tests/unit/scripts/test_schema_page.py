"""docs/schema.md says what the code says."""

from __future__ import annotations

from schema_page import PAGE, filled

from loadgen.sinks.schema import MEASUREMENTS


def test_the_page_is_what_the_code_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run scripts/schema_page.py"
    assert all(f"\n## {m.name}\n" in page for m in MEASUREMENTS)


def test_numbers_are_floats_but_for_points_in_time() -> None:
    fields = [f for m in MEASUREMENTS for f in m.fields]
    assert {f.name for f in fields if f.kind == "integer"} == {
        f.name for f in fields if f.name.endswith("_ns")
    }
    assert all(f.unit == "ms" for f in fields if f.name.endswith("_ms"))


def test_no_name_is_a_tag_and_a_field_of_one_measurement() -> None:
    for m in MEASUREMENTS:
        names = [part.name for part in (*m.tags, *m.fields)]
        assert len(names) == len(set(names)), m.name
