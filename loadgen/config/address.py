"""Addresses of other servers: their form is checked, and they carry no keys."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked_url(url: str, example: str) -> str:
    """`url` without a slash at its end. Raises ValueError, in one sentence, if it is no server's address, or
    holds a key."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an address like {example}")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{url!r} has a port that is not a number from 0 to 65535") from None
    if parts.username or parts.password:
        raise ValueError(
            "keys do not belong in the address: name the variable that holds one (api_key_env, token_env)"
        )
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r} has a query or fragment, a server's address has none")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
