"""What servers say when something is wrong, as one bounded sentence."""

from __future__ import annotations

from typing import Any

import orjson

MAX_TEXT = 400


class EngineError(Exception):
    """An engine cannot be used: the text is one clear sentence with what to do next.

    `reason` is one of unreachable, loading, auth, missing (no such path), wrong_kind, model, context, answer
    (it answers, but not as it should) and config (the settings of the engine are wrong).
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """Server-sent text on one line, without control characters, at most `limit` characters long."""
    text = text[: 4 * limit]
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def error_in(body: Any) -> str | None:
    """The error that a decoded JSON object reports, or None if it reports none.

    Known shapes: `{"error": {"message", "type", "code"}}` (OpenAI, vLLM, llama.cpp), `{"error": "text"}`,
    `{"object": "error", "message": ...}` (older vLLM). The code may be a number or a text.
    """
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if error is None or error is False or error == "":
        if body.get("object") != "error":
            return None
        error = body
    if isinstance(error, str):
        return clean(error)
    if not isinstance(error, dict):
        return clean(_dump(error))
    message = error.get("message")
    if not message or not isinstance(message, str):
        return clean(_dump(error))
    tags = [str(v) for v in (error.get("type"), error.get("code")) if isinstance(v, str | int) and v != ""]
    return clean(message) + (f" ({clean(', '.join(tags), 80)})" if tags else "")


def http_error_text(status: int, body: bytes) -> str:
    """`HTTP 400: what the server said`, from any body: JSON of any shape, plain text, HTML, nothing."""
    said = _body_text(body)
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _body_text(body: bytes) -> str:
    try:
        data = orjson.loads(body)
    except ValueError:
        return clean(body[: 4 * MAX_TEXT].decode("utf-8", "replace"))
    found = error_in(data)
    if found is not None:
        return found
    if isinstance(data, dict):
        for key in ("detail", "message"):  # FastAPI; gateways
            if isinstance(data.get(key), str):
                return clean(data[key])
    return clean(_dump(data))


def _dump(data: Any) -> str:
    try:
        return orjson.dumps(data).decode()
    except TypeError:  # nested too deeply, or a number beyond 64 bits
        return "an error that cannot be shown"
