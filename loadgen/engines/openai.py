"""OpenAIEngine: any OpenAI-compatible server, and the common part of the others."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Literal

import orjson

from loadgen.config import EngineSpec, Settings
from loadgen.workload.prompt import Prompt

from .chunk import Chunk
from .control import Control, Reply
from .decode import count, decode_chunk
from .errors import EngineError, clean, error_in, http_error_text
from .info import CacheCounters, EngineInfo, Health
from .metricnames import engine_fields

Counting = Literal["tokenizer", "generation", "none"]

SIMULATED_HEADER = "x-loadgen-simulated"
NAMES = {"vllm": "vLLM", "llamacpp": "llama.cpp", "openai": "OpenAI-compatible"}
COUNT_S = 60.0


class OpenAIEngine:
    """What one server speaks: request bodies and events (pure), and its control endpoints (short calls).

    `path` is the completion endpoint, relative to `spec.url`. `model` is the one named in the settings, else
    what identify() found. Control calls raise EngineError with one clear sentence, nothing else.
    """

    kind: ClassVar[str] = "openai"
    _health_path: ClassVar[str] = "/v1/models"

    def __init__(self, spec: EngineSpec, settings: Settings) -> None:
        self.spec = spec
        self.settings = settings
        self.name = spec.name
        self.model = spec.model
        self.counting: Counting = "generation"
        """How count_tokens counts: `tokenizer` (exact, milliseconds), `generation` (exact, by a whole request
        for one token: as slow as its prefill, and perhaps paid for), `none` (the server tells no counts)."""
        self._control = Control(spec, connect_s=min(5.0, settings.timeouts.connect_s))

    # Requests and events: pure.

    @property
    def chat(self) -> bool:
        return self.settings.api == "chat"

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.chat else "/v1/completions"

    def request_body(
        self, prompt: Prompt, model: str | None, *, output_tokens: int, stream: bool = True
    ) -> bytes:
        """The JSON body that asks for exactly `output_tokens` tokens; equal arguments give equal bytes.

        `extra_body` of the engine's settings is merged last, nested objects key by key.
        """
        body: dict[str, Any] = {} if model is None else {"model": model}
        if self.chat:
            body["messages"] = prompt.as_messages()
        else:
            body["prompt"] = prompt.text
        body["max_tokens"] = output_tokens
        body["temperature"] = self.settings.temperature
        body["seed"] = self.settings.seed
        body["stream"] = stream
        if stream:  # vLLM refuses stream_options without stream
            body["stream_options"] = {"include_usage": True}
        body.update(self._own_fields(output_tokens))
        merge(body, self.spec.extra_body)
        if "max_completion_tokens" in self.spec.extra_body and "max_tokens" not in self.spec.extra_body:
            del body["max_tokens"]  # newer OpenAI models refuse both together
        return orjson.dumps(body)

    def _own_fields(self, output_tokens: int) -> dict[str, Any]:
        """What only this kind of server knows: pinned output and thinking."""
        return {}

    def decode(self, data: bytes) -> Chunk:
        """What one event says (not `[DONE]`); ValueError if it is malformed."""
        return decode_chunk(data)

    def http_error_text(self, status: int, body: bytes) -> str:
        return http_error_text(status, self._control.blank(body))

    def headers(self) -> dict[str, str]:
        """Authorization and the engine's own headers; EngineError if the key's variable is not set."""
        return self._control.headers()

    def at(self, replica: int) -> OpenAIEngine:
        """The engine at one of its addresses, with control calls of its own; `close` it after those."""
        one = copy(self)
        one.spec = self.spec.at(replica)
        one._control = Control(one.spec, connect_s=min(5.0, self.settings.timeouts.connect_s))
        return one

    # Control calls.

    def close(self) -> None:
        self._control.close()

    def health(self) -> Health:
        """Is it there, and ready? Raises nothing: for polling."""
        try:
            reply = self._control.get(self._health_path)
            if reply.status == 404 and self._health_path != "/v1/models":
                reply = self._control.get("/v1/models")  # a gateway in front that passes /v1 alone
            if reply.ok or self._lists_no_models(reply):
                return Health("ready")
            return self._not_ready(reply)
        except EngineError as e:
            state: Literal["unreachable", "error"] = "unreachable" if e.reason == "unreachable" else "error"
            return Health(state, str(e), e.reason)

    def _not_ready(self, reply: Reply) -> Health:
        if reply.status == 503:
            text = (
                f"engine {self.name}: {self.spec.url} is not ready yet ({reply.text()}): wait and try again"
            )
            return Health("loading", text, "loading")
        raise self._refused(reply, "/v1/models" if reply.status == 404 else self._health_path)

    def identify(self) -> EngineInfo:
        """What the endpoint is; sets `model` unless the settings name one. Load-free, a few short calls."""
        reply = self._control.get("/v1/models")
        info = EngineInfo(self.name, self.kind, self.spec.url, server=NAMES[self.kind])
        info.simulated = SIMULATED_HEADER in reply.headers
        rows = self._model_rows(reply, info)
        self._check_kind(reply, rows)
        info.models = tuple(clean(str(row["id"]), 200) for row in rows)
        info.model = self.spec.model or self._first_model(rows)
        row = next((row for row in rows if row["id"] == info.model), rows[0] if rows else {})
        meta = row.get("meta")
        info.context = count(row.get("max_model_len"))  # vLLM
        if not info.context and isinstance(meta, dict):
            info.context = count(meta.get("n_ctx"))  # llama.cpp
        if self.kind == "openai" and reply.headers.get("server"):
            info.server = clean(reply.headers["server"], 80)
        self._identify_more(info, row)
        self.model = info.model
        return info

    def _model_rows(self, reply: Reply, info: EngineInfo) -> list[dict[str, Any]]:
        if not reply.ok:
            if self._lists_no_models(reply):
                info.notes.append("the server has no /v1/models, the model's name is taken on trust")
                return []
            raise self._refused(reply, "/v1/models")
        data = reply.json()
        rows = data.get("data") if isinstance(data, dict) else None
        if not isinstance(rows, list):
            raise self._control.error(
                f"{self.spec.url} is no OpenAI-compatible server: GET /v1/models gave no list of models "
                f"({clean(reply.body[:200].decode('utf-8', 'replace'), 80) or 'nothing'})",
                "answer",
            )
        return [row for row in rows[:1000] if isinstance(row, dict) and isinstance(row.get("id"), str)]

    def _lists_no_models(self, reply: Reply) -> bool:
        """No /v1/models is no obstacle where the settings name the model."""
        return self.kind == "openai" and reply.status == 404 and self.spec.model is not None

    def _check_kind(self, reply: Reply, rows: list[dict[str, Any]]) -> None:
        found = detect_kind(reply.headers, rows)
        if self.kind != "openai" and found and found != self.kind:
            raise self._control.error(
                f"{self.spec.url} is a {NAMES[found]} server, not {NAMES[self.kind]}: "
                f"write --engine {self.name}={found}:{self.spec.url}",
                "wrong_kind",
            )

    def _first_model(self, rows: list[dict[str, Any]]) -> str | None:
        # vLLM lists LoRA adapters too; they name their parent.
        base = [row for row in rows if not row.get("parent")] or rows
        return str(base[0]["id"]) if base else None

    def _identify_more(self, info: EngineInfo, row: Mapping[str, Any]) -> None:
        """Fills in what only this kind of server tells."""

    def count_tokens(self, prompt: Prompt) -> int | None:
        """The prompt's length as `usage.prompt_tokens` will say, chat template included.

        None if the server tells no counts. `counting` says how it was found and what it costs.
        """
        if self.counting == "tokenizer":
            found = self._count_by_tokenizer(prompt)
            if found is not None:
                return found
            self.counting = "generation"
        if self.counting == "generation":
            body = self.request_body(prompt, self.model, output_tokens=1, stream=False)
            reply = self._control.post(self.path, body, read_s=self.settings.timeouts.first_token_s)
            if not reply.ok:
                raise self._refused(reply, self.path)
            data = reply.json()
            if (said := error_in(data)) is not None:
                raise self._control.error(f"a request for one token failed: {said}", "answer")
            usage = data.get("usage") if isinstance(data, dict) else None
            tokens = count(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
            if tokens is not None:
                return tokens
            self.counting = "none"
        return None

    def _count_by_tokenizer(self, prompt: Prompt) -> int | None:
        """By the server's tokenizer endpoint; None if it has none."""
        return None

    def metrics_text(self) -> str | None:
        """The server's /metrics in Prometheus' text format; None if it has none."""
        reply = self._control.get("/metrics")
        return reply.body.decode("utf-8", "replace") if reply.ok else None

    def cache_counters(self, text: str | None = None) -> CacheCounters | None:
        """The prefix cache's counters; None if the server does not tell. `text` is a /metrics text that
        somebody else has fetched: while one is scraping the server, nobody else should. Of an engine with
        replicas, the sum over all of them."""
        if self.spec.replicas:
            return self._all_cache_counters()
        fields = self._fields(text)
        queried, hit = fields.get("cache_queries_total"), fields.get("cache_hits_total")
        return None if queried is None or hit is None else CacheCounters(int(queried), int(hit))

    def _all_cache_counters(self) -> CacheCounters | None:
        queried = hit = 0
        for k in range(len(self.spec.urls)):
            one = self.at(k)
            try:
                found = one.cache_counters()
            finally:
                one.close()
            if found is None:
                return None
            queried, hit = queried + found.queried, hit + found.hit
        return CacheCounters(queried, hit)

    def queue_depth(self, text: str | None = None) -> tuple[int, int] | None:
        """(running, waiting) requests as the server counts them; None if it does not tell. `text` as in
        cache_counters."""
        fields = self._fields(text)
        running, waiting = fields.get("running"), fields.get("waiting")
        return None if running is None or waiting is None else (int(running), int(waiting))

    def _fields(self, text: str | None) -> dict[str, float]:
        if text is None and self.kind != "openai":
            text = self.metrics_text()
        return engine_fields(text, self.spec.model) if text else {}

    # Sentences.

    @staticmethod
    def _lacks_endpoint(reply: Reply) -> bool:
        """Is this the answer of a server without this path? (404 is also said of unknown models.)"""
        return reply.status in (405, 501) or (reply.status == 404 and "model" not in reply.text().lower())

    def _refused(self, reply: Reply, path: str) -> EngineError:
        """The error for a status that is not 200."""
        url, said = self.spec.url, reply.text()
        if reply.status in (401, 403):
            if self.spec.api_key_env:
                text = f"{url} refuses the key in {self.spec.api_key_env} ({said})"
            else:
                text = (
                    f"{url} wants an API key ({said}): put it into an environment variable "
                    f"and name that in api_key_env, in [engines.{self.name}] of loadgen.toml"
                )
            return self._control.error(text, "auth")
        if path.startswith("/v1/") and reply.status == 404 and self._lacks_endpoint(reply):
            return self._control.error(
                f"{url} has no {path} ({said}): is this the server's address, "
                "without /v1 and what follows it?",
                "missing",
            )
        if reply.status == 503:
            return self._control.error(f"{url} is not ready yet ({said}): wait and try again", "loading")
        reason = "missing" if reply.status == 404 else "answer"
        return self._control.error(f"{url}{path} answers {said}", reason)


def detect_kind(headers: Mapping[str, str], rows: list[dict[str, Any]]) -> str | None:
    """Which server this is, by the response head and /v1/models; None if nothing tells."""
    if headers.get(SIMULATED_HEADER) in ("vllm", "llamacpp"):
        return headers[SIMULATED_HEADER]
    owners = {row.get("owned_by") for row in rows}
    if "llamacpp" in owners or headers.get("server", "").lower().startswith("llama.cpp"):
        return "llamacpp"
    return "vllm" if "vllm" in owners else None


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            into[key] = dict(into[key])
            merge(into[key], value)
        else:
            into[key] = value
