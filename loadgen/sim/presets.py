"""Engines on machines: the constants of the simulated servers.

`vllm-v100` and `llamacpp-v100` reproduce what a practitioner published for Qwen3-8B on two Tesla V100 (vLLM
0.27.1 with FP8 weights, tensor parallel over both, eager; llama-server with Q4_K_M, the four slots that it
takes by itself), with 256 output tokens:

| | vLLM | llama.cpp |
|---|---|---|
| TTFT, prompt of 50 tokens, one user | 180 ms | 95 ms |
| TTFT, prompt of 2000 tokens | 1.2 s | 2.8 s |
| decode speed after 50 / after 2000 tokens | 42 / 40 tok/s | 58 / 55 tok/s |
| total throughput, 16 users, short prompts | 380 tok/s | 210 tok/s |

His "average latency per request" at 16 users (1.8 s and 3.5 s) is left out: 16 requests in flight at 380
tokens/s and 256 tokens each take 16 * 256 / 380 = 10.8 s a request by Little's law, so it can't be an
end-to-end mean of the same runs.

How the constants follow from the table, for prompts that begin with a salt after the template's own 24
tokens, on a warmed-up server (so llama.cpp has those 24 cached and vLLM 16 of them, one block):

- prefill_tok_s: (2000 - 50) tokens / (difference of the two TTFT)
- overhead_s + step_s + prefill_base_s: TTFT at 50, minus the 26 (llama.cpp) or 34 (vLLM) tokens computed
- step_kv_s: (1 / 40 - 1 / 42) s / 1950 tokens, and likewise for llama.cpp
- step_s: 1 / 42 s minus the share of the KV of 50 + 256 / 2 tokens
- step_seq_s: what makes 64 requests of 16 users, from the first sent to the last token, give the throughput

KV memory is what 2.7 GB and a context of 8192 tokens hold (147,456 bytes a token).
"""

from __future__ import annotations

from loadgen.sim.model import Constants


def _engine(
    kind: str,
    *,
    ttft: tuple[float, float],
    decode: tuple[float, float],
    template: int,
    step_seq_s: float,
    overhead_s: float,
    slots: int,
    kv_tokens: int,
) -> Constants:
    short, long = 50, 2000
    half_answer = 256 / 2
    prefill_tok_s = (long - short) / (ttft[1] - ttft[0])
    step_kv_s = (1 / decode[1] - 1 / decode[0]) / (long - short)
    step_s = 1 / decode[0] - step_kv_s * (short + half_answer)
    return Constants(
        kind=kind,
        step_s=step_s,
        step_seq_s=step_seq_s,
        step_kv_s=step_kv_s,
        prefill_tok_s=prefill_tok_s,
        prefill_base_s=ttft[0] - (short - template) / prefill_tok_s - step_s - overhead_s,
        overhead_s=overhead_s,
        slots=slots,
        context=8192,
        kv_tokens=kv_tokens,
    )


def _steady(kind: str) -> Constants:
    return Constants(
        kind=kind,
        step_s=0.02,
        overhead_s=0.18,
        prefill_tok_s=1e9,
        slots=4096,
        kv_tokens=16_000_000,
        batch_tokens=1_000_000,
        context=32_768,
    )


PRESETS: dict[str, Constants] = {
    "vllm-v100": _engine(
        "vllm",
        ttft=(0.180, 1.2),
        decode=(42, 40),
        template=16,
        step_seq_s=0.000997,
        overhead_s=0.1,
        slots=256,
        kv_tokens=18_304,
    ),
    "llamacpp-v100": _engine(
        "llamacpp",
        ttft=(0.095, 2.8),
        decode=(58, 55),
        template=24,
        step_seq_s=0.000217,
        overhead_s=0.002,
        slots=4,
        kv_tokens=8_192,
    ),
    # For tests and benchmarks of clients: TTFT 200 to 220 ms, 50 tokens/s, whatever the load.
    "vllm-steady": _steady("vllm"),
    "llamacpp-steady": _steady("llamacpp"),
    # As fast as the wire: for tests that wait for nothing.
    "vllm-fast": Constants(kind="vllm", step_s=0.001, prefill_tok_s=1e6, kv_tokens=1_000_000, context=32_768),
    "llamacpp-fast": Constants(
        kind="llamacpp", step_s=0.001, prefill_tok_s=1e6, slots=16, kv_tokens=1_000_000, context=32_768
    ),
}
DEFAULT_PRESET = {"vllm": "vllm-v100", "llamacpp": "llamacpp-v100"}
