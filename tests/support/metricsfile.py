"""/metrics of a vLLM 0.26 and a llama-server, both on one H200, once a second through loads of both."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent.parent / "fixtures" / "metrics" / "h200.jsonl.xz"


@dataclass(frozen=True)
class Page:
    t_ns: int
    engine: str
    text: str


@cache
def recorded(engine: str) -> tuple[Page, ...]:
    """The pages of `vllm` or `llamacpp`, in order."""
    with lzma.open(_FILE, "rt", encoding="utf-8") as f:
        pages = [Page(**json.loads(line)) for line in f]
    return tuple(page for page in pages if page.engine == engine)
