"""How a model's weights are quantised, as far as an engine or its name tells. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# As they stand in names of models and files: GGUF's types, formats of checkpoints, plain floats.
_IN_NAMES = re.compile(
    r"(?<![a-z0-9])("
    r"i?q[2-8]_[01kx](?:_(?:xxs|xs|nl|s|m|l|xl))?|iq[1-4]_(?:xxs|xs|nl|s|m)|tq[12]_0|"
    r"nvfp4|mxfp4|fp8|int8|int4|awq|gptq|w8a8|w4a16|bnb|bf16|fp16|f16|fp32|f32"
    r")(?![a-z0-9])",
    re.IGNORECASE,
)
_FLAG = re.compile(r"--quantization[= ]+([A-Za-z0-9_.-]+)")
_FTYPE = {"small": "S", "medium": "M", "large": "L"}


def quantisation(info: Mapping[str, Any], spec: Mapping[str, Any] | None = None) -> str | None:
    """From an EngineInfo dict and the engine's settings: what the server says, else its start command's
    flag, else the model's name. None where nothing tells.

    >>> quantisation({"facts": {"model_ftype": "Q4_K - Medium"}})
    'Q4_K_M'
    >>> quantisation({"model": "Qwen/Qwen3-8B-FP8"})
    'FP8'
    >>> quantisation({"model": "Qwen3-8B"}) is None
    True
    """
    facts = info.get("facts") or {}
    for key in ("model_ftype", "ftype", "quantization"):
        if isinstance(said := facts.get(key), str) and said:
            return _plain_ftype(said)
    if found := _FLAG.search(str((spec or {}).get("start") or "")):
        return found[1].upper()
    for name in (info.get("model"), facts.get("model_root"), facts.get("model_path")):
        if isinstance(name, str) and (hits := _IN_NAMES.findall(name)):
            return str(hits[-1]).upper()
    return None


def _plain_ftype(text: str) -> str:
    """llama.cpp's words for a file type as in file names: `Q4_K - Medium` is Q4_K_M."""
    kind, _, size = text.partition(" - ")
    short = _FTYPE.get(size.strip().lower())
    return f"{kind.strip()}_{short}" if short else text.strip()
