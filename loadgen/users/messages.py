"""What master and workers say to each other, in Locust's own message channel.

master -> worker: RUN (what is measured), BATCH (jobs, to be got ready), BEGIN (send them), HALT (send nothing
more), CUT (end what is in flight), CLOCK (what time is it there?), END.
worker -> master: HELLO, USERS (how many have joined), READY, ROWS (records and seconds), DONE, CLOCK, BYE,
PROBLEM.

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
HALT = "loadgen_halt"
CUT = "loadgen_cut"
CLOCK = "loadgen_clock"
END = "loadgen_end"
HELLO = "loadgen_hello"
USERS = "loadgen_users"
READY = "loadgen_ready"
ROWS = "loadgen_rows"
DONE = "loadgen_done"
BYE = "loadgen_bye"
PROBLEM = "loadgen_problem"

TO_WORKER = (RUN, BATCH, BEGIN, HALT, CUT, CLOCK, END)
TO_MASTER = (HELLO, USERS, READY, ROWS, DONE, CLOCK, BYE, PROBLEM)

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


def pack_lines(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Journal lines, in messages of a bounded size, in order."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) > ROWS_BYTES:
            yield zlib.compress(b"\n".join(part), 1)
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield zlib.compress(b"\n".join(part), 1)


def unpack_lines(data: bytes) -> list[bytes]:
    """Raises ValueError if it is nothing that `pack_lines` has made."""
    try:
        return [line for line in zlib.decompress(data).split(b"\n") if line]
    except zlib.error as e:
        raise ValueError(f"records cannot be read: {e}") from None


def prompt_rows(jobs: Iterable[tuple[Prompt, int]]) -> list[list[Any]]:
    """Prompts with the answer length that is asked for, as JSON."""
    return [[p.pair, p.text, p.tokens, p.messages, p.output_tokens, n] for p, n in jobs]


def prompts_from(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Prompt, int]]:
    """The other way round."""
    for pair, text, tokens, messages, output_tokens, asked in rows:
        yield Prompt(pair, text, tokens, tuple(messages) if messages else None, output_tokens), asked
