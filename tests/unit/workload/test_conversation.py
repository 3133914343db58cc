import pytest

from loadgen.config import Settings
from loadgen.workload.conversation import next_prompt, think_time
from loadgen.workload.plan import wanted
from loadgen.workload.prompt import Prompt


def test_a_conversation_grows_by_the_answer_and_the_next_question():
    first = Prompt(
        8,
        "q1",
        messages=({"role": "system", "content": "s"}, {"role": "user", "content": "q1"}),
        traffic_class="first-turn",
        follow_ups=("q2", "q3"),
    )
    last = next_prompt(next_prompt(first, "a1"), "a2")
    assert [m["content"] for m in last.as_messages()] == ["s", "q1", "a1", "q2", "a2", "q3"]
    assert [m["role"] for m in last.as_messages()][2:4] == ["assistant", "user"]
    assert (last.pair, last.traffic_class, last.follow_ups) == (10, "warm-turns", ())
    assert first.follow_ups == ("q2", "q3")


def test_people_think_about_as_long_as_asked_and_alike_for_every_engine():
    times = [think_time(2.0, 1, pair) for pair in range(1000)]
    assert min(times) >= 1.0
    assert max(times) <= 3.0
    assert sum(times) / len(times) == pytest.approx(2.0, abs=0.1)
    assert think_time(2.0, 1, 7) == times[7] != think_time(2.0, 2, 7)


def test_what_a_turn_has():
    assert len(wanted(Settings(turn_requests=8), 0)) == 8
    lengths = wanted(Settings(users=1, prompt_tokens="800,200", turn_requests=2), 3)
    assert [(w.prompt_tokens, w.traffic_class) for w in lengths] == [
        (200, "prompt-200"),
        (200, "prompt-200"),
        (800, "prompt-800"),
        (800, "prompt-800"),
    ]
    assert len(wanted(Settings(exchanges=4, turn_requests=10), 0)) == 3
    mix = Settings(mix="long=1,batch=1", turn_requests=40)
    assert wanted(mix, 0) != wanted(mix, 1)
