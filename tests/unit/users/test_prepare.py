import logging

import pytest

from loadgen.config import ConfigError, EngineSpec, Settings
from loadgen.engines import EngineError
from loadgen.users.prepare import prepare
from loadgen.users.supply import PromptSupply
from loadgen.workload.prompts import PromptError
from tests.unit.users.fakes import FakeEngine, lane


def settings(*names, named=True, **more):
    engines = tuple(EngineSpec(name=n, kind="vllm", url="http://127.0.0.1:9", named=named) for n in names)
    return Settings(engines=engines, turn_requests=3, blocks=2, **more)


def maker(**dead):
    return lambda spec, _: FakeEngine(spec.name, dead=dead.get(spec.name, ""))


def test_a_named_engine_that_is_not_there_ends_it():
    with pytest.raises(EngineError, match="engine b: gone"):
        prepare(settings("a", "b"), maker(b="gone"))


def test_a_default_engine_that_is_not_there_is_left_out_with_a_line(caplog):
    with caplog.at_level(logging.INFO, "loadgen"):
        kept, lanes, _ = prepare(settings("a", "b", named=False), maker(b="gone"))
    assert [x.name for x in lanes] == [e.name for e in kept.engines] == ["a"]
    assert "engine b: gone; nobody named this default endpoint, so it is left out" in caplog.text


def test_nobody_there_tells_how_to_point_at_a_server():
    with pytest.raises(ConfigError) as e:
        prepare(settings("a", "b", named=False), maker(a="gone", b="gone"))
    assert "--engine NAME=KIND:URL" in str(e.value)
    assert "loadgen sim" in str(e.value)


def test_a_key_that_is_not_set_is_said_first(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    spec = EngineSpec(name="a", kind="vllm", url="http://h", api_key_env="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match="NO_SUCH_KEY is not set"):
        prepare(Settings(engines=(spec,)), maker())


def test_a_prompt_that_cannot_be_is_said_before_any_load():
    with pytest.raises(PromptError, match="ask for 22 or more"):
        prepare(settings("a", prompt_tokens=21), maker())


def made(s, *lanes):
    supply = PromptSupply(s, "salt")
    supply.choose(lanes)
    supply.make_blocks()
    return supply


def test_every_block_has_its_own_prompts_of_the_exact_length():
    supply = made(settings("a", prompt_tokens=200), lane())
    prompts = supply.block(0) + supply.block(1)
    assert [p.pair for p in prompts] == list(range(6))
    assert {20 + len(p.text) // 4 for p in prompts} == {200}
    assert len({p.text[:9] for p in prompts}) == 6
    assert supply.facts["exact"] is True
    assert supply.facts["counted_by"] == "a"


def test_the_first_engine_that_can_count_does():
    supply = made(settings("a", "b", prompt_tokens=200), lane("a", tokens=False), lane("b"))
    assert supply.facts["counted_by"] == "b"
    supply.look_at(other := lane("c"))
    assert supply.facts["first_prompt_tokens"] == {"c": 200}
    assert other.cache.limit == 20 + 9 // 4


def test_without_a_tokenizer_it_is_recorded_that_lengths_are_approximate():
    supply = made(settings("a", prompt_tokens=200), lane(tokens=False))
    assert supply.facts["exact"] is False
    assert supply.facts["counted_by"] is None


def test_warm_up_prompts_are_like_no_other():
    supply = made(settings("a", prompt_tokens=200), lane())
    warm = [p for p, _ in zip(supply.warmups(), range(20), strict=False)]
    texts = {p.text[:9] for p in warm} | {p.text[:9] for b in (0, 1) for p in supply.block(b)}
    assert len(texts) == 26
    assert {p.pair for p in warm} == {-1}


def test_a_prompt_file_goes_round_and_is_salted_anew_each_time(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "one"}\n{"messages": [{"role": "user", "content": "two"}]}\n')
    supply = made(settings("a", prompt_file=file), lane())
    texts = [p.text for b in (0, 1) for p in supply.block(b)]
    assert [t.split(": ")[1] for t in texts] == ["one", "two", "one", "two", "one", "two"]
    assert len(set(texts)) == 6
    assert supply.block(0)[1].as_messages()[0]["content"].endswith(": two")
    plain = made(settings("a", prompt_file=file, salt="off"), lane())
    assert plain.block(0)[0].text == "one"


def test_a_prompt_of_a_file_that_does_not_fit_is_said_before_any_load(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "short"}\n{"prompt": "%s"}\n' % ("x" * 4 * 4000))  # 20 + 4000 tokens
    assert prepare(settings("a", prompt_file=file, output_tokens=76), maker())
    with pytest.raises(PromptError) as e:
        prepare(settings("a", prompt_file=file, output_tokens=77), maker())
    assert f"engine a: prompt 2 of {file} has 4020 tokens, which with 77 of output" in str(e.value)
