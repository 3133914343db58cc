"""The Prometheus text format, as far as single values go. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*\Z")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> Iterator[tuple[str, str, float]]:
    """(name, labels as written, value) of each line; lines that are none are passed over."""
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        match = _LINE.match(line.rstrip("\r"))
        if match:
            try:
                yield match[1], match[2] or "", float(match[3])
            except ValueError:
                continue


def label(written: str, name: str) -> str | None:
    """One label of a line, from its labels as `samples` gives them."""
    return next((value for found, value in _LABEL.findall(written) if found == name), None)


def labels(text: str, name: str) -> dict[str, str]:
    """The labels of the first line of `name`: info metrics say things that way. Empty if there is none."""
    written = next((written for found, written, _ in samples(text) if found == name), "")
    return dict(_LABEL.findall(written))
