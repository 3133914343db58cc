"""This package's StreamClient and Reader with greenlets, without Locust's users and without a journal.

bare_client.py URL STREAMS ROUNDS TOKENS ROWS_FILE      (with the repository on PYTHONPATH)
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library)

from typing import Any

import gevent
from common import arguments, body, cpu_s, report

from loadgen.config import EngineSpec, Settings
from loadgen.engines import make_engine
from loadgen.record import RequestRecord
from loadgen.stream.client import StreamClient


def as_row(record: RequestRecord) -> dict[str, Any]:
    return {
        "id": record.response_id,
        "sent_ns": record.sent_ns,
        "ttft_ms": record.ttft_ms,
        "event_us": record.event_us,
        "coalesced": record.coalesced,
        "inexact": record.ttft_error_ms > 0,
    }


def main() -> None:
    url, streams, rounds, tokens, rows_file = arguments()
    spec = EngineSpec(name="truth", kind="openai", url=url)
    engine = make_engine(spec, Settings(engines=(spec,)))
    path = "/v1/chat/completions"
    records: list[RequestRecord] = []
    clients = [StreamClient(engine) for _ in range(streams)]

    def user(client: StreamClient, times: int, length: int) -> None:
        for _ in range(times):
            exchange = client.send(path, body(length))
            record = RequestRecord()
            exchange.fill(record)
            records.append(record)

    gevent.joinall([gevent.spawn(user, c, 1, 4) for c in clients])
    records.clear()
    before = cpu_s()
    gevent.joinall([gevent.spawn(user, c, rounds, tokens) for c in clients])
    report(rows_file, [as_row(r) for r in records], cpu_s() - before)


main()
