"""LlamaCppEngine: llama.cpp's llama-server."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from loadgen.config import EngineSpec, Settings
from loadgen.workload.prompt import Prompt

from .decode import count
from .errors import clean
from .info import EngineInfo
from .openai import COUNT_S, OpenAIEngine


class LlamaCppEngine(OpenAIEngine):
    kind: ClassVar[str] = "llamacpp"
    _health_path: ClassVar[str] = "/health"

    def __init__(self, spec: EngineSpec, settings: Settings) -> None:
        super().__init__(spec, settings)
        self.counting = "tokenizer"

    def _own_fields(self, output_tokens: int) -> dict[str, Any]:
        # ignore_eos forbids every end-of-generation token, so max_tokens alone ends an answer.
        fields: dict[str, Any] = {"ignore_eos": True}
        if self.chat:
            fields["chat_template_kwargs"] = {"enable_thinking": self.settings.thinking == "on"}
        return fields

    def _identify_more(self, info: EngineInfo, row: Mapping[str, Any]) -> None:
        reply = self._control.get("/props")
        if reply.status in (401, 403):
            raise self._refused(reply, "/props")
        props = reply.json() if reply.ok else None
        if not isinstance(props, dict):
            info.notes.append(f"GET /props gave {reply.text()}: slots and context are not known for sure")
            return
        info.simulated = info.simulated or "x-loadgen-simulated" in reply.headers
        if isinstance(props.get("build_info"), str):
            info.version = clean(props["build_info"], 80)
        info.slots = count(props.get("total_slots"))
        defaults = props.get("default_generation_settings")
        context = count(defaults.get("n_ctx")) if isinstance(defaults, dict) else None
        info.context = context or info.context
        for key in ("model_path", "model_alias", "model_ftype"):
            if isinstance(props.get(key), str):
                info.facts[key] = clean(props[key], 300)
        template = props.get("chat_template")
        if isinstance(template, str):
            info.facts["chat_template_sha256"] = hashlib.sha256(template.encode()).hexdigest()
        meta = row.get("meta")
        if isinstance(meta, dict):
            for key in ("n_params", "size", "n_ctx_train", "n_vocab", "ftype"):
                value = meta.get(key)
                if isinstance(value, int | float | str):
                    info.facts[key] = clean(value, 80) if isinstance(value, str) else value
        if info.slots == 1:
            info.total_context = info.context
        # With several slots the sum is not told: they share one cache, or have one each (-np).

    def _count_by_tokenizer(self, prompt: Prompt) -> int | None:
        text = self._template(prompt) if self.chat else prompt.text
        if text is None:
            return None
        # As the completion endpoints do: special tokens of the text are parsed, a BOS is put in front if the
        # model wants one.
        body = orjson.dumps({"content": text, "add_special": True, "parse_special": True})
        reply = self._control.post("/tokenize", body, read_s=COUNT_S)
        if self._lacks_endpoint(reply):
            return None
        if not reply.ok:
            raise self._refused(reply, "/tokenize")
        data = reply.json()
        tokens = data.get("tokens") if isinstance(data, dict) else None
        return len(tokens) if isinstance(tokens, list) else None

    def _template(self, prompt: Prompt) -> str | None:
        """The text that the server's chat template makes of the prompt; None if it does not tell."""
        body = self.request_body(prompt, self.model, output_tokens=1, stream=False)
        reply = self._control.post("/apply-template", body, read_s=COUNT_S)
        if self._lacks_endpoint(reply):
            return None
        if not reply.ok:
            raise self._refused(reply, "/apply-template")
        data = reply.json()
        text = data.get("prompt") if isinstance(data, dict) else None
        return text if isinstance(text, str) else None
