"""5,000 points a second, while database and shipper are killed: every good line is stored once, every bad one
is in the dead-letter file. Counted in the database.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from loadgen.sinks.deadletter import read_letters
from loadgen.store import RunDir
from tests.support import shipping
from tests.support.influxdb import Bucket, InfluxServer
from tests.support.shipping import T0, Shipper, wait_until

RATE = 5_000
SECONDS = 12
N = RATE * SECONDS
STEP_S = 0.02
KINDS = ("requests",) * 6 + ("windows", "gpu", "engine", "events")
# The number of a bad row, in the line that InfluxDB refused or in the row.
NUMBER = re.compile(r'sequence=(\d+),|energy_j=(\d+)\.0|"tokens": (\d+)|"running":(\d+)|"text":"note (\d+)"')


class Load:
    """Writes N rows into all journals of a run, RATE a second; remembers what should become of them.

    Of ten rows six are requests (every other one also in its worker's own journal), and one each of the
    other kinds. About one in 500 is bad: not JSON, without a time, or refused by the database.
    """

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.written = 0
        self.good: dict[str, set[int]] = {name: set() for name in KINDS}
        self.bad: dict[str, set[int]] = {}
        self._rows = [self._row(n) for n in range(N)]

    def write(self) -> None:
        files = {name: open(self.run.path / name, "ab", buffering=0) for name in self._names()}  # noqa: SIM115
        files["gpu.jsonl"].write(shipping.gpu_facts() + b"\n")
        began = time.monotonic()
        per_step = int(RATE * STEP_S)
        for first in range(0, N, per_step):
            batch: dict[str, list[bytes]] = {}
            for names, line in self._rows[first : first + per_step]:
                for name in names:
                    batch.setdefault(name, []).append(line + b"\n")
            for name, lines in batch.items():
                data = b"".join(lines)
                cut = len(data) // 2  # readers meet half lines
                files[name].write(data[:cut])
                files[name].write(data[cut:])
            self.written = first + per_step
            time.sleep(max(0.0, began + self.written / RATE - time.monotonic()))
        for file in files.values():
            file.close()

    def _names(self) -> set[str]:
        return {name for names, _ in self._rows for name in names} | {"gpu.jsonl"}

    def _row(self, n: int) -> tuple[tuple[str, ...], bytes]:
        name = KINDS[n % 10]
        names = (f"{name}.jsonl",)
        bad = n % 499 == 17
        if name == "requests":
            worker = f"w{n % 4}"
            line = shipping.request(n, worker, **({"cached_tokens": 3} if bad else {}))
            if n % 2:
                names = ("requests.jsonl", f"requests-{worker}.jsonl")
        elif name == "windows":
            line = b'{"t_ns": 1796056862, "tokens": %d, "engi' % n if bad else shipping.window(n)
        elif name == "gpu":
            line = shipping.gpu(n, **({"xid": 79} if bad else {}))
        elif name == "engine":
            line = shipping.engine(n, **({"t_ns": None} if bad else {}))
        else:
            line = shipping.note(n, **({"t_ns": 0} if bad else {}))
        if bad:
            for each in names:
                self.bad.setdefault(each, set()).add(n)
        else:
            self.good[name].add(n)
        return names, line


@pytest.fixture
def database(influxdb: InfluxServer, tmp_path: Path) -> Iterator[Bucket]:
    """One that may be killed. Two fields are text in it, so that rows with numbers there are refused."""
    with InfluxServer(tmp_path / "influxdb") as server:
        server.create("chaos")
        bucket = Bucket(server, "chaos")
        answer = requests.post(
            f"{bucket.url}/api/v2/write?org={bucket.org}&bucket=chaos&precision=ns",
            data=f'gpu,run=other xid="none" {T0}\nllm_request,run=other cached_tokens="none" {T0}',
            headers={"Authorization": f"Token {bucket.token}"},
            timeout=10,
        )
        assert answer.status_code == 204, answer.text
        yield bucket


@pytest.mark.timeout(400)
def test_nothing_is_lost_and_nothing_twice(database: Bucket, tmp_path: Path) -> None:
    run = shipping.new_run(tmp_path / "runs")
    load = Load(run)
    writer = threading.Thread(target=load.write, daemon=True)
    writer.start()
    shipper = Shipper(run, database)
    server = database.server

    def at(share: float) -> None:
        wait_until(lambda: load.written >= share * N)

    at(0.1)
    server.kill9()
    at(0.2)
    server.restart()
    at(0.35)
    shipper.kill9()
    at(0.4)
    shipper = Shipper(run, database)
    at(0.5)
    server.kill9()
    at(0.55)
    shipper.kill9()
    shipper = Shipper(run, database)
    at(0.7)
    server.restart()
    at(0.85)
    server.kill9()
    server.restart()
    writer.join()
    code = shipper.end(timeout_s=250)  # a machine that is busy otherwise may take long over what is left
    assert (code, shipper.status.get("state"), shipper.status.get("left")) == (0, "done", 0), shipper.err

    def numbers(sql: str) -> list[int]:
        return [int(str(row["n"]).removeprefix("note ")) for row in database.rows(sql)]

    stored = {
        "requests": numbers("SELECT sequence AS n FROM llm_request"),
        "windows": numbers("SELECT tokens AS n FROM llm_window WHERE provisional = 1"),
        "gpu": numbers("SELECT energy_j AS n FROM gpu"),
        "engine": numbers("SELECT running AS n FROM engine"),
        "events": numbers("SELECT text AS n FROM run_event"),
    }
    for kind, found in stored.items():
        assert len(found) == len(set(found)), f"{kind}: stored twice"
        assert (load.good[kind] - set(found), set(found) - load.good[kind]) == (set(), set()), kind
    letters = read_letters(run.path / "dead-letter.jsonl")
    buried: dict[str, list[int]] = {file: [] for file in load.bad}
    for letter in letters:
        match = NUMBER.search(letter.line)
        assert match is not None, letter
        buried[letter.file].append(int(next(filter(None, match.groups()))))
    assert {file: sorted(numbers) for file, numbers in buried.items()} == {
        file: sorted(numbers) for file, numbers in load.bad.items()
    }
    assert len(letters) > 100
