"""explain: why a call did not reach an engine, in words that say what to do."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import requests
from requests import exceptions as rx

from loadgen.config import EngineSpec

from .errors import clean


def explain(
    error: Exception, spec: EngineSpec, method: str, path: str, connect_s: float, read_s: float
) -> tuple[str, str]:
    """(sentence without the engine's name, EngineError's reason) for what `requests` raised."""
    url = spec.url
    chain = list(_chain(error))
    if isinstance(error, rx.SSLError):
        return _tls(chain, spec), "unreachable"
    if isinstance(error, rx.InvalidHeader | UnicodeError):
        return "a header or the key holds characters that HTTP cannot carry", "config"
    if spec.ca_file and not os.path.exists(spec.ca_file):
        return f"ca_file {spec.ca_file} does not exist", "config"
    if isinstance(error, rx.ProxyError):
        proxy = _proxy(url)
        return (
            f"the proxy {proxy} does not let through to {url}: "
            f"unset it, or put the host into NO_PROXY ({_root_text(chain)})"
        ), "unreachable"
    if isinstance(error, rx.ConnectTimeout):
        return (
            f"{url} does not answer: no connection within {connect_s:g} s; "
            "check the address, the network and firewalls"
        ), "unreachable"
    if url.startswith("https:") and any("handshake operation timed out" in str(e) for e in chain):
        return (
            f"{url} takes connections but does not answer in TLS: write http:// if it does not speak it"
        ), "unreachable"
    if isinstance(error, rx.Timeout) or any(isinstance(e, TimeoutError) for e in chain):
        return (
            f"{url} takes connections but gave no answer to {method} {path} within {read_s:g} s; "
            "look at the server's log"
        ), "unreachable"
    if any(isinstance(e, socket.gaierror) or "NameResolution" in type(e).__name__ for e in chain):
        return (
            f"the host name {urlsplit(url).hostname} cannot be found: check the address {url}",
            "unreachable",
        )
    if any(isinstance(e, ConnectionRefusedError) for e in chain):
        return (
            f"nothing listens at {url} (connection refused): start the server, "
            f"or give its address with --engine {spec.name}={spec.kind}:URL"
        ), "unreachable"
    if any(isinstance(e, ConnectionResetError) or "RemoteDisconnected" in type(e).__name__ for e in chain):
        hint = "if it speaks TLS, write https://; else " if url.startswith("http:") else ""
        return (
            f"{url} closed the connection without an answer to {method} {path}: {hint}look at its log",
            "unreachable",
        )
    return f"{url} cannot be reached: {_root_text(chain)}", "unreachable"


def _tls(chain: list[BaseException], spec: EngineSpec) -> str:
    text = " ".join(str(e) for e in chain)
    table = f"[engines.{spec.name}] of loadgen.toml"
    if "CERTIFICATE_VERIFY_FAILED" in text or "doesn't match" in text:
        why = next((str(e.verify_message) for e in chain if isinstance(e, ssl.SSLCertVerificationError)), "")
        return (
            f"the certificate of {spec.url} is not trusted ({clean(why, 120) or 'wrong host name'}): "
            f"set ca_file to the file of its authority, or verify_tls = false, in {table}"
        )
    if any(sign in text for sign in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "record layer")):
        return f"{spec.url} does not speak TLS: write http:// in its address"
    return f"no TLS connection to {spec.url}: {_root_text(chain)}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all those inside it: urllib3 keeps them in args and `reason`, Python in the context."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        e = todo.pop(0)
        if not isinstance(e, BaseException) or id(e) in seen:
            continue
        seen.add(id(e))
        yield e
        todo += [getattr(e, "reason", None), *e.args, e.__cause__, e.__context__]


def _root_text(chain: list[BaseException]) -> str:
    last = chain[-1]
    return clean(str(last) or type(last).__name__, 200)


def _proxy(url: str) -> str:
    proxies = requests.utils.get_environ_proxies(url)
    proxy = proxies.get(urlsplit(url).scheme) or proxies.get("all") or "of the environment"
    parts = urlsplit(proxy)
    return f"{parts.scheme}://{parts.hostname}:{parts.port}" if parts.hostname and parts.port else "set there"
