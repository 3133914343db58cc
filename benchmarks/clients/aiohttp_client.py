"""aiohttp as a load generator uses it: read, split into events, parse each with orjson at once.

aiohttp_client.py URL STREAMS ROUNDS TOKENS ROWS_FILE [--uvloop]
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import aiohttp
import orjson
from common import HEADERS, arguments, body, cpu_s, report, row


async def one(session: aiohttp.ClientSession, url: str, data: bytes) -> dict[str, Any]:
    times: list[tuple[int, int]] = []
    response_id, rest, read = "", b"", 0
    sent_ns = time.time_ns()
    t0 = time.perf_counter_ns()
    async with session.post(url, data=data, headers=HEADERS) as response:
        async for part in response.content.iter_any():
            now = time.perf_counter_ns() - t0
            read += 1
            *events, rest = (rest + part).split(b"\n\n")
            for event in events:
                if event.startswith(b"data: {"):
                    chunk = orjson.loads(event[6:])
                    choices = chunk["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        times.append((read, now))
                        response_id = chunk["id"]
    return row(response_id, sent_ns, times)


async def main() -> None:
    url, streams, rounds, tokens, rows_file = arguments()
    url += "/v1/chat/completions"
    rows: list[dict[str, Any]] = []

    async def user(session: aiohttp.ClientSession) -> None:
        for _ in range(rounds):
            rows.append(await one(session, url, body(tokens)))

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
        # Connections are opened, and the code is warm, before anything counts.
        await asyncio.gather(*(one(session, url, body(4)) for _ in range(streams)))
        before = cpu_s()
        await asyncio.gather(*(user(session) for _ in range(streams)))
        report(rows_file, rows, cpu_s() - before)


if "--uvloop" in sys.argv:
    import uvloop

    uvloop.install()
asyncio.run(main())
