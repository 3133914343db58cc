"""vLLM (Python front end): 81 captures. It reports no cached tokens in usage."""

from __future__ import annotations

from .expected import Expected, body, cancelled, http_error, stream

NOT_FOUND = http_error(404, "Not Found")
OVERFLOW = http_error(400, "This model's maximum context length is 4096 tokens.")
NO_SUCH_MODEL = http_error(
    404, "The model `no-such-model` does not exist. Valid aliases: smollm2. (NotFoundError, 404)"
)
ONE_TOKEN_AT_LEAST = http_error(400, "max_tokens must be at least 1, got 0.")

VLLM: dict[str, list[Expected]] = {
    # Chat. A role event with empty content first; the finish is in the last token's event.
    "chat_short": [stream(64, 64, 37)],
    "chat_short_close": [stream(64, 64, 37)],
    "chat_short_http10": [stream(16, 16, 37)],
    "chat_short_nousage": [stream(64, 64, None, source="events")],
    "chat_long": [stream(64, 64, 1594)],
    "chat_cached": [stream(8, 8, 554, first="The"), stream(8, 8, 554, first="The")],
    "chat_continuous_usage": [stream(16, 16, 37, first="In")],
    "chat_emoji": [stream(28, 64, 69)],  # 36 events with half a character have no text
    "chat_logprobs": [stream(7, 8, 31, first="Hello")],  # one event holds two tokens: "! How"
    "chat_max1": [stream(1, 1, 34)],
    "chat_max_completion_tokens": [stream(8, 8, 31)],
    "chat_min_tokens": [stream(16, 16, 31)],
    "chat_n2": [stream(16, 16, 31, choices=2, first="Hello")],  # usage is summed by the server
    "chat_nonstream": [body()],
    "chat_request_id": [stream(4, 4, 31)],
    "chat_return_token_ids": [stream(8, 8, 31, first="Hello")],
    "chat_stop_eos": [stream(2, 3, 36, finish="stop")],  # the finish comes with an empty text
    "keepalive_two": [stream(8, 8, 31, first="Hello"), stream(5, 8, 32, first="Hello")],
    "missing_model_chat": [stream(4, 4, 31, first="Hello")],
    "unknown_param": [stream(2, 2, 31, first="Hello")],
    "nomax_chat_stream": [stream(3765, 3765, 331, first="The")],
    # Completions. No role event.
    "completions": [stream(64, 64, 4, first=",")],
    "completions_continuous_usage": [stream(16, 16, 3, first=" a")],
    "completions_max1": [stream(1, 1, 4)],
    "completions_nonstream": [body()],
    "completions_return_token_ids": [stream(8, 8, 1, first="-")],
    "completions_tokens": [stream(8, 16, 128)],
    # 16 at once.
    "concurrent16_00": [stream(64, 64, 67)],
    "concurrent16_01": [stream(64, 64, 69)],
    "concurrent16_02": [stream(64, 64, 68)],
    "concurrent16_03": [stream(64, 64, 68)],
    "concurrent16_04": [stream(64, 64, 68)],
    "concurrent16_05": [stream(64, 64, 68)],
    "concurrent16_06": [stream(64, 64, 67)],
    "concurrent16_07": [stream(64, 64, 68)],
    "concurrent16_08": [stream(64, 64, 69)],
    "concurrent16_09": [stream(64, 64, 68)],
    "concurrent16_10": [stream(64, 64, 69)],
    "concurrent16_11": [stream(64, 64, 69)],
    "concurrent16_12": [stream(64, 64, 68)],
    "concurrent16_13": [stream(64, 64, 69)],
    "concurrent16_14": [stream(64, 64, 69, first="The")],
    "concurrent16_15": [stream(64, 64, 70, first="The")],
    # Cut off: by the client, and by the death of the engine process (error, then [DONE]; 8 tokens an event).
    "disconnect": [cancelled(5, "The")],
    "server_killed_midstream": [
        Expected(
            "stream",
            200,
            "failed",
            "in_stream",
            "EngineCore encountered an issue. See stack trace (above) for the root cause. "
            "(InternalServerError, 500)",
            events=22,
            output_tokens=169,
            prompt_tokens=34,
            token_source="usage",
            first_text=" Historic",
        )
    ],
    # Refused.
    "bad_json": [http_error(400, "JSON decode error")],
    "bad_max_tokens_negative": [http_error(400, "max_tokens must be at least 1, got -5.")],
    "bad_max_tokens_type": [http_error(400, "Input should be a valid integer")],
    "bad_temperature": [http_error(400, "temperature must be non-negative, got -3.0.")],
    "completions_max_tokens_zero": [ONE_TOKEN_AT_LEAST],
    "max_tokens_zero": [ONE_TOKEN_AT_LEAST],
    "empty_messages": [http_error(400, "Cannot apply chat template to an empty conversation.")],
    "empty_prompt": [http_error(400, "Either prompt or prompt_embeds must be provided and non-empty.")],
    "missing_messages": [http_error(400, "Field required")],
    "no_content_type": [http_error(400, "Unsupported Media Type: Only 'application/json' is allowed")],
    "overflow_chat_nonstream": [OVERFLOW],
    "overflow_chat_stream": [OVERFLOW],
    "overflow_completions_stream": [OVERFLOW],
    "overflow_gen_chat_stream": [http_error(400, "max_tokens=100000 cannot be greater than max_model_len")],
    "stream_options_without_stream": [http_error(400, "Stream options can only be defined when")],
    "wrong_model_chat": [NO_SUCH_MODEL],
    "wrong_model_completions": [NO_SUCH_MODEL],
    "method_not_allowed": [http_error(405, "Method Not Allowed")],
    "not_found": [NOT_FOUND],
    "get_models": [NOT_FOUND],
    "get_props": [NOT_FOUND],
    "get_root": [NOT_FOUND],
    "get_server_info": [NOT_FOUND],
    "get_slots": [NOT_FOUND],
    "get_v1": [NOT_FOUND],
    "reset_prefix_cache": [NOT_FOUND],
    # Control endpoints.
    "detokenize": [body()],
    "get_health": [body("empty")],
    "get_load": [body()],
    "get_metrics": [body("text")],
    "get_openapi.json": [body()],
    "get_ping": [body("empty")],
    "get_v1_models": [body()],
    "get_version": [body()],
    "tokenize": [body()],
    "tokenize_chat": [body()],
}
