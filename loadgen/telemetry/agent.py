"""The agent of a GPU host (`loadgen telemetry --listen`): serves its samples to whoever has the token.

    GET /v1/rows?since=N&agent=ID      Authorization: Bearer TOKEN
    {"agent": ID, "now_ns": its wall clock, "facts": [...], "rows": [...], "next": N, "missed": rows lost}

`since` and `agent` are the `next` and `agent` of the answer before; without them, or after the agent was
started anew, there are no rows, only facts and where to go on. GET /health needs no token, and says "ok".
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

KEEP_ROWS = 20_000  # eight GPUs at a beat of 1 s: 40 minutes
MOST_ROWS = 5_000  # in one answer
IDLE_S = 30.0


class RowBuffer:
    """The last rows, numbered from 0; facts are kept beside them for good. Thread-safe."""

    def __init__(self, keep: int = KEEP_ROWS, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.agent = uuid.uuid4().hex
        self._rows: deque[dict[str, Any]] = deque(maxlen=keep)
        self._facts: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._wall_ns = wall_ns

    def write(self, row: Mapping[str, Any]) -> None:
        with self._lock:
            if row["kind"] == "facts":
                key = (row["host"], row["gpu"], row.get("mig_instance"), row["source"])
                self._facts[key] = dict(row)
                return
            self._rows.append(dict(row))
            self._next += 1

    def answer(self, since: int | None, agent: str | None, most: int = MOST_ROWS) -> dict[str, Any]:
        with self._lock:
            first = self._next - len(self._rows)
            start = self._next
            missed = 0
            if since is not None and agent == self.agent and 0 <= since <= self._next:
                start = max(since, first)
                missed = start - since
            rows = [self._rows[n - first] for n in range(start, min(self._next, start + most))]
            return {
                "agent": self.agent,
                "now_ns": self._wall_ns(),
                "facts": list(self._facts.values()),
                "rows": rows,
                "next": start + len(rows),
                "missed": missed,
            }


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    protocol_version = "HTTP/1.1"
    server_version = "loadgen-telemetry"
    sys_version = ""
    timeout = IDLE_S

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/health":
            self._say(200, {"status": "ok"})
        elif url.path != "/v1/rows":
            self._say(404, {"error": "there is /v1/rows and /health"})
        elif not self._may():
            self._say(401, {"error": "the token is missing or wrong: Authorization: Bearer TOKEN"})
        else:
            query = parse_qs(url.query)
            since = query.get("since", [""])[0]
            number = int(since) if since.isascii() and since.isdigit() and len(since) < 16 else None
            self._say(200, self.server.buffer.answer(number, query.get("agent", [None])[0]))

    def _may(self) -> bool:
        said = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return hmac.compare_digest(said, b"Bearer " + self.server.token.encode())

    def _say(self, status: int, message: dict[str, Any]) -> None:
        body = orjson.dumps(message, default=str)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class AgentServer(ThreadingHTTPServer):
    """Serves `buffer` in threads of its own from `start` to `stop`, by IPv4 or IPv6.

    Raises OSError if the port is taken or the host is not this one, UnicodeError where it is no name.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], token: str, buffer: RowBuffer) -> None:
        self.token = token
        self.buffer = buffer
        host, port = address
        flags = socket.AI_PASSIVE
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)[0][0]
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the name service who we are: for seconds, where there is none.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="agent", daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in mid-answer is its own business."""
