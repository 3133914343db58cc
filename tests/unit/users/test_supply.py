"""Prompts of several kinds, as a run gets them."""

from collections import Counter
from itertools import islice

import pytest

from loadgen.config import Settings
from loadgen.users.supply import PromptSupply
from loadgen.workload.prompts import PromptError
from tests.unit.users.fakes import FakeEngine, lane


def made(**values):
    supply = PromptSupply(Settings(**{"turn_requests": 8, "blocks": 2, **values}), "salt")
    supply.choose([lane()])
    supply.make_blocks()
    return supply


def test_a_mix_has_the_lengths_and_answers_of_its_classes():
    supply = made(mix="interactive=3:100/10,long=1:600/20")
    for block in (0, 1):
        prompts = supply.block(block)
        assert Counter((p.traffic_class, p.tokens, p.output_tokens) for p in prompts) == {
            ("interactive", 100, 10): 6,
            ("long", 600, 20): 2,
        }
    assert [p.pair for b in (0, 1) for p in supply.block(b)] == list(range(16))
    assert {p.traffic_class for p in islice(supply.warmups(), 8)} == {"interactive", "long"}


def test_several_lengths_come_in_order():
    prompts = made(users=1, prompt_tokens="400,100", turn_requests=2).block(1)
    assert [(p.tokens, p.traffic_class) for p in prompts] == [
        (100, "prompt-100"),
        (100, "prompt-100"),
        (400, "prompt-400"),
        (400, "prompt-400"),
    ]


def test_conversations_share_their_system_prompt_and_nothing_else():
    supply = made(exchanges=4, system_tokens=200, prompt_tokens=60, turn_requests=8)
    talks = [*supply.block(0), *supply.block(1)]
    assert [p.pair for p in talks] == [0, 4, 8, 12]
    systems = {p.messages[0]["content"] for p in [*talks, next(supply.warmups())]}
    assert len(systems) == 1
    assert 150 < len(systems.pop()) / 4 < 220
    questions = [t for p in talks for t in (p.messages[1]["content"], *p.follow_ups)]
    assert len({q[:9] for q in questions}) == len(questions) == 16
    assert {len(p.follow_ups) for p in talks} == {3}
    assert next(supply.warmups()).follow_ups == ()


def test_conversations_without_a_system_prompt_begin_with_the_question():
    assert [m["role"] for m in made(exchanges=2).block(0)[0].messages] == ["user"]


def test_plain_prompts_have_no_class():
    prompts = made(prompt_tokens=80).block(0)
    assert {(p.tokens, p.traffic_class, p.output_tokens) for p in prompts} == {(80, None, None)}


def test_an_engine_without_tokenizer_says_that_lengths_are_rough():
    supply = PromptSupply(Settings(mix="long=1:600/20"), "salt")
    supply.choose([lane(tokens=False)])
    assert "about as long as asked" in supply.caveat
    assert FakeEngine().counting == "tokenizer"


def test_a_shape_has_a_pool_of_exact_prompts_that_come_again_with_new_salts():
    supply = made(shape="steps", blocks=3, prompt_tokens=60)
    assert len(supply.block(0)) == 8
    first = list(islice(supply.endless(0), 20))
    assert first == list(islice(supply.endless(0), 20))
    texts = {p.text for p in [*first, *islice(supply.endless(1), 20), *supply.block(0)]}
    assert len({t.partition(" ")[0] for t in texts}) == 48
    assert {lane().count(p) for p in first} == {60}  # salts are as long as each other
    assert not {p.pair for p in first} & {p.pair for p in islice(supply.endless(1), 20)}
    assert "used again and again" in supply.caveat


def test_a_shape_without_salt_sends_a_file_as_it_is(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    supply = made(shape="steps", prompt_file=file, salt="off", turn_requests=2)
    assert [p.text for p in islice(supply.endless(0), 3)] == ["one", "two", "one"]


def trace(tmp_path, *lengths):
    path = tmp_path / "trace.jsonl"
    rows = [
        f'{{"timestamp": {n * 100}, "input_length": {length}, "output_length": 10}}'
        for n, length in enumerate(lengths)
    ]
    path.write_text("\n".join(rows))
    return {"trace": path}


def test_prompts_of_a_trace_that_are_shorter_than_the_template_are_sent_as_short_as_can_be(tmp_path):
    supply = made(open_loop=trace(tmp_path, 1, 200, 2), turn_requests=3, blocks=1)
    assert [p.tokens for p in supply.block(0)][1] == 200
    assert supply.facts["trace_lengthened"] == 2
    assert supply.caveat.startswith("2 of 3 prompts of the trace are shorter")


def test_a_trace_that_does_not_fit_the_context_is_refused_before_a_prompt_is_made(tmp_path):
    supply = PromptSupply(Settings(open_loop=trace(tmp_path, 5_000_000)), "salt")
    one = lane()
    one.info = one.engine.identify()
    with pytest.raises(PromptError, match="5000000 prompt and 10 output tokens"):
        supply.check_trace(one)
