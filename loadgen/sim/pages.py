"""The pages of the simulated servers beside the completions: models, props, slots, tokenize, health ... Pure.

`get` and `post` give a Page or None (no such page here); what they need to know comes in a `View`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from loadgen.sim.llamacpp import BUILD
from loadgen.sim.metrics import Counters, LlamaGauges, llama_metrics, vllm_metrics
from loadgen.sim.model import Job, Scheduler
from loadgen.sim.request import Refusal, llama_error, load_json, vllm_error
from loadgen.sim.tokens import chat_prompt, detokenize, token_bytes, tokenize
from loadgen.sim.vllm import VERSION
from loadgen.sim.wire import new_id

N_VOCAB = 151_936
_SAMPLING: dict[str, Any] = {
    "seed": 4294967295, "temperature": 0.800000011920929, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0,
    "top_k": 40, "top_p": 0.949999988079071, "min_p": 0.05000000074505806, "top_n_sigma": -1.0,
    "xtc_probability": 0.0, "xtc_threshold": 0.10000000149011612, "typical_p": 1.0, "repeat_last_n": 64,
    "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "dry_multiplier": 0.0,
    "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64, "mirostat": 0, "mirostat_tau": 5.0,
    "mirostat_eta": 0.10000000149011612, "adaptive_target": -1.0, "adaptive_decay": 0.8999999761581421,
    "max_tokens": -1, "n_predict": -1, "n_keep": 0, "n_discard": 0, "ignore_eos": False, "stream": False,
    "n_probs": 0, "min_keep": 0, "chat_format": "Content-only", "reasoning_format": "none",
    "reasoning_in_content": False, "generation_prompt": "",
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    "speculative.types": "none", "timings_per_token": False, "post_sampling_probs": False,
    "backend_sampling": False, "lora": [],
}  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n"
    "...<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass
class View:
    """What the pages tell of."""

    scheduler: Scheduler
    model: str
    preset: str
    speed: float
    started: int  # wall seconds
    counters: Counters = field(default_factory=Counters)
    gauges: LlamaGauges = field(default_factory=LlamaGauges)
    load: int = 0  # requests being answered

    @property
    def simulated(self) -> dict[str, Any]:
        return {"preset": self.preset, "speed": self.speed}


@dataclass(frozen=True)
class Page:
    body: bytes
    content_type: str | None = None  # None: the server's usual JSON type
    status: int = 200
    empty: bool = False  # vLLM's /health: neither body nor content type
    process_start: bool = False


def _json(data: Any) -> Page:
    return Page(orjson.dumps(data))


def get(kind: str, path: str, view: View) -> Page | None:
    """The page at a path."""
    return _VLLM_GET[path](view) if kind == "vllm" and path in _VLLM_GET else (
        _LLAMA_GET[path](view) if kind != "vllm" and path in _LLAMA_GET else None
    )


def post(kind: str, path: str, data: bytes, view: View) -> Page | None:
    """The answer to a posted page (not the completions). Raises Refusal."""
    pages = _VLLM_POST if kind == "vllm" else _LLAMA_POST
    if path not in pages:
        return None
    return pages[path](load_json(kind, data), view)


def paths(kind: str, method: str) -> frozenset[str]:
    return frozenset({("vllm", "GET"): _VLLM_GET, ("vllm", "POST"): _VLLM_POST}.get((kind, method), {}))


# vLLM

def _vllm_models(v: View) -> Page:
    permission = {
        "id": new_id("modelperm-", 16, "0123456789abcdef"), "object": "model_permission", "created": v.started,
        "allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True,
        "allow_search_indices": False, "allow_view": True, "allow_fine_tuning": False, "organization": "*",
        "group": None, "is_blocking": False,
    }  # fmt: skip
    model = {
        "id": v.model, "object": "model", "created": v.started, "owned_by": "vllm", "root": v.model,
        "parent": None, "max_model_len": v.scheduler.constants.context, "permission": [permission],
    }  # fmt: skip
    return _json({"object": "list", "data": [model]})


def _vllm_tokenize(body: dict[str, Any], v: View) -> Page:
    _known_model(body, v)
    if "messages" in body:
        generate = body.get("add_generation_prompt", True) is not False
        ids = tokenize(chat_prompt(body["messages"], generate=generate), special=True)
    elif "prompt" in body:
        ids = tokenize(str(body["prompt"]), special=True)
    else:
        raise vllm_error(400, "Either prompt or messages must be provided.")
    strs = [_byte_level(token_bytes(t)) for t in ids] if body.get("return_token_strs") else None
    data = {"count": len(ids), "max_model_len": v.scheduler.constants.context, "tokens": ids, "token_strs": strs}
    return _json(data)


def _byte_level(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace(" ", "Ġ").replace("\n", "Ċ")


def _vllm_detokenize(body: dict[str, Any], v: View) -> Page:
    _known_model(body, v)
    return _json({"prompt": detokenize(_tokens(body))})


def _known_model(body: dict[str, Any], v: View) -> None:
    asked = body.get("model")
    if asked and asked != v.model:
        text = f"The model `{asked}` does not exist. Valid aliases: {v.model}."
        raise vllm_error(404, text, "NotFoundError", "model")


def _tokens(body: dict[str, Any]) -> list[int]:
    tokens = body.get("tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(t, int) for t in tokens):
        raise Refusal(400, {"error": {"code": 400, "message": "tokens must be integers", "type": "invalid_request_error"}})
    return tokens


_VLLM_GET = {
    "/health": lambda v: Page(b"", empty=True),
    "/ping": lambda v: Page(b"", empty=True),
    "/load": lambda v: _json({"server_load": v.load}),
    "/version": lambda v: _json({"version": VERSION, "simulated": v.simulated}),
    "/v1/models": _vllm_models,
    "/metrics": lambda v: Page(
        vllm_metrics(v.scheduler, v.counters, v.model).encode(), "text/plain; version=1.0.0; charset=utf-8"
    ),
}
_VLLM_POST = {"/tokenize": _vllm_tokenize, "/detokenize": _vllm_detokenize, "/ping": lambda b, v: Page(b"", empty=True)}


# llama.cpp

def _llama_models(v: View) -> Page:
    c = v.scheduler.constants
    old = {
        "name": v.model, "model": v.model, "modified_at": "", "size": "", "digest": "", "type": "model",
        "description": "", "tags": [""], "capabilities": ["completion"], "parameters": "",
        "details": {"parent_model": "", "format": "gguf", "family": "", "families": [""], "parameter_size": "",
                    "quantization_level": ""},
    }  # fmt: skip
    new = {
        "id": v.model, "aliases": [v.model], "tags": [], "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]}, "created": v.started,
        "owned_by": "llamacpp",
        "meta": {"vocab_type": 2, "n_vocab": N_VOCAB, "n_ctx": c.context, "n_ctx_train": 40960, "n_embd": 4096,
                 "n_params": 8190735360, "size": 5027783488, "ftype": "Q4_K - Medium"},
    }  # fmt: skip
    return _json({"models": [old], "object": "list", "data": [new]})


def _llama_props(v: View) -> Page:
    c = v.scheduler.constants
    caps = dict.fromkeys(
        ("supports_object_arguments", "supports_parallel_tool_calls", "supports_preserve_reasoning",
         "supports_reasoning_effort", "supports_string_content", "supports_system_role", "supports_tool_calls",
         "supports_tools", "supports_typed_content"), False,
    )  # fmt: skip
    caps["supports_string_content"] = caps["supports_system_role"] = True
    return _json({
        "default_generation_settings": {"params": _SAMPLING, "n_ctx": c.context}, "total_slots": c.slots,
        "model_alias": v.model, "model_ftype": "Q4_K - Medium", "model_path": f"models/{v.model}",
        "modalities": {"vision": False, "video": False, "audio": False}, "media_marker": "<__media__>",
        "endpoint_slots": True, "endpoint_props": True, "endpoint_metrics": True, "ui": True, "ui_settings": {},
        "chat_template": TEMPLATE, "chat_template_caps": caps, "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>", "build_info": BUILD, "is_sleeping": False, "cors_proxy_enabled": False,
        "simulated": v.simulated,
    })  # fmt: skip


def _llama_slots(v: View) -> Page:
    c = v.scheduler.constants
    busy: dict[int, Job] = {j.held.slot: j for j in v.scheduler.running if j.held is not None}
    slots = []
    for i in range(c.slots):
        job = busy.get(i)
        n = len(job.prompt) if job else 0
        left = len(job.output) - job.sent if job else -1
        params = {**_SAMPLING, "max_tokens": len(job.output), "n_predict": len(job.output)} if job else _SAMPLING
        slots.append({
            "id": i, "n_ctx": c.context, "speculative": False, "is_processing": job is not None,
            "id_task": i if job else -1, "n_prompt_tokens": n,
            "n_prompt_tokens_processed": n - job.todo if job else 0,
            "n_prompt_tokens_cache": job.cached if job else 0, "params": params,
            "next_token": [{"has_next_token": job is not None, "has_new_line": False, "n_remain": left,
                            "n_decoded": job.sent if job else 0}],
        })  # fmt: skip
    return _json(slots)


def _llama_tokenize(body: dict[str, Any], v: View) -> Page:
    special = body.get("parse_special", True) is not False
    content = body.get("content", "")
    ids = tokenize(content if isinstance(content, str) else "", special=special)
    if body.get("with_pieces"):
        return _json({"tokens": [{"id": t, "piece": _piece(t)} for t in ids]})
    return _json({"tokens": ids})


def _piece(token: int) -> str | list[int]:
    raw = token_bytes(token)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return list(raw)


def _llama_template(body: dict[str, Any], v: View) -> Page:
    if "messages" not in body:
        raise llama_error(400, "'messages' is required")
    generate = body.get("add_generation_prompt", True) is not False
    return _json({"prompt": chat_prompt(body["messages"], generate=generate)})


_LLAMA_GET = {
    "/health": lambda v: _json({"status": "ok"}),
    "/v1/health": lambda v: _json({"status": "ok"}),
    "/models": _llama_models,
    "/v1/models": _llama_models,
    "/props": _llama_props,
    "/slots": _llama_slots,
    "/metrics": lambda v: Page(
        llama_metrics(v.scheduler, v.gauges).encode(), "text/plain; version=0.0.4", process_start=True
    ),
}
_LLAMA_POST = {
    "/tokenize": _llama_tokenize,
    "/detokenize": lambda b, v: _json({"content": detokenize(_tokens(b))}),
    "/apply-template": _llama_template,
    "/props": lambda b, v: _json({"success": True}),
}
