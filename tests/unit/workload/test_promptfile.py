import hashlib
import json

import pytest

from loadgen.workload.promptfile import read_prompt_file, read_prompts
from loadgen.workload.prompts import PromptError


def write(tmp_path, text):
    path = tmp_path / "prompts.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_jsonl_of_prompts_and_conversations(tmp_path):
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "h\u2028i"}]
    lines = [{"prompt": "one", "output_tokens": 7}, {"messages": messages}]
    a, b = read_prompts(write(tmp_path, "\n\n".join(json.dumps(x, ensure_ascii=False) for x in lines)))
    assert (a.pair, a.text, a.output_tokens, a.messages) == (0, "one", 7, None)
    assert (b.pair, b.messages, b.output_tokens) == (1, tuple(messages), None)
    assert a.as_messages() == [{"role": "user", "content": "one"}]
    assert b.as_messages() == messages


def test_sharegpt_takes_each_conversation_up_to_its_first_human_turn(tmp_path):
    rows = [
        {"id": 1, "conversations": [{"from": "human", "value": "q1"}, {"from": "gpt", "value": "a1"}]},
        {"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q2"}]},
        {"conversations": []},
    ]
    a, b = read_prompts(write(tmp_path, json.dumps(rows)))
    assert a.as_messages() == [{"role": "user", "content": "q1"}]
    assert [m["role"] for m in b.as_messages()] == ["system", "user"]
    assert (a.pair, b.pair) == (0, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"prompt": "a"}\n\n{"prompt": }', "line 3: not valid JSON"),
        ('{"prompt": "a"}\n{"text": "b"}', 'line 2: neither a "prompt" text nor "messages"'),
        ('{"prompt": ""}', "line 1: neither"),
        ("5", "line 1: each line is an object"),
        ('{"prompt": "a", "output_tokens": 0}', "line 1: output_tokens is a whole number"),
        ('{"prompt": "a", "output_tokens": true}', "line 1: output_tokens is a whole number"),
        ('{"messages": []}', "line 1: messages is a list"),
        ('{"messages": [{"role": "user"}]}', "line 1: messages is a list"),
        ("", "holds no prompt"),
        ("[]", "holds no prompt"),
        ('[{"conversations":\n 5,]', "line 2: not valid JSON"),
        ('[{"x": 1}]', "entry 1: no list of conversations"),
        ('[{"conversations": [{"from": "alien", "value": "x"}]}]', "entry 1: a turn without"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path, text, says):
    with pytest.raises(PromptError) as e:
        read_prompts(write(tmp_path, text))
    assert says in str(e.value)
    assert "prompts.jsonl" in str(e.value)


def test_a_missing_file_is_one_clear_sentence(tmp_path):
    with pytest.raises(PromptError, match=r"nowhere\.jsonl cannot be read: No such file"):
        read_prompts(tmp_path / "nowhere.jsonl")


def test_the_sum_is_of_the_bytes(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt": "one"}\r\n')
    assert read_prompt_file(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
