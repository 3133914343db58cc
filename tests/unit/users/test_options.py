import argparse
from pathlib import Path

import pytest

from loadgen.config import ConfigError, Settings
from loadgen.users.options import (
    OPTIONS,
    add_options,
    config_path,
    effective_defaults,
    settings_from,
)
from loadgen.workload.scenarios import CONCURRENCY, SINGLE_USER


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("VLLM_URL", "LLAMACPP_URL"):
        monkeypatch.delenv(name, raising=False)


def parse(*flags, scenario=CONCURRENCY, **form):
    path = config_path(list(flags), {})
    defaults = effective_defaults(scenario, path)
    parser = argparse.ArgumentParser()
    parser.add_argument("-u", dest="num_users", type=int, default=defaults.users)
    add_options(parser, defaults)
    options = parser.parse_args(flags)
    vars(options).update(form)
    return settings_from(options, scenario, defaults, path)


def test_without_flags_the_workloads_own_defaults_and_the_default_engines():
    s = parse(scenario=SINGLE_USER)
    assert (s.scenario, s.users, s.turn_requests, s.prompt_tokens) == ("single_user", 1, 8, 50)
    assert [(e.name, e.url, e.named) for e in s.engines] == [
        ("vllm", "http://127.0.0.1:8000", False),
        ("llamacpp", "http://127.0.0.1:8001", False),
    ]


def test_naming_an_engine_as_the_default_has_it_is_naming_it(tmp_path):
    """The first of two flags was taken for the default and dropped: only the second engine was measured."""
    both = (
        "--engine",
        "vllm=vllm:http://127.0.0.1:8000",
        "--engine",
        "llamacpp=llamacpp:http://127.0.0.1:8001",
    )
    assert [(e.name, e.named) for e in parse(*both).engines] == [("vllm", True), ("llamacpp", True)]
    (tmp_path / "loadgen.toml").write_text(
        '[engines.fp8]\nkind = "vllm"\nurl = "http://h:1"\nlog = "fp8.log"\n'
    )
    engines = parse("--engine", "fp8=vllm:http://h:1", "--engine", "q4=llamacpp:http://h:2").engines
    assert [(e.name, e.log) for e in engines] == [("fp8", "fp8.log"), ("q4", None)]


def test_flags_win_over_the_file_and_the_file_over_the_workload(tmp_path):
    (tmp_path / "loadgen.toml").write_text(
        "turn_requests = 5\nblocks = 3\nusers = 7\n[timeouts]\ngap_s = 2\n"
    )
    s = parse("--blocks", "9", "--gap-timeout", "4")
    assert (s.turn_requests, s.blocks, s.users) == (5, 9, 7)
    assert (s.timeouts.gap_s, s.timeouts.connect_s) == (4, 10)
    assert parse("-u", "3").users == 3


def test_engines_by_repeated_flags_or_with_commas_as_in_the_web_form():
    twice = parse("--engine", "a=vllm:http://h:1", "--engine", "b=llamacpp:http://h:2")
    form = parse(engine="a=vllm:http://h:1, b=llamacpp:http://h:2")
    for s in (twice, form):
        assert [(e.name, e.kind, e.named) for e in s.engines] == [
            ("a", "vllm", True),
            ("b", "llamacpp", True),
        ]


def test_an_engine_of_the_file_keeps_its_key_when_the_form_sends_it_back(tmp_path):
    (tmp_path / "loadgen.toml").write_text(
        '[engines.fp8]\nkind = "vllm"\nurl = "http://gpu:1"\napi_key_env = "SECRET"\nmodel = "m"\n'
    )
    assert parse().engines[0].model == "m"
    assert parse("--engine", "fp8=vllm:http://other:2").engines[0].api_key_env == "SECRET"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"turn_requests": 0}, "--turn-requests: Input should be greater than or equal to 1"),
        ({"arrival": "flood"}, "--arrival: Input should be 'burst', 'staggered', 'poisson'"),
        ({"gap_timeout": 0.0}, "--gap-timeout: "),
        ({"cooldown": -1.0}, "--cooldown: "),
        ({"num_users": 0}, "-u: "),
        ({"engine": "a:b"}, "is not NAME=KIND:URL"),
    ],
)
def test_values_of_the_web_form_are_checked_again(form, says):
    with pytest.raises(ConfigError) as e:
        parse(**form)
    assert says in str(e.value)


def test_empty_fields_of_the_web_form_mean_the_default():
    s = parse(engine="", prompt_file="", runs_dir="")
    assert s.prompt_file is None
    assert s.runs_dir == Path("runs")
    assert len(s.engines) == 2


def test_the_settings_file_by_flag_or_environment():
    assert config_path(["-f", "x.py", "--loadgen-config", "a.toml"], {}) == Path("a.toml")
    assert config_path(["--loadgen-config=a.toml"], {"LOADGEN_CONFIG": "b.toml"}) == Path("a.toml")
    assert config_path([], {"LOADGEN_CONFIG": "b.toml"}) == Path("b.toml")
    assert config_path(["--config", "locust.conf"], {}) is None


def test_the_number_of_users_of_the_web_form_counts_wherever_locust_puts_it():
    """Locust 2.47 replaces -u's own number, 2.46 adds another."""
    assert parse(num_users=3).users == 3
    assert parse(num_users=16, users=3).users == 3


@pytest.mark.parametrize(
    "slo", ["ttft_p95<500ms, tpot_p95<50ms", "interactive", "ttft<500ms", "throughput>3"]
)
def test_an_slo(tmp_path, slo):
    assert parse("--slo", slo).slo == slo
    assert parse(slo=[slo, "failures<1%"]).slo == f"{slo},failures<1%"  # as `loadgen sweep` has it
    assert parse().slo is None


def test_an_slo_that_is_none_is_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match="there is no figure 'latency'"):
        parse("--slo", "latency<3")
    (tmp_path / "loadgen.toml").write_text('slo = "fast"\n')
    with pytest.raises(ConfigError, match="'fast' is no objective"):
        parse()


def test_what_the_web_form_makes_of_a_text_is_a_text():
    """Locust gives what a person writes there the type of the default."""
    parser = argparse.ArgumentParser()
    add_options(parser, Settings(users=1))
    options = parser.parse_args([])
    texts = [o for o in OPTIONS if o.type is str]
    assert {o.flag for o in texts} >= {"--prompt-tokens", "--mix", "--shape"}
    assert {type(getattr(options, o.dest)) for o in texts} == {str}
