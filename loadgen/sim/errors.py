"""The error answers of both servers. Pure."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """The request is answered with an error; `body` is the JSON object."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


def vllm_error(status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> Refusal:
    """vLLM's error shape; a parameter at fault is named in the text as well."""
    return Refusal(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


def vllm_invalid(loc: str, kind: str, message: str, shown: str, extra: str = "") -> Refusal:
    """What vLLM says of a body that its schema does not allow."""
    what = f"'type': '{kind}', 'loc': '{loc}', 'msg': '{message}', 'input': {shown}{extra}"
    return vllm_error(400, f"1 validation error:\n  {{{what}}}", "Bad Request", loc)


def llama_error(status: int, message: str, kind: str = "invalid_request_error", **more: Any) -> Refusal:
    """llama-server's error shape for a request that it could not take."""
    return Refusal(status, {"error": {"code": status, "message": message, "type": kind, **more}})


def loading() -> Refusal:
    """llama-server while it loads its model."""
    return Refusal(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})


def fault_status(kind: str, status: int) -> Refusal:
    """An error of the server's own, 429, 500 or 503."""
    if status == 503 and kind == "llamacpp":
        return loading()
    text = {429: "Too many requests", 500: "Internal server error", 503: "Service unavailable"}[status]
    if kind == "vllm":
        name = {429: "RateLimitError", 500: "InternalServerError", 503: "ServiceUnavailableError"}[status]
        return Refusal(status, {"error": {"message": text, "type": name, "param": None, "code": status}})
    name = {429: "rate_limit_error", 500: "server_error", 503: "unavailable_error"}[status]
    return Refusal(status, {"error": {"code": status, "message": text, "type": name}})
