"""Addresses of other servers: their form is checked, and they carry no keys."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_NOT_IN_URL = re.compile(r"[\s\x00-\x1f\x7f]")


def checked_url(url: str, example: str) -> str:
    """`url` without a slash at its end, and without space around it. Raises ValueError, in one sentence that
    repeats no key, if it is no server's address, or holds a key."""
    url = url.strip()
    shown = re.split(r"[?#]", url)[0].rpartition("@")[2]
    try:
        parts = urlsplit(url)
    except ValueError:  # half a pair of brackets
        raise ValueError(f"{shown!r} is not an address like {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or _NOT_IN_URL.search(url):
        raise ValueError(f"{shown!r} is not an address like {example}")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{shown!r} has a port that is not a number from 0 to 65535") from None
    if parts.username or parts.password:
        raise ValueError(
            "keys do not belong in the address: name the variable that holds one (api_key_env, token_env)"
        )
    if parts.query or parts.fragment:
        raise ValueError(f"{shown!r} has a query or fragment, a server's address has none")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
