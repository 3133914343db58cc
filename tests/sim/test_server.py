"""The simulated servers' behaviour in time and over several requests."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from loadgen.sim.launch import SimProcess
from tests.sim.raw import Raw, chat, event_text, get, post

MS = 1_000_000


def ask(sim: SimProcess, request: bytes) -> Any:
    with Raw(sim.url) as c:
        return c.ask(request)


def until(condition: Any, timeout_s: float = 10.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def gauge(sim: SimProcess, name: str) -> float:
    text = ask(sim, get("/metrics")).body.decode()
    found = re.search(rf"^{sim.kind}:{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
    assert found, name
    return float(found[1])


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_the_log_tells_the_truth(kind: str) -> None:
    """What a plain blocking socket reads, compared with the log: token by token, on one clock."""
    with SimProcess(kind, preset=f"{kind}-steady", overhead_s=0.1, odd_share=0) as sim, Raw(sim.url) as c:
        offset = time.time_ns() - time.monotonic_ns()
        sent = c.send(chat(tokens=20))
        got = c.read()
        until(lambda: sim.log_records())
        (row,) = sim.log_records()
    assert row["id"] == got.events[0]["id"]
    assert (row["outcome"], row["tokens"], len(row["t_us"])) == ("completed", 20, 20)
    assert row["prompt_tokens"] == got.events[-1]["usage"]["prompt_tokens"]
    # The reads that hold text; every token has a read of its own at 50 tokens/s.
    reads = [t for t, data in got.reads if re.search(rb'"content":"[^"]+"', data)]
    assert len(reads) == 20
    assert row["recv_ns"] >= sent + offset - 5 * MS
    late = sorted(t + offset - (row["recv_ns"] + us * 1000) for t, us in zip(reads, row["t_us"], strict=True))
    assert late[0] > -2 * MS  # nothing is read before it was written
    assert late[10] < 50 * MS
    assert row["first_ns"] - row["recv_ns"] == pytest.approx(row["t_us"][0] * 1000, abs=1000)
    assert row["last_ns"] - row["recv_ns"] == pytest.approx(row["t_us"][-1] * 1000, abs=1000)
    # Due times are absolute: 100 ms, then a step for the prompt, then 19 more of 20 ms; none early.
    assert all(us >= 120_000 + 20_000 * i - 1000 for i, us in enumerate(row["t_us"]))


def test_head_at_once_or_with_the_slot() -> None:
    """vLLM sends its head while a request waits, llama-server does not."""
    options: dict[str, Any] = {"slots": 1, "step_s": 0.01, "context": 8192}
    with (
        SimProcess("vllm", preset="vllm-fast", **options) as vllm,
        SimProcess("llamacpp", preset="llamacpp-fast", **options) as llama,
    ):
        for sim, head_waits in ((vllm, False), (llama, True)):
            with Raw(sim.url) as first, Raw(sim.url) as second:
                first.send(chat("one", tokens=40))
                until(lambda sim=sim: gauge(sim, WAITS[sim.kind][0]) == 1)
                second.send(chat("two", tokens=2))
                until(lambda sim=sim: gauge(sim, WAITS[sim.kind][1]) == 1)
                first.read()
                second.read()
            until(lambda sim=sim: len(sim.log_records()) == 2)
            one, two = sim.log_records()
            assert two["first_ns"] > one["last_ns"]
            assert (two["head_ns"] > one["last_ns"] - 1000) == head_waits


WAITS = {
    "vllm": ("num_requests_running", "num_requests_waiting"),
    "llamacpp": ("requests_processing", "requests_deferred"),
}


def test_usage_counts_what_tokenize_counts(sim: SimProcess, kind: str) -> None:
    messages = [{"role": "user", "content": "Explain 3 things: naïve 🦊 <|im_end|> tokens.\n\nWell?"}]
    if kind == "vllm":
        count = json.loads(ask(sim, post("/tokenize", {"messages": messages})).body)["count"]
    else:
        prompt = json.loads(ask(sim, post("/apply-template", {"messages": messages})).body)["prompt"]
        body = {"content": prompt, "add_special": True, "parse_special": True}
        count = len(json.loads(ask(sim, post("/tokenize", body)).body)["tokens"])
    got = ask(sim, chat(messages[0]["content"]))
    assert got.events[-1]["usage"]["prompt_tokens"] == count


def test_tokenize_and_back(sim: SimProcess, kind: str) -> None:
    text = "Hello 日本 🦊, world 42"
    name, back = ("prompt", "prompt") if kind == "vllm" else ("content", "content")
    tokens = json.loads(ask(sim, post("/tokenize", {name: text})).body)["tokens"]
    assert json.loads(ask(sim, post("/detokenize", {"tokens": tokens})).body)[back] == text


def test_both_kinds_count_alike(fast: dict[str, SimProcess]) -> None:
    counts = [
        ask(s, chat("The same text for both.")).events[-1]["usage"]["prompt_tokens"] for s in fast.values()
    ]
    assert counts[0] == counts[1]


def test_same_prompt_same_answer(sim: SimProcess) -> None:
    first, second, other = (ask(sim, chat(t, tokens=30)).text for t in ("a", "a", "b"))
    assert first == second != other


def test_stream_and_whole_say_the_same(sim: SimProcess) -> None:
    streamed = ask(sim, chat(tokens=30)).text
    body = {"messages": [{"role": "user", "content": "Write a story."}], "max_tokens": 30, "ignore_eos": True}
    whole = json.loads(ask(sim, post("/v1/chat/completions", body)).body)
    assert whole["choices"][0]["message"]["content"] == streamed
    assert whole["usage"]["completion_tokens"] == 30


def test_min_tokens_and_eos(fast: dict[str, SimProcess]) -> None:
    """Without ignore_eos answers end by themselves; vLLM's min_tokens puts that off."""
    ends = [
        ask(fast["vllm"], chat(f"{i}", tokens=400, ignore_eos=False)).events[-1]["usage"] for i in range(5)
    ]
    assert min(u["completion_tokens"] for u in ends) < 400
    got = ask(fast["vllm"], chat("0", tokens=400, ignore_eos=False, min_tokens=400))
    assert got.events[-1]["usage"]["completion_tokens"] == 400


