from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.endless import Endless
from loadgen.workload.prompt import Prompt

POOL = tuple(Prompt(i, f"salt{i:04}: text number {i}", tokens=20) for i in range(3))


def take(source, n):
    return list(islice(source, n))


def test_texts_come_again_and_never_with_the_same_beginning():
    prompts = take(Endless(POOL, "run/block 0", first_pair=100), 1000)
    assert [p.pair for p in prompts] == list(range(100, 1100))
    assert len({p.text.partition(" ")[0] for p in prompts}) == 1000
    assert [p.text.partition(" ")[2] for p in prompts[:4]] == [
        "text number 0",
        "text number 1",
        "text number 2",
        "text number 0",
    ]
    assert not {p.text.partition(" ")[0] for p in prompts} & {p.text.partition(" ")[0] for p in POOL}
    assert all(p.tokens is None for p in prompts)


def test_every_engine_gets_the_same_and_every_block_others():
    source = Endless(POOL, "run/block 0")
    assert take(source, 50) == take(source, 50)
    assert not {p.text for p in take(source, 50)} & {p.text for p in take(Endless(POOL, "run/block 1"), 50)}


def test_without_salt_texts_stay_as_they_are():
    assert [p.text for p in take(Endless(POOL, None), 4)] == [p.text for p in (*POOL, POOL[0])]


def test_conversations_get_new_salts_but_for_their_system_prompt():
    talk = Prompt(
        0,
        "aaaa: first",
        messages=({"role": "system", "content": "ssss: be kind"}, {"role": "user", "content": "aaaa: first"}),
        follow_ups=("bbbb: second", "cccc: third"),
        output_tokens=7,
        traffic_class="first-turn",
    )
    (one,) = take(Endless((talk,), "k"), 1)
    system, user = one.messages
    assert system["content"] == "ssss: be kind"
    assert user["content"] == one.text
    assert one.text.endswith(": first")
    assert [t.partition(" ")[2] for t in one.follow_ups] == ["second", "third"]
    salts = [t.partition(" ")[0] for t in (one.text, *one.follow_ups)]
    assert len(set(salts)) == 3
    assert not set(salts) & {"aaaa:", "bbbb:", "cccc:"}
    assert (one.output_tokens, one.traffic_class) == (7, "first-turn")


def test_parts_of_a_message_get_the_salt_too():
    content = [{"type": "image_url"}, {"type": "text", "text": "aaaa: look"}]
    seen = Prompt(0, "aaaa: look", messages=({"role": "user", "content": content},))
    (one,) = take(Endless((seen,), "k"), 1)
    assert one.messages[0]["content"][0] == {"type": "image_url"}
    assert one.messages[0]["content"][1]["text"] == one.text
    assert content[1]["text"] == "aaaa: look"


def test_a_prompt_of_its_salt_alone():
    assert " " not in take(Endless((Prompt(0, "aaaa:"),), "k"), 1)[0].text


@given(st.integers(1, 8), st.integers(1, 40))
def test_several_processes_take_every_prompt_once(workers, each):
    source = Endless(POOL, "run/block 0")
    parts = [take(source.share(k, workers, f"w{k}"), each) for k in range(workers)]
    assert sorted(p.pair for part in parts for p in part) == list(range(workers * each))
    assert len({p.text for part in parts for p in part}) == workers * each
