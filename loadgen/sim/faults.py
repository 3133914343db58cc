"""Faults on demand: what can go wrong, or be unusual, between a server and its client. Pure.

A fault is written NAME[:ARG]. On the command line it may end in @SHARE, the share of requests that get it
(0 to 1); a request may ask for its own in the header `X-Sim-Fault: NAME[:ARG][, NAME...]`. A `Plan` is what
the faults of one request come to.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Plan:
    """How one answer is sent. The defaults are a server without faults."""

    names: list[str] = field(default_factory=list)
    # the text of the stream
    newline: str = "lf"
    space: bool = True
    fields: bool = False
    bom: bool = False
    ping_every: int = 0
    blank_end: bool = True
    reorder: bool = False
    spaces: bool = False
    # what the events say
    tokens_per_event: int = 1
    tricky: bool = False
    reasoning: int = 0
    tools: bool = False
    done: bool = True
    finish: bool = True
    usage: bool = True
    error_after: int | None = None
    # how the bytes are written
    split: int = 0
    split_utf8: bool = False
    coalesce: int = 1
    delay_s: float = 0.0
    head_byte_s: float = 0.0
    head_pieces: int = 1
    # how the connection and the answer end
    reset_after: int | None = None
    close_after: int | None = None
    stall_after: int | None = None
    status: int | None = None
    close: bool = False
    http10: bool = False
    gzip: bool = False
    content_type: str | None = None

    @property
    def rewrites(self) -> bool:
        """Whether events must be parsed and written anew."""
        return self.reorder or self.spaces or not (self.done and self.finish and self.usage)

    @property
    def plain(self) -> bool:
        """Whether bytes go out as they are made, a write a chunk."""
        return not self.names


class FaultError(ValueError):
    """A fault that does not exist or has a bad argument; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: its line of help and what it does to a plan."""

    text: str
    default: str
    apply: Callable[[Plan, str], None]


def _set(name: str, value: object) -> Callable[[Plan, str], None]:
    def apply(plan: Plan, arg: str) -> None:
        setattr(plan, name, value)

    return apply


def _arg(name: str, convert: Callable[[str], object]) -> Callable[[Plan, str], None]:
    def apply(plan: Plan, arg: str) -> None:
        setattr(plan, name, convert(arg))

    return apply


def _ms(arg: str) -> float:
    return float(arg) / 1000


FAULTS: dict[str, Fault] = {
    "crlf": Fault("lines of the stream end in CRLF", "", _set("newline", "crlf")),
    "cr": Fault("lines of the stream end in CR alone", "", _set("newline", "cr")),
    "mixed-newlines": Fault("every line ends in LF, CR or CRLF by turns", "", _set("newline", "mixed")),
    "no-space": Fault("`data:{` without the space", "", _set("space", False)),
    "fields": Fault(
        "events have id, event and retry lines, and comments between them", "", _set("fields", True)
    ),
    "bom": Fault("the stream begins with a byte order mark", "", _set("bom", True)),
    "ping": Fault("a comment line before every Nth event", "1", _arg("ping_every", int)),
    "no-blank-end": Fault("the blank line after the last event is missing", "", _set("blank_end", False)),
    "reorder": Fault("keys of every object in reverse order", "", _set("reorder", True)),
    "spaces": Fault("JSON with other white space", "", _set("spaces", True)),
    "tokens-per-event": Fault("N tokens an event", "3", _arg("tokens_per_event", int)),
    "tricky-text": Fault(
        'generated text that looks like the protocol: `"usage":{`, `"content":"`, escapes, U+2028',
        "",
        _set("tricky", True),
    ),
    "reasoning": Fault("the first N tokens are reasoning, not answer", "8", _arg("reasoning", int)),
    "tool-calls": Fault("the text comes as a tool call's arguments", "", _set("tools", True)),
    "no-done": Fault("[DONE] is missing", "", _set("done", False)),
    "no-finish": Fault("no finish_reason, no [DONE]", "", _set("finish", False)),
    "no-usage": Fault("no usage and no timings, though asked for", "", _set("usage", False)),
    "error": Fault("an error object in the 200 stream after N tokens", "4", _arg("error_after", int)),
    "split": Fault(
        "every event in writes of N bytes, 1 ms apart (0: cut anywhere)",
        "0",
        _arg("split", lambda a: int(a) or -1),
    ),
    "split-utf8": Fault(
        "writes end in the middle of characters (and the text has many)", "", _set("split_utf8", True)
    ),
    "coalesce": Fault("N events in one write", "4", _arg("coalesce", int)),
    "delay": Fault("every 8th event, and what comes behind it, N ms late", "40", _arg("delay_s", _ms)),
    "slow-headers": Fault("the head byte by byte, N ms apart", "1", _arg("head_byte_s", _ms)),
    "trickled-head": Fault("the head in N pieces, 5 ms apart", "3", _arg("head_pieces", int)),
    "reset": Fault("the connection is reset after N tokens", "4", _arg("reset_after", int)),
    "close": Fault(
        "the connection is closed after N tokens, in the middle of the stream", "4", _arg("close_after", int)
    ),
    "stall": Fault("after N tokens never another byte", "4", _arg("stall_after", int)),
    "429": Fault("429 Too Many Requests", "", _set("status", 429)),
    "500": Fault("500 Internal Server Error", "", _set("status", 500)),
    "503": Fault("503, the model is loading", "", _set("status", 503)),
    "gzip": Fault("the body is compressed, though nobody accepts it", "", _set("gzip", True)),
    "connection-close": Fault("Connection: close, and it is closed", "", _set("close", True)),
    "http10": Fault(
        "an HTTP/1.0 answer: no chunks, the end is the connection's end", "", _set("http10", True)
    ),
    "content-type": Fault("the content type is ARG", "text/html", _arg("content_type", str)),
}


def parse_fault(text: str) -> tuple[str, str, float]:
    """`NAME[:ARG][@SHARE]` as (name, argument, share); FaultError if it is none."""
    rest, at, share_text = text.strip().rpartition("@")
    if not at:
        rest, share_text = text.strip(), "1"
    name, _, arg = rest.partition(":")
    fault = FAULTS.get(name)
    if fault is None:
        raise FaultError(f"there is no fault {name!r}; `loadgen sim --faults` lists them")
    arg = arg or fault.default
    if arg.startswith("-"):
        raise FaultError(f"fault {text!r}: {arg} is less than nothing")
    try:
        share = float(share_text)
        fault.apply(Plan(), arg)
    except ValueError:
        raise FaultError(
            f"fault {text!r} is not NAME[:ARG][@SHARE], for example {name}:{fault.default or 1}@0.5"
        ) from None
    if not 0 <= share <= 1:
        raise FaultError(f"fault {text!r}: the share after @ is from 0 to 1")
    return name, arg, share


def make_plan(standing: Iterable[tuple[str, str, float]], asked: str, rng: random.Random) -> Plan:
    """The plan of one request: the server's standing faults by share, and what the request asks for."""
    plan = Plan()
    chosen = [(name, arg) for name, arg, share in standing if share >= 1 or rng.random() < share]
    chosen += [parse_fault(part)[:2] for part in asked.split(",") if part.strip()]
    for name, arg in chosen:
        FAULTS[name].apply(plan, arg)
        plan.names.append(f"{name}:{arg}" if arg else name)
    return plan


def describe() -> str:
    """The list for `--faults`."""
    lines = ["Faults (NAME[:ARG], the argument's default in parentheses):", ""]
    for name, fault in FAULTS.items():
        shown = f"{name}:ARG" if fault.default else name
        default = f" ({fault.default})" if fault.default else ""
        lines.append(f"  {shown:22} {fault.text}{default}")
    lines += [
        "",
        "For a whole server: --fault NAME[:ARG][@SHARE], repeatable; @0.1 is one request in ten.",
        "For one request: the header X-Sim-Fault: NAME[:ARG], several with commas.",
    ]
    return "\n".join(lines)
