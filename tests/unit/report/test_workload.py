import pytest

from loadgen.report.workload import lengths

BASE = {"prompt_tokens": 50, "output_tokens": 8}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "50 prompt and 8 output tokens"),
        ({"mix": None, "prompt_lengths": [], "exchanges": 1}, "50 prompt and 8 output tokens"),
        ({"mix": "a=1:2/3"}, "mix a=1:2/3"),
        ({"prompt_lengths": [100, 2000]}, "each of 100, 2000 prompt and 8 output tokens"),
        (
            {"exchanges": 4, "system_tokens": 500},
            "conversations of 4 exchanges, 500 system, 50 question and 8 output tokens",
        ),
        ({"prompt_file": "/x/p.jsonl", "salt": "off"}, "prompts of p.jsonl without salt, 8 output tokens"),
        ({"prompt_lengths": "x", "exchanges": "y"}, "50 prompt and 8 output tokens"),
    ],
)
def test_in_a_few_words(more, said):
    assert lengths({**BASE, **more}) == said