def test_two_choices(sim: SimProcess, kind: str) -> None:
    events = ask(sim, chat(n=2)).events
    texts = ["", ""]
    for e in events:
        for c in e["choices"]:
            texts[c["index"]] += event_text({"choices": [c]})
    assert texts[0]
    assert texts[1]
    assert texts[0] != texts[1]
    usages = [e["usage"]["completion_tokens"] for e in events if e.get("usage")]
    assert usages == ([16] if kind == "vllm" else [8, 8])


def test_repeated_prompts_hit_the_cache_and_salted_ones_only_the_template(sim: SimProcess, kind: str) -> None:
    def hits() -> float:
        return gauge(sim, "prefix_cache_hits_total" if kind == "vllm" else "prompt_tokens_cached_total")

    ask(sim, chat("x9 " + "the same words again " * 20))
    before = hits()
    ask(sim, chat("x9 " + "the same words again " * 20))
    again = hits()
    assert again - before > 60
    ask(sim, chat("y1 " + "the same words again " * 20))
    assert hits() - again == (16 if kind == "vllm" else 24)


def test_a_client_that_leaves_is_logged_and_its_place_is_free(sim: SimProcess, kind: str) -> None:
    with Raw(sim.url) as c:
        c.send(chat("leaving soon", tokens=20_000))
        c.sock.recv(1000)
        until(lambda: gauge(sim, WAITS[kind][0]) == 1)
    until(lambda: gauge(sim, WAITS[kind][0]) == 0)
    until(lambda: any(r["outcome"] == "client_gone" for r in sim.log_records()))
    row = [r for r in sim.log_records() if r["outcome"] == "client_gone"][-1]
    assert 0 <= row["tokens"] < 20_000


def test_requests_sent_ahead_are_answered_in_turn(fast: dict[str, SimProcess]) -> None:
    with Raw(fast["vllm"].url) as c:
        c.send(get("/version") + get("/v1/models"))
        data = b""
        while data.count(b"HTTP/1.1 200 OK") < 2 or not data.endswith(b"}"):
            data += c.sock.recv(65536)
    assert data.index(b'"version"') < data.index(b'"max_model_len"')


