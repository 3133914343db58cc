"""What master and workers say to each other, in Locust's own message channel.

master -> worker: CLOCK (what time is it there?), RUN (what is measured), BATCH (jobs, to be got ready), BEGIN
(send them), CLOSE (an open batch has been open for long enough), HALT (send nothing more), CUT (end what is
in flight), END.
worker -> master: HERE (it listens), CLOCK, HELLO (it takes part), USERS (how many have joined), READY, ROWS
(records and seconds), DONE, BYE, PROBLEM (a sentence: it cannot).

Messages of one worker arrive in the order in which they were sent, so DONE means that all records of the
batch are there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from loadgen.workload.prompt import Prompt

RUN = "loadgen_run"
BATCH = "loadgen_batch"
BEGIN = "loadgen_begin"
CLOSE = "loadgen_close"
HALT = "loadgen_halt"
CUT = "loadgen_cut"
CLOCK = "loadgen_clock"
END = "loadgen_end"
HERE = "loadgen_here"
HELLO = "loadgen_hello"
USERS = "loadgen_users"
READY = "loadgen_ready"
ROWS = "loadgen_rows"
DONE = "loadgen_done"
BYE = "loadgen_bye"
PROBLEM = "loadgen_problem"

TO_WORKER = (RUN, BATCH, BEGIN, CLOSE, HALT, CUT, CLOCK, END)
TO_MASTER = (HERE, HELLO, USERS, READY, ROWS, DONE, CLOCK, BYE, PROBLEM)

ROWS_BYTES = 2**20  # uncompressed, of one message: the channel is shared with Locust's heartbeats


def pack(value: Any) -> bytes:
    """JSON, compressed: prompts and records are text."""
    return zlib.compress(orjson.dumps(value), 1)


def unpack(data: bytes) -> Any:
    """Raises ValueError if it is nothing that `pack` has made."""
    try:
        return orjson.loads(zlib.decompress(data))
    except zlib.error as e:
        raise ValueError(f"a message cannot be read: {e}") from None


def pack_lines(lines: Sequence[bytes]) -> tuple[bytes, int]:
    """The first of these journal lines, as many as a message of a bounded size holds (one at least), and
    their number."""
    count = size = 0
    for line in lines:
        if count and size + len(line) > ROWS_BYTES:
            break
        count += 1
        size += len(line)
    return zlib.compress(b"\n".join(lines[:count]), 1), count


def unpack_lines(data: bytes | None) -> list[bytes]:
    """None where there are none. Raises ValueError if it is nothing that `pack_lines` has made."""
    if data is None:
        return []
    try:
        return [line for line in zlib.decompress(data).split(b"\n") if line]
    except zlib.error as e:
        raise ValueError(f"records cannot be read: {e}") from None


def prompt_rows(jobs: Iterable[tuple[Prompt, int]]) -> list[list[Any]]:
    """Prompts with the answer length that is asked for, as JSON."""
    return [
        [p.pair, p.text, p.tokens, p.messages, p.output_tokens, p.traffic_class, p.follow_ups, n]
        for p, n in jobs
    ]


def prompts_from(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Prompt, int]]:
    """The other way round."""
    for pair, text, tokens, messages, output_tokens, traffic_class, follow_ups, asked in rows:
        talk = tuple(messages) if messages else None
        yield Prompt(pair, text, tokens, talk, output_tokens, traffic_class, tuple(follow_ups)), asked
