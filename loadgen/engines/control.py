"""Control: short calls to a server's control endpoints, with errors that a person can act on.

The measured traffic never goes this way (that is loadgen/stream). `requests` is imported at the first call,
not with the module: in a Locust process it must come after the monkey patch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from loadgen.config import ConfigError, EngineSpec

from .errors import EngineError, clean, http_error_text

if TYPE_CHECKING:
    import requests

MAX_BODY = 32 * 1024 * 1024
SECRET_CHARS = 6  # shorter header values are no keys, and may stand in any sentence


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status == 200

    def json(self) -> Any:
        """The decoded body; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except ValueError:
            return None

    def text(self) -> str:
        """What went wrong, as `HTTP 404: ...`."""
        return http_error_text(self.status, self.body)


class Control:
    """Calls to one engine. `connect_s` and `read_s` are limits in seconds, MAX_BODY one in bytes; keys are
    looked up in `env` (None: the process's environment)."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        connect_s: float = 5.0,
        read_s: float = 10.0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.spec = spec
        self._env = env
        self.connect_s = connect_s
        self.read_s = read_s
        self._session: requests.Session | None = None

    def headers(self) -> dict[str, str]:
        """Authorization from the environment, and the engine's own headers, which win."""
        try:
            key = self.spec.api_key(self._env)
        except ConfigError as e:
            raise EngineError(str(e), "config") from None
        headers = {"Authorization": f"Bearer {key.strip()}"} if key else {}
        headers.update(self.spec.headers)
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                where = self.spec.api_key_env if name == "Authorization" and key else f"header {name}"
                raise self.error(f"{where} holds characters that an HTTP header cannot carry", "config")
        return headers

    def blank(self, said: bytes) -> bytes:
        """What the server said, without the keys it was sent: some servers repeat a key that they refuse."""
        values = list(self.spec.headers.values())
        with contextlib.suppress(ConfigError):
            values.append((self.spec.api_key(self._env) or "").strip())
        for value in sorted(values, key=len, reverse=True):
            if len(value) >= SECRET_CHARS:
                said = said.replace(value.encode(), b"<secret>")
        return said

    def get(self, path: str, *, read_s: float | None = None) -> Reply:
        return self._call("GET", path, None, read_s)

    def post(self, path: str, body: bytes, *, read_s: float | None = None) -> Reply:
        return self._call("POST", path, body, read_s)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def error(self, text: str, reason: str) -> EngineError:
        return EngineError(f"engine {self.spec.name}: {text}", reason)

    def _call(self, method: str, path: str, body: bytes | None, read_s: float | None) -> Reply:
        import requests

        from .neterrors import explain

        headers = {"Accept-Encoding": "identity", "Accept": "*/*", **self.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._session is None:
            try:
                self._session = _session(self.spec)
            except ConfigError as e:
                raise self.error(str(e), "config") from None
        limit = read_s or self.read_s
        try:
            with self._session.request(
                method,
                self.spec.url + path,
                data=body,
                headers=headers,
                timeout=(self.connect_s, limit),
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _read(response, time.monotonic() + 2 * limit)
                if response.status_code != 200:
                    content = self.blank(content)
                reply = Reply(
                    response.status_code, {k.lower(): v for k, v in response.headers.items()}, content
                )
        except _TooMuch as e:
            raise self.error(f"{method} {path} answered {e}", "answer") from None
        except (requests.exceptions.RequestException, OSError, ValueError) as e:
            text, reason = explain(e, self.spec, method, path, self.connect_s, limit)
            raise self.error(text, reason) from None
        if 300 <= reply.status < 400:
            target = clean(reply.headers.get("location", "somewhere else"), 200)
            raise self.error(
                f"{self.spec.url}{path} redirects to {target}: give the engine the address that it leads to",
                "answer",
            )
        return reply


class _TooMuch(Exception):
    pass


def _read(response: requests.Response, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in response.iter_content(65536):
        parts.append(part)
        size += len(part)
        if size > MAX_BODY:
            raise _TooMuch(f"with more than {MAX_BODY // 2**20} MiB")
        if time.monotonic() > deadline:
            raise _TooMuch("too slowly, a little at a time")
    return b"".join(parts)


def _session(spec: EngineSpec) -> requests.Session:
    import requests
    import requests.adapters

    from loadgen.stream.proxy import proxy_for
    from loadgen.tls import tls_context

    class KeepHeaders(requests.auth.AuthBase):
        """Keeps requests from replacing our Authorization by a password that it finds in ~/.netrc."""

        def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
            return r

    context = tls_context(spec) if spec.url.startswith("https:") else None

    class Adapter(requests.adapters.HTTPAdapter):
        """Trusts whom the streams trust."""

        def init_poolmanager(self, *args: Any, **kwargs: Any) -> Any:
            return super().init_poolmanager(*args, **kwargs, ssl_context=context)

        def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
            return super().proxy_manager_for(*args, **kwargs, ssl_context=context)

    session = requests.Session()
    # The same proxy as for the streams, which is none for loopback.
    session.trust_env = False
    if proxy := proxy_for(spec.url):
        session.proxies = {"http": proxy, "https": proxy}
    session.auth = KeepHeaders()
    session.headers.clear()
    session.headers["User-Agent"] = "loadgen"
    session.verify = spec.ca_file or spec.verify_tls
    if context is not None:
        session.mount("https://", Adapter())
    if not spec.verify_tls:
        session.verify = False
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return session
