"""A TCP relay that notes which requests pass, for tests of who asks a server what."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from urllib.parse import urlsplit


class Tap:
    """Listens on a free port and relays to `url`; `heads` are the request heads that passed, lower case."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heads: list[str] = []

    def __enter__(self) -> Tap:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing alone would leave accept() waiting.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def asked(self, path: str) -> list[str]:
        return [head for head in self.heads if head.startswith(f"get {path} ")]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._to) as server:
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    if data.startswith((b"GET ", b"POST ")):
                        self.heads.append(data.partition(b"\r\n\r\n")[0].decode("latin-1").lower())
                    server.sendall(data)
                server.shutdown(socket.SHUT_WR)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
