"""requests.Session without the surprises: what the environment may decide for a call is the same everywhere.

`requests` is imported with this module: in a Locust process that must come after the monkey patch.
"""

from __future__ import annotations

import time
from typing import Any

import requests
import requests.adapters
import requests.auth
import urllib3

from loadgen.config import EngineSpec, InfluxdbSpec
from loadgen.stream.proxy import proxy_for
from loadgen.tls import tls_context

PART = 65536


class TooMuch(Exception):
    """An answer that is too long or comes too slowly: the text goes on after "answers"."""


class _KeepHeaders(requests.auth.AuthBase):
    """Keeps requests from replacing our Authorization by a password that it finds in ~/.netrc."""

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        return r


def new_session(url: str, spec: EngineSpec | InfluxdbSpec | None = None) -> requests.Session:
    """For one server, with the proxy that streams would take (none for loopback), and trusting whom
    they trust (by `spec`, else with checked certificates). Raises ConfigError: a ca_file that cannot be read.
    """
    context = tls_context(spec) if url.startswith("https:") else None

    class Adapter(requests.adapters.HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> Any:
            return super().init_poolmanager(*args, **kwargs, ssl_context=context)

        def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
            return super().proxy_manager_for(*args, **kwargs, ssl_context=context)

    session = requests.Session()
    session.trust_env = False
    if proxy := proxy_for(url):
        session.proxies = {"http": proxy, "https": proxy}
    session.auth = _KeepHeaders()
    session.headers.clear()
    session.headers["User-Agent"] = "loadgen"
    if spec is not None:
        session.verify = spec.ca_file or spec.verify_tls
    if context is not None:
        session.mount("https://", Adapter())
    if spec is not None and not spec.verify_tls:
        session.verify = False
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return session


def read_body(response: requests.Response, most_bytes: int, most_s: float) -> bytes:
    """The body of a streamed answer. A time-out of requests is for each piece only, so a server that sends
    one now and then would be waited for without end. Raises TooMuch."""
    deadline = time.monotonic() + most_s
    body = bytearray()
    for part in response.iter_content(PART):
        body += part
        if len(body) > most_bytes:
            raise TooMuch(f"with more than {most_bytes // 2**20} MiB")
        if time.monotonic() > deadline:
            raise TooMuch("too slowly, a little at a time")
    return bytes(body)
