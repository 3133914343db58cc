"""How a vLLM server (0.32, its Python front end) answers, byte for byte where a client can see it. Pure."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import orjson

from loadgen.sim.request import GenRequest
from loadgen.sim.tokens import detokenize, token_bytes
from loadgen.sim.wire import MARK, REASONS, Answer, Choice, Payloads, TokenChunks, json_text, new_id

VERSION = "0.32.0"
FINGERPRINT = f"vllm-{VERSION}-simulated"
_LOGPROB = -0.25  # every token's, in this world


class VllmDialect:
    """Head at once, role chunk before the first token, an event a token with the finish in the last one."""

    kind = "vllm"
    keeps_connection = True
    head_at_once = True

    def head(
        self,
        status: int,
        *,
        stream: bool,
        close: bool,
        length: int | None = None,
        content_type: str | None = "application/json",
        allow: str | None = None,
    ) -> bytes:
        """A response head. `length` is the body's, for answers that are not streamed."""
        lines = [
            f"HTTP/1.1 {status} {REASONS[status]}",
            f"date: {formatdate(usegmt=True)}",
            "server: uvicorn",
        ]
        if allow:
            lines.append(f"allow: {allow}")
        if stream:
            content_type = "text/event-stream; charset=utf-8"
        else:
            lines.append(f"content-length: {length}")
        if content_type:
            lines.append(f"content-type: {content_type}")
        lines.append("vary: Origin")
        if close:
            lines.append("connection: close")
        if stream:
            lines.append("transfer-encoding: chunked")
        lines.append(f"{MARK}: vllm")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def new_id(self, request: GenRequest) -> str:
        prefix = "chatcmpl-" if request.chat else "cmpl-"
        if request.request_id:
            return prefix + request.request_id
        return new_id(prefix, 16, "0123456789abcdef")

    def _frame(self, a: Answer, choices: bytes, rest: bytes = b"") -> bytes:
        kind = b"chat.completion.chunk" if a.request.chat else b"text_completion"
        return b'{"id":%b,"object":"%b","created":%d,"model":%b,"choices":[%b]%b}' % (
            json_text(a.id),
            kind,
            a.created,
            json_text(a.model),
            choices,
            rest,
        )

    def _usage(self, a: Answer, output: int, *, details: bool) -> bytes:
        n = len(a.request.prompt)
        tail = b',"completion_tokens_details":null' if details else b""
        return b',"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d%b}' % (
            n,
            n + output,
            output,
            tail,
        )

    def on_slot(self, a: Answer, c: Choice) -> list[Payloads]:
        return []

    def on_progress(self, a: Answer, c: Choice, done: int, ms: float) -> list[Payloads]:
        return []

    def _roles(self, a: Answer) -> list[Payloads]:
        ids = orjson.dumps(a.request.prompt) if a.request.return_token_ids else b"null"
        usage = self._usage(a, 0, details=True) if a.request.continuous_usage else b""
        out: list[Payloads] = []
        for c in a.choices:
            c.started = True
            choice = (
                b'{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}'
                % c.index
            )
            out.append([self._frame(a, choice, usage + b',"prompt_token_ids":%b,"prompt_text":null' % ids)])
        return out

    def on_tokens(self, a: Answer, c: Choice, tokens: list[int]) -> TokenChunks:
        """The event of these further tokens of a choice; before the first one, every choice's role."""
        r = a.request
        first = not c.started
        roles = self._roles(a) if r.chat and first else []
        c.started = True
        reasoning = c.sent < c.reasoning_until
        text = c.take(tokens)
        last = c.finished
        finish = b'"%b"' % c.finish_reason.encode() if last else b"null"
        ids = orjson.dumps(tokens) if r.return_token_ids else b"null"
        logprobs = b"null" if r.logprobs is None else orjson.dumps(_logprobs(tokens, r.logprobs, r.chat))
        if r.chat:
            stop = b',"stop_reason":null' if last else b""
            choice = b'{"index":%d,"delta":{%b},"logprobs":%b,"finish_reason":%b%b,"token_ids":%b}' % (
                c.index,
                _delta(a, text, reasoning),
                logprobs,
                finish,
                stop,
                ids,
            )
        else:
            prompt_ids = orjson.dumps(r.prompt) if r.return_token_ids and first else b"null"
            choice = (
                b'{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b,"stop_reason":null,'
                b'"prompt_token_ids":%b,"token_ids":%b}'
                % (c.index, json_text(text), logprobs, finish, prompt_ids, ids)
            )
        rest = self._usage(a, c.sent, details=r.chat) if r.continuous_usage else b""
        if last and not r.include_usage and all(other.finished for other in a.choices):
            rest += b',"system_fingerprint":"%b"' % FINGERPRINT.encode()
        return roles, [self._frame(a, choice, rest)], []

    def on_end(self, a: Answer) -> list[Payloads]:
        out: list[Payloads] = []
        if a.request.include_usage:
            usage = self._usage(a, a.output_tokens(), details=False)
            out.append([self._frame(a, b"", usage + b',"system_fingerprint":"%b"' % FINGERPRINT.encode())])
        out.append([b"[DONE]"])
        return out

    def on_failure(self, message: str = "", status: int = 500) -> list[Payloads]:
        """An error in a stream that has begun; vLLM says [DONE] after it."""
        text = message or "EngineCore encountered an issue. See stack trace (above) for the root cause."
        error = {"message": text, "type": "InternalServerError", "param": None, "code": status}
        body = orjson.dumps({"error": error}).replace(b'":', b'": ').replace(b',"', b', "')
        return [[body], [b"[DONE]"]]

    def whole(self, a: Answer) -> bytes:
        """The body of an answer that is not streamed."""
        r = a.request
        choices: list[dict[str, Any]] = []
        for c in a.choices:
            c.sent, c.held = 0, b""
            parts = c.reasoning_until
            reasoning = c.take(list(c.job.output[:parts])) if parts else None
            text = c.take(list(c.job.output[parts:]))
            ids = list(c.job.output) if r.return_token_ids else None
            logprobs = None if r.logprobs is None else _logprobs(list(c.job.output), r.logprobs, r.chat)
            end = {
                "logprobs": logprobs,
                "finish_reason": c.finish_reason,
                "stop_reason": None,
                "token_ids": ids,
            }
            if r.chat:
                message = {
                    "role": "assistant",
                    "content": text,
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "reasoning": reasoning,
                }
                choices.append({"index": c.index, "message": message, **end, "routed_experts": None})
            else:
                more = {"prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
                choices.append({"index": c.index, "text": text, **end, **more})
        n, out = len(r.prompt), a.output_tokens()
        body: dict[str, Any] = {
            "id": a.id,
            "object": "chat.completion" if r.chat else "text_completion",
            "created": a.created,
            "model": a.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": {
                "prompt_tokens": n,
                "total_tokens": n + out,
                "completion_tokens": out,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
        }
        if r.chat:
            ids = list(r.prompt) if r.return_token_ids else None
            body.update(prompt_logprobs=None, prompt_token_ids=ids, prompt_text=None)
        body.update(kv_transfer_params=None, ec_transfer_params=None, metrics=None)
        return orjson.dumps(body)


def _delta(a: Answer, text: str, reasoning: bool) -> bytes:
    if a.tools:
        return b'"tool_calls":[{"index":0,"function":{"arguments":%b}}]' % json_text(text)
    return (b'"reasoning":' if reasoning else b'"content":') + json_text(text)


def _logprobs(tokens: list[int], top: int, chat: bool) -> dict[str, Any]:
    entries = []
    for t in tokens:
        raw = token_bytes(t)
        entry = {"token": raw.decode("utf-8", "replace"), "logprob": _LOGPROB, "bytes": list(raw)}
        entries.append({**entry, "top_logprobs": [entry] * top})
    if chat:
        return {"content": entries}
    texts = [e["token"] for e in entries]
    return {
        "text_offset": [len(detokenize(tokens[:i])) for i in range(len(tokens))],
        "token_logprobs": [_LOGPROB] * len(tokens),
        "tokens": texts,
        "top_logprobs": [{x: _LOGPROB} for x in texts],
    }
