"""Locust's own FastHttpUser, reading with its iter_lines, each event parsed with orjson. A locustfile:

STREAMS=256 ROUNDS=2 TOKENS=256 ROWS=rows.jsonl locust -f fasthttp_user.py --headless -u 256 -r 256 -H URL
"""

from __future__ import annotations

from locust import FastHttpUser, task

import os
import sys
import time
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import orjson

sys.path.insert(0, str(Path(__file__).parent))
from common import HEADERS, body, cpu_s, report, row

STREAMS, ROUNDS, TOKENS = (int(os.environ[name]) for name in ("STREAMS", "ROUNDS", "TOKENS"))
rows: list[dict[str, Any]] = []
warm = finished = 0
before = 0.0
go = gevent.event.Event()


class Reader(FastHttpUser):
    concurrency = 1
    connection_timeout = network_timeout = 120.0

    def one(self, tokens: int) -> dict[str, Any]:
        times: list[tuple[int, int]] = []
        response_id, last, read = "", 0, 0
        sent_ns = time.time_ns()
        t0 = time.perf_counter_ns()
        for line in self.client.iter_lines(
            "/v1/chat/completions", "POST", data=body(tokens), headers=HEADERS
        ):
            now = time.perf_counter_ns() - t0
            # iter_lines hides where one read ends; lines of one read follow each other within microseconds.
            read += now - last > 200_000
            last = now
            if line.startswith("data: {"):
                chunk = orjson.loads(line[6:])
                choices = chunk["choices"]
                if choices and choices[0]["delta"].get("content"):
                    times.append((read, now))
                    response_id = chunk["id"]
        return row(response_id, sent_ns, times)

    @task
    def streams(self) -> None:
        global warm, before, finished
        self.one(4)
        warm += 1
        if warm == STREAMS:  # all connections are open and the code is warm
            before = cpu_s()
            go.set()
        go.wait()
        for _ in range(ROUNDS):
            rows.append(self.one(TOKENS))
        finished += 1
        if finished == STREAMS:
            report(os.environ["ROWS"], rows, cpu_s() - before)
            gevent.spawn(self.environment.runner.quit)  # not from here: it would stop this very greenlet
        gevent.event.Event().wait()
