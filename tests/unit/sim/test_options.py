from __future__ import annotations

import argparse

import pytest

from loadgen.cli import main
from loadgen.sim.options import add_options, to_options
from loadgen.sim.server import Options


def parse(*flags: str) -> list[Options]:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return to_options(parser.parse_args(flags))


def test_no_flags_is_both_engines_on_their_usual_ports() -> None:
    vllm, llama = parse()
    assert (vllm.kind, vllm.port, vllm.preset, vllm.host) == ("vllm", 8000, "vllm-v100", "127.0.0.1")
    assert (llama.kind, llama.port, llama.preset) == ("llamacpp", 8001, "llamacpp-v100")
    assert vllm.constants is not None
    assert llama.constants is not None
    assert (vllm.constants.slots, llama.constants.slots) == (256, 4)


def test_a_preset_for_each() -> None:
    assert [o.preset for o in parse("--preset", "llamacpp-fast")] == ["vllm-v100", "llamacpp-fast"]


def test_constants_override_the_preset() -> None:
    (o,) = parse("--kind", "vllm", "--step-s", "0.5", "--kv-tokens", "99", "--no-prefix-cache")
    assert o.constants is not None
    assert (o.constants.step_s, o.constants.kv_tokens, o.constants.prefix_cache) == (0.5, 99, False)


def test_np_divides_the_context_unless_that_is_given() -> None:
    def context(*flags: str) -> int:
        (o,) = parse("--kind", "llamacpp", *flags)
        assert o.constants is not None
        return o.constants.context

    assert context("--slots", "16") == 512
    assert context("--slots", "16", "--context", "8192") == 8192
    assert context() == 8192


@pytest.mark.parametrize(
    "flags",
    [
        ["--speed", "0"],
        ["--slots", "0"],
        ["--odd-share", "2"],
        ["--port", "1"],
        ["--port", "1", "--port", "2", "--port", "3"],
        ["--kind", "vllm", "--port", "1", "--port", "2"],
        ["--preset", "nope"],
        ["--kind", "vllm", "--preset", "llamacpp-fast"],
        ["--fault", "nope"],
        ["--fault", "stall:-1"],
        ["--speed", "nan"],
        ["--step-s", "inf"],
        ["--loading", "-1"],
        ["--step-s", "0"],
        ["--overhead-s", "-1"],
        ["--context", "0"],
    ],
)
def test_nonsense_is_one_sentence(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", *flags]) == 2
    out = capsys.readouterr()
    assert out.err.startswith("loadgen sim: ")
    assert len(out.err.splitlines()) == 1


def test_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--faults"]) == 0
    assert "stall:ARG" in capsys.readouterr().out


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        main(["sim", "--help"])
    assert e.value.code == 0
    text = capsys.readouterr().out
    for word in ("127.0.0.1:8000", "examples:", "--speed", "X-Loadgen-Simulated"):
        assert word in text
