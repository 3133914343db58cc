"""How llama-server (llama.cpp of October 2026) answers, byte for byte where a client can see it. Pure."""

from __future__ import annotations

import time
from typing import Any

import orjson

from loadgen.sim.request import GenRequest
from loadgen.sim.tokens import token_bytes
from loadgen.sim.wire import MARK, REASONS, Answer, Choice, Payloads, TokenChunks, json_text, new_id

BUILD = "b0-simulated"
_LOGPROB = -0.25  # every token's, in this world


class LlamaDialect:
    """Head when a slot is free, role in one chunk with the first token, finish and usage after the last."""

    kind = "llamacpp"
    keeps_connection = False  # a stream's connection is closed, whatever the Keep-Alive header says
    head_at_once = False

    def head(
        self,
        status: int,
        *,
        stream: bool,
        close: bool,
        length: int | None = None,
        content_type: str | None = "application/json; charset=utf-8",
        process_start: int | None = None,
    ) -> bytes:
        """A response head. Errors close the connection and say so."""
        lines = [f"HTTP/1.1 {status} {REASONS[status]}", "Server: llama.cpp", "Access-Control-Allow-Origin: "]
        if process_start is not None:
            lines.append(f"Process-Start-Time-Unix: {process_start}")
        if stream:
            lines += [
                "X-Accel-Buffering: no",
                "Content-Type: text/event-stream",
                "Transfer-Encoding: chunked",
            ]
        else:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {length}"]
        closes = close or status >= 400
        lines.append("Connection: close" if closes else "Keep-Alive: timeout=5, max=100")
        lines.append(f"{MARK}: llamacpp")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def new_id(self, request: GenRequest) -> str:
        return new_id("chatcmpl-", 32)

    def _frame(self, a: Answer, choices: bytes, rest: bytes = b"", usage: bytes = b"") -> bytes:
        """One event. In plain completions the usage stands before the id, everything else after it."""
        head = b'{"choices":[%b],"created":%d,' % (choices, a.created)
        ident, model = json_text(a.id), json_text(a.model)
        if a.request.chat:
            tail = b'"id":%b,"model":%b,"system_fingerprint":"%b","object":"chat.completion.chunk"%b%b}'
            return head + tail % (ident, model, BUILD.encode(), usage, rest)
        tail = b'"model":%b,"system_fingerprint":"%b","object":"text_completion"%b,"id":%b%b}'
        return head + tail % (model, BUILD.encode(), usage, ident, rest)

    def _choice(
        self, a: Answer, c: Choice, delta: bytes, finish: bytes = b"null", logprobs: bytes = b""
    ) -> bytes:
        if a.request.chat:
            return b'{"finish_reason":%b,"index":%d,"delta":{%b}%b}' % (finish, c.index, delta, logprobs)
        return b'{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b}' % (
            delta,
            c.index,
            logprobs or b"null",
            finish,
        )

    def _role(self, a: Answer, c: Choice, rest: bytes = b"") -> bytes:
        return self._frame(a, self._choice(a, c, b'"role":"assistant","content":null'), rest)

    def on_slot(self, a: Answer, c: Choice) -> list[Payloads]:
        if a.request.return_progress:
            return self.on_progress(a, c, c.job.cached, 0.0)
        return []

    def on_progress(self, a: Answer, c: Choice, done: int, ms: float) -> list[Payloads]:
        if not a.request.return_progress:
            return []
        rest = b',"prompt_progress":{"total":%d,"cache":%d,"processed":%d,"time_ms":%d}' % (
            len(a.request.prompt),
            c.job.cached,
            done,
            ms,
        )
        if a.request.chat:
            return [[self._role(a, c, rest)]]
        return [[self._frame(a, self._choice(a, c, b'""'), rest)]]

    def on_tokens(self, a: Answer, c: Choice, tokens: list[int]) -> TokenChunks:
        """The event of these further tokens, if they complete any text, and the finish after the last.

        A first token of half a character sends nothing, and then the role never comes.
        """
        r = a.request
        first = not c.started
        c.started = True
        reasoning = c.sent < c.reasoning_until
        text = c.take(tokens)
        chunk: Payloads | None = None
        if text:
            rest = b',"timings":' + orjson.dumps(timings(c)) if r.timings_per_token else b""
            logprobs = b"" if r.logprobs is None else orjson.dumps(_logprobs(tokens, r.logprobs))
            if r.chat:
                chunk = [self._role(a, c)] if first else []
                if logprobs:
                    logprobs = b',"logprobs":' + logprobs
                chunk.append(
                    self._frame(a, self._choice(a, c, _delta(a, text, reasoning), logprobs=logprobs), rest)
                )
            else:
                chunk = [self._frame(a, self._choice(a, c, json_text(text), logprobs=logprobs), rest)]
        return [], chunk, [self._last(a, c)] if c.finished else []

    def _last(self, a: Answer, c: Choice) -> Payloads:
        a.created = int(time.time())
        finish = b'"%b"' % c.finish_reason.encode()
        usage = b',"usage":' + orjson.dumps(_usage(a, c))
        took = b',"timings":' + orjson.dumps(timings(c))
        if not a.request.chat:
            return [self._frame(a, self._choice(a, c, b'""', finish), took, usage)]
        if a.request.include_usage:
            return [self._frame(a, self._choice(a, c, b"", finish)), self._frame(a, b"", took, usage)]
        return [self._frame(a, self._choice(a, c, b"", finish), took)]

    def on_end(self, a: Answer) -> list[Payloads]:
        out: list[Payloads] = []
        for c in a.choices:
            if not c.job.output:  # an empty prompt: nothing was generated, usage comes at once
                out.append(self._last(a, c))
        return [*out, [b"[DONE]"]]

    def on_failure(self, message: str = "", status: int = 500) -> list[Payloads]:
        """An error in a stream that has begun; no [DONE] comes after it."""
        error = {
            "code": status,
            "message": message or "Context size has been exceeded.",
            "type": "server_error",
        }
        return [[orjson.dumps({"error": error})]]

    def whole(self, a: Answer) -> bytes:
        """The body of an answer that is not streamed."""
        r = a.request
        choices: list[dict[str, Any]] = []
        for c in a.choices:
            c.sent, c.held = 0, b""
            parts = c.reasoning_until
            reasoning = c.take(list(c.job.output[:parts])) if parts else ""
            text = c.take(list(c.job.output[parts:]))
            if r.chat:
                message = {"role": "assistant", "content": text}
                if reasoning:
                    message["reasoning_content"] = reasoning
                choice: dict[str, Any] = {
                    "finish_reason": c.finish_reason,
                    "index": c.index,
                    "message": message,
                }
                if r.logprobs is not None:
                    choice["logprobs"] = _logprobs(list(c.job.output), r.logprobs)
            else:
                logprobs = None if r.logprobs is None else _logprobs(list(c.job.output), r.logprobs)
                choice = {
                    "text": text,
                    "index": c.index,
                    "logprobs": logprobs,
                    "finish_reason": c.finish_reason,
                }
            choices.append(choice)
        usage = _usage(a, a.choices[0])
        usage["completion_tokens"] = a.output_tokens()
        usage["total_tokens"] = usage["prompt_tokens"] + a.output_tokens()
        body = {
            "choices": choices,
            "created": int(time.time()),
            "model": a.model,
            "system_fingerprint": BUILD,
            "object": "chat.completion" if r.chat else "text_completion",
            "usage": usage,
            "id": a.id,
            "timings": timings(a.choices[0]),
        }
        return orjson.dumps(body)


