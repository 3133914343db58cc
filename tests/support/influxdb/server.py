"""InfluxServer: the real InfluxDB 1.6 behind nginx, which adds the v2 write API that 1.8 and later have.

    with InfluxServer(folder) as server:
        server.create("mine")
        server.query("SELECT count(ttft_ms) FROM llm_request", "mine")

Real: storage engine, line protocol, field types, InfluxQL. Not covered: Flux, organisations and buckets as
objects, that 2.x refuses a whole batch for one bad line (1.6 keeps the good ones).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import requests
from engine_server import free_port

HERE = Path(__file__).resolve().parent
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"])
ORG = "loadgen"
READY_S = 30.0


class NotInstalled(Exception):
    """influxd 1.x or nginx is not there: the text says which, and how to get it."""


class InfluxError(Exception):
    """The database did not start, or refused a query: its own words."""


class InfluxServer:
    """One database on ports of its own. `url` and `token` are what a person would be given."""

    def __init__(self, folder: Path, *, max_body: str = "64m") -> None:
        """`max_body` is the largest body that is taken (nginx's notation); a larger one gets a 413."""
        self.folder = Path(folder)
        self.token = f"test-{secrets.token_hex(16)}"
        self.org = ORG
        self.max_body = max_body
        self.url = ""
        self._db_port = 0
        self._database: subprocess.Popen[bytes] | None = None
        self._front: subprocess.Popen[bytes] | None = None

    def start(self) -> InfluxServer:
        """Start both processes and wait until they answer. Raises NotInstalled, InfluxError."""
        influxd, nginx = _programs()
        for part in ("data", "scratch"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for attempt in range(3):  # a free port may be somebody else's a moment later
            self._configure()
            try:
                self._start_database(influxd)
                self._start_front(nginx)
            except InfluxError:
                self.stop()
                if attempt == 2:
                    raise
            else:
                break
        atexit.register(self.stop)
        return self

    def kill9(self) -> None:
        """SIGKILL to the database; what is in front of it goes on, and says 503."""
        if self._database is not None:
            self._database.kill()
            self._database.wait()
            self._database = None

    def restart(self) -> None:
        """Start the database again, on the same data and port; after `kill9` or instead of it."""
        self.kill9()
        self._start_database(_programs()[0])

    @property
    def pids(self) -> list[int]:
        """Of the database and of what is in front of it (whose worker is its child)."""
        return [process.pid for process in (self._database, self._front) if process is not None]

    def pause(self) -> None:
        """The database takes connections and answers nothing, until `resume`."""
        assert self._database is not None
        self._database.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._database is not None
        self._database.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.kill9()
        if self._front is not None:
            self._front.terminate()
            try:
                self._front.wait(5)
            except subprocess.TimeoutExpired:
                self._front.kill()
                self._front.wait()
            self._front = None
        atexit.unregister(self.stop)

    def query(self, sql: str, db: str = "") -> list[dict[str, Any]]:
        """The series of all statements, each `{"name", "tags"?, "columns", "values"}`; times in nanoseconds.

        Nothing found is an empty list. Raises InfluxError where a statement is refused.
        """
        answer = requests.post(
            f"{self.url}/query",
            data={"q": sql, "db": db, "epoch": "ns"},
            headers={"Authorization": f"Token {self.token}"},
            timeout=60,
        )
        if answer.status_code != 200:
            raise InfluxError(f"{sql}: {answer.status_code} {answer.text[:300]}")
        series: list[dict[str, Any]] = []
        for result in answer.json().get("results", []):
            if "error" in result:
                raise InfluxError(f"{sql}: {result['error']}")
            series += result.get("series", [])
        return series

    def create(self, db: str) -> None:
        self.query(f'CREATE DATABASE "{db}"')

    def drop(self, db: str) -> None:
        self.query(f'DROP DATABASE "{db}"')

    def __enter__(self) -> InfluxServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _configure(self) -> None:
        port, self._db_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}"
        values = {
            "PORT": str(port),
            "DB_PORT": str(self._db_port),
            "RPC_PORT": str(free_port()),
            "FOLDER": str(self.folder),
            "TOKEN": self.token,
            "ORG": self.org,
            "MAX_BODY": self.max_body,
            # nginx started by root lets its workers be somebody who may not enter a private folder.
            "USER": "user root;" if os.geteuid() == 0 else "",
        }
        for name in ("influxdb.conf", "nginx.conf"):
            text = (HERE / name).read_text(encoding="utf-8")
            for key, value in values.items():
                text = text.replace(f"@{key}@", value)
            (self.folder / name).write_text(text, encoding="utf-8")

    def _start_database(self, influxd: str) -> None:
        self._database = self._spawn([influxd, "-config", str(self.folder / "influxdb.conf")], "influxd.log")
        self._wait(f"http://127.0.0.1:{self._db_port}/ping", self._database, "influxd.log")

    def _start_front(self, nginx: str) -> None:
        command = [nginx, "-e", str(self.folder / "nginx.log"), "-c", str(self.folder / "nginx.conf")]
        self._front = self._spawn(command, "nginx.out")
        self._wait(f"{self.url}/ping", self._front, "nginx.log")

    def _spawn(self, command: list[str], log: str) -> subprocess.Popen[bytes]:
        with open(self.folder / log, "ab") as out:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _wait(self, url: str, process: subprocess.Popen[bytes], log: str) -> None:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(requests.RequestException):
                if requests.get(url, timeout=5).ok:
                    return
            time.sleep(0.02)
        tail = (self.folder / log).read_text(errors="replace")[-500:]
        raise InfluxError(f"{process.args!r} did not start: {tail}")


@dataclass(frozen=True)
class Bucket:
    """One empty database of a running server, for one test."""

    server: InfluxServer
    name: str

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def token(self) -> str:
        return self.server.token

    @property
    def org(self) -> str:
        return self.server.org

    @property
    def env(self) -> dict[str, str]:
        """What a person sets for delivery into this bucket."""
        return {
            "INFLUXDB_URL": self.url,
            "INFLUXDB_TOKEN": self.token,
            "INFLUXDB_ORG": self.org,
            "INFLUXDB_BUCKET": self.name,
        }

    def query(self, sql: str) -> list[dict[str, Any]]:
        return self.server.query(sql, self.name)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Every row of every series as a dict of its tags and columns."""
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], values, strict=True))}
            for series in self.query(sql)
            for values in series["values"]
        ]

    def value(self, sql: str) -> Any:
        """The one figure that a query like `SELECT sum(x) FROM y` answers, None where there is none."""
        series = self.query(sql)
        return series[0]["values"][0][1] if series else None


def _programs() -> tuple[str, str]:
    influxd, nginx = shutil.which("influxd", path=PATH), shutil.which("nginx", path=PATH)
    missing = [name for name, path in (("influxdb", influxd), ("nginx-light", nginx)) if path is None]
    if influxd is None or nginx is None:
        raise NotInstalled(f"no database to test with: apt-get install {' '.join(missing)}")
    version = subprocess.run([influxd, "version"], capture_output=True, text=True, check=False).stdout.strip()
    if not version.startswith("InfluxDB v1."):
        raise NotInstalled(
            f"the tests' database is InfluxDB 1.x, and {influxd} is {version or 'something else'}"
        )
    return influxd, nginx
