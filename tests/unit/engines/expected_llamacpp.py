"""llama-server: 82 captures and two with pings."""

from __future__ import annotations

from dataclasses import replace

from .expected import DEAD, Expected, body, cancelled, http_error, stream

NOT_FOUND = http_error(404, "File Not Found")
CHAT_OVERFLOW = http_error(
    400, "request (20034 tokens) exceeds the available context size (4096 tokens), try increasing it"
)

LLAMACPP: dict[str, list[Expected]] = {
    # Chat. The role event comes with the first token, the finish in an event of its own, usage last.
    "chat_short": [stream(64, 64, 37, 0, first="The")],
    "chat_short_close": [stream(64, 64, 37, 29, first="The")],
    "chat_short_http10": [stream(16, 16, 37, 29)],
    "chat_short_nousage": [stream(64, 64, 37, 29, source="timings")],
    "chat_long": [stream(64, 64, 1594, 24, first="The")],
    "chat_cached": [stream(8, 8, 554, 28, first="The"), DEAD],
    "chat_cache_prompt_false": [stream(8, 8, 37, 0, first="The")],
    "chat_emoji": [stream(28, 64, 69, 24, first="🦊")],  # no role event; half characters are held back
    "chat_logprobs": [stream(8, 8, 31, 24, first="Hello")],
    "chat_max1": [stream(1, 1, 34, 24, first="I")],
    "chat_max_completion_tokens": [stream(8, 8, 31, 30)],
    "chat_n2": [stream(16, 16, 31, 30, choices=2, first="Hello")],  # 8 + 8, one usage event a choice
    "chat_nonstream": [body()],
    "chat_return_progress": [stream(8, 8, 658, 24)],
    "chat_stop_eos": [stream(2, 3, 36, 24, finish="stop", first="Yes")],  # the end token counts
    "chat_timings_per_token": [stream(16, 16, 37, 29, first="In")],
    "keepalive_two": [stream(8, 8, 31, 30), DEAD],
    "max_tokens_zero": [stream(1, 1, 31, 24)],
    "missing_model_chat": [stream(4, 4, 31, 30)],
    "wrong_model_chat": [stream(4, 4, 31, 25)],
    "bad_temperature": [stream(4, 4, 31, 30, first="Hello")],
    "no_content_type": [stream(2, 2, 31, 30)],
    "unknown_param": [stream(2, 2, 31, 24)],
    "empty_messages": [stream(4, 4, 4, 1, source="timings", first="The")],
    "nomax_chat_stream": [stream(3765, 3765, 331, 330)],
    "overflow_gen_chat_stream": [stream(3765, 3765, 331, 24)],
    "stream_options_without_stream": [body()],
    # Completions. Usage and finish come together in the last event, which has no text.
    "completions": [stream(64, 64, 4, 0, first=",")],
    "completions_max1": [stream(1, 1, 4, 3)],
    "completions_max_tokens_zero": [stream(1, 1, 1, 0, first="-")],
    "completions_nonstream": [body()],
    "completions_return_progress": [stream(8, 8, 626, 0)],
    "completions_timings_per_token": [stream(16, 16, 3, 0, first=" a")],
    "completions_tokens": [stream(8, 16, 128, 0, first="¯")],
    "wrong_model_completions": [stream(4, 4, 1, 0)],
    # A finish without a single token is no success for a load generator.
    "empty_prompt": [
        replace(
            stream(0, 0, 0, 0),
            outcome="failed",
            error="no_text",
            error_text="finished without any generated text or token count",
        )
    ],
    # Its own endpoint: no usage, no [DONE].
    "native_completion": [stream(16, 16, 4, 1, done=False, first=",")],
    # 16 at once on 4 slots.
    "concurrent16_00": [stream(64, 64, 67, 24)],
    "concurrent16_01": [stream(64, 64, 69, 24)],
    "concurrent16_02": [stream(64, 64, 68, 24)],
    "concurrent16_03": [stream(64, 64, 68, 29)],
    "concurrent16_04": [stream(64, 64, 68, 24)],
    "concurrent16_05": [stream(64, 64, 68, 29)],
    "concurrent16_06": [stream(64, 64, 67, 29)],
    "concurrent16_07": [stream(64, 64, 68, 29)],
    "concurrent16_08": [stream(64, 64, 69, 29)],
    "concurrent16_09": [stream(64, 64, 68, 29)],
    "concurrent16_10": [stream(64, 64, 69, 29)],
    "concurrent16_11": [stream(64, 64, 69, 29)],
    "concurrent16_12": [stream(64, 64, 68, 29)],
    "concurrent16_13": [stream(64, 64, 69, 30)],
    "concurrent16_14": [stream(64, 64, 69, 29)],
    "concurrent16_15": [stream(64, 64, 70, 30)],
    # Cut off: by the client, and by the death of the server.
    "disconnect": [cancelled(5, "The")],
    "server_killed_midstream": [
        Expected("stream", 200, "failed", "truncated", events=100, token_source="events", done=False)
    ],
    # Refused.
    "bad_json": [http_error(400, "parse error at line 1, column 29")],
    "bad_max_tokens_negative": [http_error(400, "Value must be between -1 <= value <= 2147483647")],
    "bad_max_tokens_type": [http_error(400, "type must be number, but is string")],
    "missing_messages": [http_error(400, "'messages' is required (invalid_request_error, 400)")],
    "overflow_chat_stream": [CHAT_OVERFLOW],
    "overflow_chat_nonstream": [CHAT_OVERFLOW],
    "overflow_completions_stream": [http_error(400, "request (20000 tokens) exceeds")],
    "not_found": [NOT_FOUND],
    "method_not_allowed": [NOT_FOUND],
    "get_load": [NOT_FOUND],
    "get_openapi.json": [NOT_FOUND],
    "get_ping": [NOT_FOUND],
    "get_root": [NOT_FOUND],
    "get_server_info": [NOT_FOUND],
    "get_v1": [NOT_FOUND],
    "get_version": [NOT_FOUND],
    # Control endpoints.
    "apply_template": [body()],
    "detokenize": [body()],
    "get_health": [body()],
    "get_metrics": [body("text")],
    "get_models": [body()],
    "get_props": [body()],
    "get_slots": [body()],
    "get_v1_models": [body()],
    "props_post": [body()],
    "tokenize": [body()],
    "tokenize_special": [body()],
}

LLAMACPP_PING: dict[str, list[Expected]] = {
    "ping_prefill": [stream(200, 200, 1594, 0)],  # three `:` comments before the first token
    "ping_queued": [stream(4, 4, 31, 24)],
}
