"""Which proxy an address is reached through, from the usual environment variables."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies, select_proxy


def proxy_for(url: str) -> str | None:
    """The proxy's address for `url` by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, None for direct.

    Loopback addresses never go through a proxy: a proxy would measure another machine.
    """
    host = urlsplit(url).hostname or ""
    if is_loopback(host):
        return None
    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
