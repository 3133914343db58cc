"""A server with fixed answers, for tests of control calls and error sentences."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.support.captures import captures


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One request that arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def as_json(data: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(data).encode(), {"Content-Type": "application/json", **headers})


Route = Answer | Callable[[Seen], Answer]


class CannedServer:
    """Answers by path (404 elsewhere) on a free port of 127.0.0.1, and keeps what it was asked."""

    def __init__(
        self,
        routes: dict[str, Route],
        *,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.routes = routes
        self.seen: list[Seen] = []
        extra = headers or {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen = Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                outer.seen.append(seen)
                route = outer.routes.get(self.path, as_json({"detail": "Not Found"}, 404))
                answer = route(seen) if callable(route) else route
                self.send_response_only(answer.status)
                for name, value in {**extra, **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def asked(self, path: str) -> list[Seen]:
        return [s for s in self.seen if s.path == path]

    def __enter__(self) -> CannedServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def captured_routes(engine: str) -> dict[str, Route]:
    """What the real server answered at its control endpoints, byte for byte."""
    routes: dict[str, Route] = {}
    for capture in captures(engine):
        if capture.case.startswith("get_") or capture.case in ("tokenize", "apply_template"):
            response = capture.exchanges[0].http()
            headers = {
                k: v
                for k, v in response.headers.items()
                if k not in ("content-length", "keep-alive", "connection")
            }
            routes[capture.exchanges[0].path] = Answer(response.status, response.body, headers)
    return routes
