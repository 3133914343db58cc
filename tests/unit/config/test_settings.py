"""Settings refuse what makes no sense, in one sentence that says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.config import ConfigError, load_settings

ENGINE = '[engines.a]\nkind = "vllm"\nurl = "http://127.0.0.1:8000"\n'


def refused(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "loadgen.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as e:
        load_settings(env={}, config_file=file)
    sentence = str(e.value)
    assert "\n" not in sentence
    return sentence.removeprefix(f"{file}").removeprefix(": ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cooldown_s = inf", "cooldown_s: Input should be a finite number"),
        ("temperature = nan", "temperature: Input should be a finite number"),
        ("cooldown_s = 1e9", "cooldown_s: Input should be less than or equal to 1000000"),
        ("[timeouts]\ngap_s = inf", "timeouts.gap_s: Input should be a finite number"),
        ("users = true", "users: a number is wanted here, not true or false"),
        ("users = 99999999999999999999", "users: Input should be less than or equal to 1000000"),
        ("prompt_tokens = 99999999999", "prompt_tokens: Input should be less than or equal to 10000000"),
        ("seed = -1", "seed: Input should be greater than or equal to 0"),
        ("seed = 4294967295", "seed: Input should be less than 4294967295"),
        ('scenario = "x"', "scenario is not a setting, it comes from the workload that is run"),
        (
            "[timeouts]\nconect_s = 3",
            "timeouts.conect_s: there is no such setting (known: connect_s, first_token_s, gap_s, total_s)",
        ),
        (
            ENGINE + 'residency = "exclusive"',
            " [engines.a]: residency: this belongs at the top of the file, before the first [table]",
        ),
        (
            "[timeouts]\nusers = 3",
            "timeouts.users: this belongs at the top of the file, before the first [table]",
        ),
        (ENGINE + 'name = "b"', " [engines.a]: name is not a setting, the table has the name"),
        (ENGINE + 'model = ""', " [engines.a]: model: String should have at least 1 character"),
        (ENGINE + 'api_key_env = ""', " [engines.a]: api_key_env: String should have at least 1 character"),
        (
            ENGINE + 'headers = {"X Y" = "1"}',
            " [engines.a]: headers: 'X Y' is not the name of an HTTP header",
        ),
        (
            ENGINE + "extra_body = {stream = false}",
            " [engines.a]: extra_body: stream is loadgen's own to set: what is measured is a stream",
        ),
        (
            '[engines."é"]\nkind = "vllm"\nurl = "http://127.0.0.1:8000"',
            " [engines.é]: name: an engine cannot be called 'é': take up to 64 letters, digits and . _ + -, "
            "the first one a letter or digit (no accents)",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    assert refused(tmp_path, text) == sentence


def test_an_unknown_setting_is_told_the_known_ones_without_those_that_are_refused(tmp_path: Path) -> None:
    sentence = refused(tmp_path, "userz = 3")
    assert sentence.startswith("userz: there is no such setting (known: api, arrival, blocks, ")
    assert "scenario" not in sentence


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "loadgen.toml"
    file.write_bytes(b"\xef\xbb\xbfusers = 3\n")
    assert load_settings(env={}, config_file=file).users == 3


@pytest.mark.parametrize("target", ["nowhere", "loadgen.toml"])
def test_a_link_to_nowhere_is_not_taken_for_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (tmp_path / "loadgen.toml").symlink_to(target)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^loadgen\.toml (does not exist|cannot be read)"):
        load_settings(env={})
