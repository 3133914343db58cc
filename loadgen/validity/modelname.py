"""What model a name stands for, without what it was quantised with and who packed it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HUB = re.compile(r"models--[^/]+?--([^/]+)")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
# Words in names of models that say how the weights are stored, packed or named, and not what they are.
_STORAGE = re.compile(
    r"(?:i?q\d(?:_[01kx])?(?:_(?:xxs|xs|nl|s|m|l|xl))?|tq[12]_0|i?q\d|nf4|nvfp4|mxfp[48]|fp\d+|bf16|f16|f32|"
    r"int\d+|w\d+a\d+(?:fp8)?|\d+bit|bit|awq|gptq|bnb|exl[23]|gguf|ggml|hqq|eetq|marlin|imatrix|ud|dynamic|"
    r"block|static|qat|quantized|quant|meta|hf|k|s|m|l|xl|xs|xxs|[01])"
)
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]")


def base_model(info: Mapping[str, Any]) -> str | None:
    """The base model of an EngineInfo dict, in small letters; None where no name has a size in it (7B, 8x7B,
    360M), since an alias can be anything.

    >>> base_model({"model": "Qwen/Qwen3-8B-FP8"}), base_model({"model": "qwen3-8b-q4_k_m.gguf"})
    ('qwen3-8b', 'qwen3-8b')
    >>> base_model({"model": "default"}) is None
    True
    """
    facts = info.get("facts") or {}
    for name in (facts.get("model_root"), facts.get("model_path"), info.get("model")):
        if isinstance(name, str) and (base := _base(name)):
            return base
    return None


def _base(name: str) -> str | None:
    name = name.replace("\\", "/").rstrip("/")
    hub = _HUB.search(name)
    last = hub[1] if hub else name.rpartition("/")[2]
    last = _SHARD.sub("", last.lower().removesuffix(".gguf"))
    words = [w for w in re.split(r"[-\s]+|_(?![01kx](?:[_.-]|$))|\.(?!\d)", last) if w]
    kept = [w for w in words if not _STORAGE.fullmatch(w)]
    if len(kept) > 1 and kept[1].startswith(kept[0]):
        del kept[0]  # the maker's name before the model's own, as in Qwen_Qwen3-8B
    return "-".join(kept) if any(_SIZE.fullmatch(w) for w in kept) else None
