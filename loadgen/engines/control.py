"""Control: short calls to a server's control endpoints, with errors that a person can act on.

The measured traffic never goes this way (that is loadgen/stream). `requests` is imported at the first call,
not with the module: in a Locust process it must come after the monkey patch.
"""

from __future__ import annotations

import contextlib
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

        from loadgen.httpsession import TooMuch, new_session, read_body

        from .neterrors import explain

        headers = {"Accept-Encoding": "identity", "Accept": "*/*", **self.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._session is None:
            try:
                self._session = new_session(self.spec.url, self.spec)
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
                content = read_body(response, MAX_BODY, 2 * limit)
                if response.status_code != 200:
                    content = self.blank(content)
                reply = Reply(
                    response.status_code, {k.lower(): v for k, v in response.headers.items()}, content
                )
        except TooMuch as e:
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
