"""docs/configuration.md says what the code says, and its examples are read by the product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from config_page import MEANINGS, PAGE, filled, tables

from loadgen.config import (
    EngineSpec,
    InfluxdbSpec,
    OpenLoopSpec,
    Settings,
    TelemetrySpec,
    Timeouts,
    load_settings,
)
from loadgen.users.options import OPTIONS

EXAMPLES = [t for t in re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S) if "[" in t]


def test_the_page_is_what_the_code_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run scripts/config_page.py"


def test_every_setting_and_every_flag_is_in_a_table() -> None:
    text = "".join(tables().values())
    models = (Settings, EngineSpec, OpenLoopSpec, Timeouts, TelemetrySpec, InfluxdbSpec)
    fields = {name for model in models for name in model.model_fields}
    tables_of_their_own = {"engines", "timeouts", "influxdb", "telemetry", "open_loop"}
    named = fields - tables_of_their_own - {"scenario", "prompt_lengths"}
    assert [f for f in named if f"| `{f}` |" not in text] == []
    assert [o.flag for o in OPTIONS if f"`{o.flag} " not in text] == []
    assert set(MEANINGS) <= fields


def test_defaults_are_stated() -> None:
    settings = tables()["settings"]
    assert "| `cooldown_s` | `--cooldown S` | `5.0` |" in settings
    assert "| 50 / 2,000 / 50 |" in settings  # prompt_tokens of the three workloads
    assert "| `gap_s` | `--gap-timeout S` | `60.0` |" in tables()["timeouts"]


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_valid(tmp_path: Path, text: str) -> None:
    file = tmp_path / "loadgen.toml"
    file.write_text(text)
    assert load_settings(env={}, config_file=file).engines[0].named


def test_the_exclusive_example_is_one() -> None:
    assert any('residency = "exclusive"' in text for text in EXAMPLES)
