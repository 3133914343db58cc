"""Guard: which requests Locust's web server answers at all.

Whoever reaches the page can start load on any address, so a page of somebody else's that is open in the same
browser must not: it may neither send orders (CSRF), nor read answers (CORS), nor pretend to be this server
under a name of its own (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

HOSTS_ENV = "LOADGEN_WEB_HOSTS"
ANY_HOST = "*"
# Names that no public DNS gives to anybody (RFC 6761, RFC 6762; ICANN's resolution 2024.07.29.06).
PRIVATE = (".localhost", ".local", ".internal")
READING = ("GET", "HEAD", "OPTIONS")
# Those that change something or cost much although they are read. (Locust 2.46 stops a test by GET.)
ACTING = ("/stop", "/stats/reset", "/llm/report")
OURS = ("same-origin", "none")  # Sec-Fetch-Site of our own pages, and of an address that a person typed
SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

App = Callable[[Mapping[str, Any], Callable[..., Any]], Iterable[bytes]]


def host_name(netloc: str) -> str:
    """The name in `name:port`, in lower case and without brackets; empty if there is none.

    >>> [host_name(n) for n in ("LocalHost:8089", "[::1]:8089", "gpu.example.com.")]
    ['localhost', '::1', 'gpu.example.com']
    """
    try:
        return (urlsplit(f"//{netloc}").hostname or "").rstrip(".")
    except ValueError:
        return ""


class Guard:
    """`hosts` are names by which this server may be addressed besides those that nobody can give it from
    outside: addresses in figures, names without a dot, private ones, the machine's own. `*` allows any."""

    def __init__(self, hosts: Iterable[str] = (), base_path: str = "") -> None:
        self._hosts = {h.strip().lower().rstrip(".") for h in (*hosts, socket.gethostname()) if h.strip()}
        self._acting = tuple(f"{base_path.rstrip('/')}{path}" for path in ACTING)

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> str | None:
        """Why a request gets no answer, None if it does. Header names are in lower case."""
        host = headers.get("host", "")
        if host and not self._is_ours(host_name(host)):
            name = host_name(host)[:100]
            return (
                f"This page is not to be had under the name {name!r}. If that name is right, start it with "
                f"{HOSTS_ENV}={name} in the environment."
            )
        if method in READING and path.rstrip("/") not in self._acting:
            return None
        site = headers.get("sec-fetch-site")
        if site is not None:
            same = site in OURS
        else:  # an old browser, a page that is not encrypted, or a program
            origin = headers.get("origin") or headers.get("referer")
            same = origin is None or _netloc(origin) == host.lower()
        return None if same else "This comes from another site, which has no business here."

    def _is_ours(self, name: str) -> bool:
        if ANY_HOST in self._hosts or name in self._hosts or name.endswith(PRIVATE):
            return True
        if name and "." not in name and ":" not in name:
            return True
        try:
            ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            return False
        return True


class Guarded:
    """A WSGI application behind a guard. Whatever allows other sites to read an answer is taken out of it:
    Locust allows it to all."""

    def __init__(self, app: App, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {k[5:].replace("_", "-").lower(): v for k, v in environ.items() if k.startswith("HTTP_")}
        why = self._guard.refusal(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), headers)
        if why is not None:
            body = f"{why}\n".encode()
            plain = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
            start_response("403 Forbidden", [*plain, *SECURITY_HEADERS])
            return [body]

        def start(status: str, given: list[tuple[str, str]], exc_info: Any = None) -> Any:
            kept = [(k, v) for k, v in given if not k.lower().startswith("access-control-")]
            mine = [(k, v) for k, v in SECURITY_HEADERS if k.lower() not in {g.lower() for g, _ in kept}]
            return start_response(status, [*kept, *mine], exc_info)

        return self._app(environ, start)


def allowed_hosts(env: Mapping[str, str] = os.environ) -> list[str]:
    """The names in LOADGEN_WEB_HOSTS, with commas between."""
    return [name for name in env.get(HOSTS_ENV, "").split(",") if name.strip()]


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
