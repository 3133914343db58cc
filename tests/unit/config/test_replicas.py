"""One engine at several addresses."""

import argparse

import pytest

from loadgen.cli import engines
from loadgen.config import ConfigError, EngineSpec, Settings, load_settings, parse_engine_flag
from loadgen.users.options import add_options, effective_defaults, settings_from
from loadgen.workload.scenarios import CONCURRENCY


def parsed(*flags):
    parser = argparse.ArgumentParser()
    defaults = effective_defaults(CONCURRENCY, None)
    add_options(parser, defaults)
    return settings_from(parser.parse_args(flags), CONCURRENCY, defaults, None)


def test_a_flag_names_several_addresses():
    spec = parse_engine_flag("fp8=vllm:http://a:1, https://b:2/v1,http://c")
    assert (spec.name, spec.urls) == ("fp8", ("http://a:1", "https://b:2", "http://c"))
    assert [spec.at(k).url for k in range(3)] == list(spec.urls)
    assert spec.at(1).replicas == ()


@pytest.mark.parametrize(
    "flags",
    [
        ("--engine", "a=vllm:http://x:1,http://y:2,b=llamacpp:http://z:3"),  # as a web form has it
        ("--engine", "a=vllm:http://x:1,http://y:2", "--engine", "b=llamacpp:http://z:3"),
    ],
)
def test_flags_and_the_web_form(flags):
    engines = parsed(*flags).engines
    assert [(e.name, e.urls) for e in engines] == [
        ("a", ("http://x:1", "http://y:2")),
        ("b", ("http://z:3",)),
    ]


def test_loadgen_engines_asks_every_address(capsys):
    args = argparse.Namespace(engine=["a=vllm:http://127.0.0.1:9,http://127.0.0.1:10"], config=None)
    assert engines.execute(args) == 1
    said = capsys.readouterr()
    assert "http://127.0.0.1:9 " in said.out
    assert "http://127.0.0.1:10 " in said.out


def test_the_file_has_a_list_and_a_flag_replaces_it(tmp_path):
    file = tmp_path / "f.toml"
    file.write_text(
        '[engines.a]\nkind = "vllm"\nurl = "http://x:1"\nreplicas = ["http://y:2"]\nmodel = "m"\n'
    )
    (engine,) = load_settings(config_file=file, env={}).engines
    assert engine.urls == ("http://x:1", "http://y:2")
    (engine,) = load_settings({"engines": ["a=vllm:http://z:3"]}, config_file=file, env={}).engines
    assert (engine.urls, engine.model) == (("http://z:3",), "m")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=vllm:http://x:1,http://x:1/v1", "has the same address twice"),
        ("a=vllm:http://x:1,y:2", "'y:2' is not an address"),
        ("a=vllm:" + ",".join(f"http://x:{n}" for n in range(1, 67)), "more than 64 addresses"),
    ],
)
def test_mistakes(text, said):
    with pytest.raises(ConfigError, match=said):
        parse_engine_flag(text)


def test_exclusive_residency_is_for_one_server():
    spec = EngineSpec(name="a", kind="vllm", url="http://x", replicas=("http://y",), start="s")
    with pytest.raises(ValueError, match="starts one server at a time, and a has 2"):
        Settings(engines=(spec,), residency="exclusive")
