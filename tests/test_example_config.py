"""loadgen.toml.example is read by the product itself, as it stands and with every setting turned on."""

from __future__ import annotations

import re
from pathlib import Path

from loadgen.config import Settings, load_settings

EXAMPLE = Path(__file__).resolve().parent.parent / "loadgen.toml.example"


def test_the_example_as_it_stands_names_the_two_default_endpoints() -> None:
    settings = load_settings(env={}, config_file=EXAMPLE)
    assert [(e.name, e.kind, e.url) for e in settings.engines] == [
        ("vllm", "vllm", "http://127.0.0.1:8000"),
        ("llamacpp", "llamacpp", "http://127.0.0.1:8001"),
    ]


def test_every_commented_setting_exists_and_shows_its_default(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    everything = tmp_path / "loadgen.toml"
    everything.write_text(re.sub(r"^# (?=\[(?:timeouts|open_loop)\]|[a-z_]+ = )", "", text, flags=re.M))
    shown = load_settings(env={}, config_file=everything).model_dump(exclude={"engines", "prompt_file"})
    assert shown == Settings().model_dump(exclude={"engines", "prompt_file"})
