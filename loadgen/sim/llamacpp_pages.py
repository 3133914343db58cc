"""The pages of llama-server beside the completions. Pure."""

from __future__ import annotations

from typing import Any

from loadgen.sim.errors import llama_error
from loadgen.sim.llamacpp import BUILD
from loadgen.sim.llamacpp_metrics import llama_metrics
from loadgen.sim.model import Job
from loadgen.sim.pages import Get, Page, Post, View, json_page, token_list
from loadgen.sim.tokens import SYSTEM, chat_prompt, detokenize, token_bytes, tokenize

N_VOCAB = 151_936
_SAMPLING: dict[str, Any] = {
    "seed": 4294967295,
    "temperature": 0.800000011920929,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.949999988079071,
    "min_p": 0.05000000074505806,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.10000000149011612,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.10000000149011612,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.8999999761581421,
    "max_tokens": -1,
    "n_predict": -1,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "n_probs": 0,
    "min_keep": 0,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    "speculative.types": "none",
    "timings_per_token": False,
    "post_sampling_probs": False,
    "backend_sampling": False,
    "lora": [],
}
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\n" + SYSTEM + "<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def _llama_models(v: View) -> Page:
    c = v.scheduler.constants
    old = {
        "name": v.model,
        "model": v.model,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }
    new = {
        "id": v.model,
        "aliases": [v.model],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": v.started,
        "owned_by": "llamacpp",
        "meta": {
            "vocab_type": 2,
            "n_vocab": N_VOCAB,
            "n_ctx": c.context,
            "n_ctx_train": 40960,
            "n_embd": 4096,
            "n_params": 8190735360,
            "size": 5027783488,
            "ftype": "Q4_K - Medium",
        },
    }
    return json_page({"models": [old], "object": "list", "data": [new]})


def _llama_props(v: View) -> Page:
    c = v.scheduler.constants
    caps = dict.fromkeys(
        (
            "supports_object_arguments",
            "supports_parallel_tool_calls",
            "supports_preserve_reasoning",
            "supports_reasoning_effort",
            "supports_string_content",
            "supports_system_role",
            "supports_tool_calls",
            "supports_tools",
            "supports_typed_content",
        ),
        False,
    )
    caps["supports_string_content"] = caps["supports_system_role"] = True
    return json_page(
        {
            "default_generation_settings": {"params": _SAMPLING, "n_ctx": c.context},
            "total_slots": c.slots,
            "model_alias": v.model,
            "model_ftype": "Q4_K - Medium",
            "model_path": f"models/{v.model}",
            "modalities": {"vision": False, "video": False, "audio": False},
            "media_marker": "<__media__>",
            "endpoint_slots": True,
            "endpoint_props": True,
            "endpoint_metrics": True,
            "ui": True,
            "ui_settings": {},
            "chat_template": TEMPLATE,
            "chat_template_caps": caps,
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "build_info": BUILD,
            "is_sleeping": False,
            "cors_proxy_enabled": False,
            "simulated": v.simulated,
        }
    )


def _llama_slots(v: View) -> Page:
    c = v.scheduler.constants
    busy: dict[int, Job] = {j.held.slot: j for j in v.scheduler.running if j.held is not None}
    slots = []
    for i in range(c.slots):
        job = busy.get(i)
        n = len(job.prompt) if job else 0
        left = len(job.output) - job.sent if job else -1
        params = (
            {**_SAMPLING, "max_tokens": len(job.output), "n_predict": len(job.output)} if job else _SAMPLING
        )
        slots.append(
            {
                "id": i,
                "n_ctx": c.context,
                "speculative": False,
                "is_processing": job is not None,
                "id_task": i if job else -1,
                "n_prompt_tokens": n,
                "n_prompt_tokens_processed": n - job.todo if job else 0,
                "n_prompt_tokens_cache": job.cached if job else 0,
                "params": params,
                "next_token": [
                    {
                        "has_next_token": job is not None,
                        "has_new_line": False,
                        "n_remain": left,
                        "n_decoded": job.sent if job else 0,
                    }
                ],
            }
        )
    return json_page(slots)


def _llama_tokenize(body: dict[str, Any], v: View) -> Page:
    special = body.get("parse_special", True) is not False
    content = body.get("content", "")
    ids = tokenize(content if isinstance(content, str) else "", special=special)
    if body.get("with_pieces"):
        return json_page({"tokens": [{"id": t, "piece": _piece(t)} for t in ids]})
    return json_page({"tokens": ids})


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
    return json_page({"prompt": chat_prompt(body["messages"], generate=generate)})


GET: dict[str, Get] = {
    "/health": lambda v: json_page({"status": "ok"}),
    "/v1/health": lambda v: json_page({"status": "ok"}),
    "/models": _llama_models,
    "/v1/models": _llama_models,
    "/props": _llama_props,
    "/slots": _llama_slots,
    "/metrics": lambda v: Page(
        llama_metrics(v.scheduler, v.gauges).encode(), "text/plain; version=0.0.4", process_start=v.started
    ),
}
POST: dict[str, Post] = {
    "/tokenize": _llama_tokenize,
    "/detokenize": lambda b, v: json_page({"content": detokenize(token_list(b))}),
    "/apply-template": _llama_template,
    "/props": lambda b, v: json_page({"success": True}),
}
