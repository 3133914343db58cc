"""VllmEngine: vLLM's own OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from loadgen.config import EngineSpec, Settings
from loadgen.workload.prompt import Prompt

from .control import Reply
from .decode import count
from .errors import clean
from .info import EngineInfo, Health
from .metricstext import labels
from .openai import COUNT_S, OpenAIEngine


class VllmEngine(OpenAIEngine):
    kind: ClassVar[str] = "vllm"
    _health_path: ClassVar[str] = "/health"

    def __init__(self, spec: EngineSpec, settings: Settings) -> None:
        super().__init__(spec, settings)
        self.counting = "tokenizer"

    def _own_fields(self, output_tokens: int) -> dict[str, Any]:
        # min_tokens too: ignore_eos alone leaves stop token ids of a model's generation config in force in
        # some versions.
        fields: dict[str, Any] = {"ignore_eos": True, "min_tokens": output_tokens}
        if self.chat:
            fields["chat_template_kwargs"] = {"enable_thinking": self.settings.thinking == "on"}
        return fields

    def _not_ready(self, reply: Reply) -> Health:
        # While vLLM loads it does not listen; its /health says 503 when its engine process has died.
        if reply.status == 503 and "loading" not in reply.text().lower():
            text = f"engine {self.name}: {self.spec.url}/health answers {reply.text()}: "
            return Health(
                "error", text + "its engine process has stopped; look at the server's log", "answer"
            )
        return super()._not_ready(reply)

    def _identify_more(self, info: EngineInfo, row: Mapping[str, Any]) -> None:
        version = self._control.get("/version").json()
        if isinstance(version, dict) and isinstance(version.get("version"), str):
            info.version = clean(version["version"], 80)
        elif row.get("owned_by") != "vllm":
            info.notes.append("nothing in its answers says that it is vLLM")
        if isinstance(row.get("root"), str):
            info.facts["model_root"] = clean(row["root"], 300)
        text = self.metrics_text() or ""
        cache = labels(text, "vllm:cache_config_info")
        if "enable_prefix_caching" in cache:
            info.prefix_cache = cache["enable_prefix_caching"] == "True"
        size = cache.get("kv_cache_size_tokens", "")
        if size.isdigit():
            info.total_context = int(size)
        elif cache.get("num_gpu_blocks", "").isdigit() and cache.get("block_size", "").isdigit():
            info.total_context = int(cache["num_gpu_blocks"]) * int(cache["block_size"])
        for key in ("gpu_memory_utilization", "cache_dtype", "block_size", "num_gpu_blocks"):
            if key in cache:
                info.facts[key] = clean(cache[key], 40)

    def _count_by_tokenizer(self, prompt: Prompt) -> int | None:
        body: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if self.chat:
            body["messages"] = prompt.as_messages()
            sent = orjson.loads(self.request_body(prompt, self.model, output_tokens=1))
            for key in ("chat_template_kwargs", "chat_template", "tools"):  # what shapes the template's text
                if key in sent:
                    body[key] = sent[key]
        else:
            body["prompt"] = prompt.text
        reply = self._control.post("/tokenize", orjson.dumps(body), read_s=COUNT_S)
        if self._lacks_endpoint(reply):
            return None
        if not reply.ok:
            raise self._refused(reply, "/tokenize")
        data = reply.json()
        return count(data.get("count")) if isinstance(data, dict) else None