def test_what_is_not_http_gets_400(sim: SimProcess) -> None:
    got = ask(sim, b"hello there\r\n\r\n")
    assert got.status == 400
    assert got.ended == "eof"


@pytest.mark.parametrize("body", [{"messages": 3}, {"messages": [3]}, {"tokens": ["x"]}, {"content": 3}, []])
@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/apply-template", "/v1/chat/completions"])
def test_nonsense_gets_an_answer(sim: SimProcess, path: str, body: Any) -> None:
    assert ask(sim, post(path, body)).status in (200, 400, 404)
    assert ask(sim, get("/health")).status == 200


def test_pings_in_prefill() -> None:
    with SimProcess("llamacpp", preset="llamacpp-fast", ping=0.05, prefill_base_s=0.2) as sim:
        got = ask(sim, chat())
    before = got.raw.partition(b"data:")[0]
    assert 1 <= before.count(b"3\r\n:\n\n\r\n") <= 4
    assert got.payloads[-1] == b"[DONE]"


def test_llamacpp_loading_answers_503_then_works() -> None:
    with SimProcess("llamacpp", preset="llamacpp-fast", loading=1) as sim:
        for request in (get("/health"), get("/v1/models"), chat()):
            got = ask(sim, request)
            assert got.status == 503
            error = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'
            assert got.body == error
            assert got.ended == "eof"
        until(lambda: ask(sim, get("/health")).status == 200)


def test_vllm_loading_refuses_connections_then_works() -> None:
    with SimProcess("vllm", preset="vllm-fast", loading=1) as sim:
        with pytest.raises(ConnectionRefusedError):
            Raw(sim.url)

        def up() -> bool:
            try:
                return bool(ask(sim, get("/health")).status == 200)
            except ConnectionRefusedError:
                return False

        until(up)


def test_full_kv_memory_fails_all_running_streams_of_llamacpp() -> None:
    with SimProcess("llamacpp", preset="llamacpp-fast", kv_tokens=150, context=150, slots=2) as sim:
        with Raw(sim.url) as a, Raw(sim.url) as b:
            a.send(chat("one", tokens=100))
            b.send(chat("two", tokens=100))
            for got in (a.read(), b.read()):
                assert got.status == 200
                assert got.events[-1]["error"]["code"] == 500
                assert got.payloads[-1] != b"[DONE]"
        until(lambda: len(sim.log_records()) == 2)
        assert {r["outcome"] for r in sim.log_records()} == {"failed"}
        assert ask(sim, chat("three", tokens=5)).payloads[-1] == b"[DONE]"


def test_speed_is_told_and_kept() -> None:
    with SimProcess("vllm", speed=20) as vllm, SimProcess("llamacpp", speed=20) as llama:
        assert json.loads(ask(vllm, get("/version")).body)["simulated"] == {
            "preset": "vllm-v100",
            "speed": 20.0,
        }
        props = json.loads(ask(llama, get("/props")).body)
        assert props["simulated"] == {"preset": "llamacpp-v100", "speed": 20.0}
        assert props["total_slots"] == 4
        timings = ask(llama, chat(tokens=50)).events[-1]["timings"]
    assert timings["predicted_per_second"] == pytest.approx(20 * 58, rel=0.05)


def test_slots_divide_llamacpps_context() -> None:
    with SimProcess("llamacpp", slots=8) as sim:
        props = json.loads(ask(sim, get("/props")).body)
        assert (props["total_slots"], props["default_generation_settings"]["n_ctx"]) == (8, 1024)
        assert len(json.loads(ask(sim, get("/slots")).body)) == 8


def test_a_taken_port_is_one_sentence(fast: dict[str, SimProcess]) -> None:
    with pytest.raises(RuntimeError, match=r"^loadgen sim: 127\.0\.0\.1:\d+ is taken by another program"):
        SimProcess("vllm", port=fast["vllm"].port)


def test_stopping_logs_what_is_under_way() -> None:
    sim = SimProcess("vllm", preset="vllm-steady")
    with Raw(sim.url) as c:
        c.send(chat(tokens=10_000))
        until(lambda: b"data:" in c.sock.recv(65536))
        sim.stop()
        sim.stop()
    (row,) = sim.log_records()
    assert row["outcome"] == "open"
    assert row["tokens"] >= 1