def _delta(a: Answer, text: str, reasoning: bool) -> bytes:
    if a.tools:
        return b'"tool_calls":[{"index":0,"function":{"arguments":%b}}]' % json_text(text)
    return (b'"reasoning_content":' if reasoning else b'"content":') + json_text(text)


def _usage(a: Answer, c: Choice) -> dict[str, Any]:
    n = len(a.request.prompt)
    return {
        "completion_tokens": c.sent,
        "prompt_tokens": n,
        "total_tokens": n + c.sent,
        "prompt_tokens_details": {"cached_tokens": c.job.cached},
    }


def timings(c: Choice) -> dict[str, Any]:
    """llama.cpp's own account of one answer, milliseconds; the time in the queue is in none of them.

    predicted_ms runs from the first token to the last, so the time per token divides by n - 1.
    """
    job = c.job
    prompt_n = len(job.prompt) - job.cached
    prompt_ms = 0.0
    if job.first is not None and job.started is not None:
        prompt_ms = round((job.first - job.started) * 1000, 3)
    predicted_ms = 0.0
    if job.first is not None and job.last is not None and c.sent:
        predicted_ms = max(0.001, round((job.last - job.first) * 1000, 3))
    gaps = c.sent - 1
    return {
        "cache_n": job.cached,
        "prompt_n": prompt_n,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / prompt_n if prompt_n else 0.0,
        "prompt_per_second": 1000 * prompt_n / prompt_ms if prompt_ms else 0.0,
        "predicted_n": c.sent,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / gaps if gaps > 0 else 0.0,
        "predicted_per_second": 1000 * gaps / predicted_ms if gaps > 0 else 0.0,
    }


def _logprobs(tokens: list[int], top: int) -> dict[str, Any]:
    entries = []
    for t in tokens:
        raw = token_bytes(t)
        entry = {"id": t, "token": raw.decode("utf-8", "replace"), "bytes": list(raw), "logprob": _LOGPROB}
        entries.append({**entry, "top_logprobs": [entry] * top})
    return {"content": entries}
