"""Settings of mixes, several lengths and conversations."""

import pytest
from pydantic import ValidationError

from loadgen.config import ConfigError, Settings, load_settings


def test_lengths_are_sorted_and_the_longest_is_the_length():
    s = Settings(users=1, prompt_tokens="32000, 2000,8_000")
    assert (s.prompt_tokens, s.prompt_lengths) == (32000, (2000, 8000, 32000))
    assert Settings.model_validate(s.model_dump(mode="json")) == s
    assert Settings(prompt_tokens="50") == Settings(prompt_tokens=50)
    assert s.longest_request == (32000, 256)


def test_a_flag_wins_over_the_lengths_of_a_file(tmp_path):
    (tmp_path / "f.toml").write_text("prompt_tokens = [100, 200]\nusers = 1\n")
    assert load_settings(config_file=tmp_path / "f.toml").prompt_lengths == (100, 200)
    s = load_settings({"prompt_tokens": "70"}, config_file=tmp_path / "f.toml")
    assert (s.prompt_tokens, s.prompt_lengths) == (70, ())


def test_the_longest_request_of_each_kind():
    assert Settings(mix="interactive=1,rag=1:6000/300,x=1:6200/50").longest_request == (6000, 300)
    chat = Settings(exchanges=3, system_tokens=500, prompt_tokens=100, output_tokens=50)
    assert chat.longest_request == (500 + 2 * 150 + 100, 50)
    assert Settings(prompt_file="x").longest_request == (0, 256)


def test_a_turn_of_conversations_has_whole_ones():
    assert Settings(exchanges=4, turn_requests=10).turn_requests == 12
    assert Settings(exchanges=4, turn_requests=12).turn_requests == 12


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"prompt_tokens": "200,x", "users": 1},
            "prompt_tokens: a length is a whole number of",
        ),
        ({"prompt_tokens": "-5", "users": 1}, "a whole number of tokens, not '-5'"),
        ({"prompt_tokens": "0", "users": 1}, "from 1 to 10,000,000"),
        ({"prompt_tokens": "1e9", "users": 1}, "a whole number of tokens"),
        ({"prompt_tokens": "99999999999", "users": 1}, "from 1 to 10,000,000"),
        ({"prompt_tokens": "", "users": 1}, "one length, or up to 8"),
        ({"prompt_tokens": "5,5", "users": 1}, "there twice"),
        ({"prompt_tokens": "5,6", "users": 2}, "measured by one user"),
        ({"mix": "nonsense"}, "is not NAME=SHARE"),
        ({"mix": "long=1", "exchanges": 2}, "a mix and conversations don't go together"),
        ({"prompt_file": "f", "mix": "long=1"}, "prompts of a file and a mix don't go together"),
        ({"exchanges": 2, "api": "completions"}, "conversations need the chat endpoint"),
        ({"arrival": "poisson", "open_loop": {"rate": 1e-320}}, "greater than or equal to 0.000001"),
        (
            {"arrival": "poisson", "open_loop": {"rate": 1, "turn_s": 1e-300}},
            "greater than or equal to 0.001",
        ),
        ({"open_loop": {"trace": "t", "speed_up": 1e-300}}, "greater than or equal to 0.000001"),
        ({"arrival": "poisson", "open_loop": {"rate": 1, "burstiness": 3}}, "take an arrival of gamma"),
        ({"open_loop": {"trace": "t", "burstiness": 3}}, "take an arrival of gamma"),
    ],
)
def test_what_does_not_go(values, said):
    with pytest.raises(ValidationError, match=said):
        Settings(**values)


def test_mistakes_name_their_setting():
    with pytest.raises(ConfigError, match="settings: mix: 'x' is not NAME=SHARE"):
        load_settings({"mix": "x"}, config_file=None, env={})


@pytest.mark.parametrize(
    ("values", "users", "blocks"),
    [
        ({"shape": "steps", "users": 12}, 12, 6),
        ({"shape": "steps:2,40,4@5s", "users": 12}, 40, 6),
        ({"shape": "knee:1-64@2s"}, 64, 6),
        ({"shape": "hand", "users": 3}, 3, 1),
        ({"shape": "hand", "users": 3, "residency": "parallel"}, 3, 1),
        ({"shape": "own", "mix": "interactive=1,long=1"}, 16, 6),
    ],
)
def test_with_a_shape_users_are_the_most_there_will_be(values, users, blocks):
    s = Settings(**values)
    assert (s.users, s.blocks) == (users, blocks)
    again = Settings.model_validate(s.model_dump(mode="json"))  # as a worker gets them
    assert again == s
    assert again.course == s.course


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"shape": "waves"}, "is no shape"),
        ({"shape": "steps", "users": 1, "prompt_tokens": "100,200"}, "don't go together"),
        (
            {"shape": "steps", "arrival": "poisson", "open_loop": {"rate": 2.0}},
            "in an open loop there are none",
        ),
        ({"shape": "knee", "residency": "parallel"}, "one engine at a time"),
        ({"shape": "hand", "residency": "exclusive"}, "not with exclusive residency"),
        ({"shape": "steps", "level_s": 0.5}, "greater than or equal to 1"),
    ],
)
def test_shapes_that_cannot_be(values, said):
    with pytest.raises(ValidationError, match=said):
        Settings(**values)
