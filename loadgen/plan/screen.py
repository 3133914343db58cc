"""A plan in 80 columns."""

from __future__ import annotations

import textwrap

from loadgen.plain import number, plural
from loadgen.plan.cost import Cost
from loadgen.plan.estimate import Plan
from loadgen.plan.machine import Machine

WIDTH = 80


def lines(plan: Plan, cost: Cost, machine: Machine) -> list[str]:
    """What is needed, how to start it, what this machine lacks, and where the figures come from."""
    load = plan.load
    several = plan.workers > 1
    rows = [
        (
            "workers" if several else "processes",
            f"{plan.workers:,}",
            f"each {_percent(plan.busy)} busy with {plural(plan.streams, 'stream')}",
        ),
        (
            "cores",
            f"{plan.cores:,}",
            "a worker each, the master, sampling and delivery"
            if several
            else "the generator, sampling and delivery",
        ),
        ("memory", _bytes(plan.memory_mb), "of all processes"),
        ("open files", f"{plan.descriptors:,}", f"of {'each worker' if several else 'the process'}"),
        ("network, in", _bits(plan.received_mbit_s), "from the servers"),
        ("network, out", _bits(plan.sent_mbit_s), "to them"),
        ("journal", f"{_bytes(plan.journal_mb_an_hour)}", "an hour"),
    ]
    if plan.master_busy is not None and plan.channel_mbit_s is not None:
        text = f"busy, taking in {_bits(plan.channel_mbit_s)} of records"
        rows.insert(1, ("master", _percent(plan.master_busy), text))
    out = [
        f"{plural(load.concurrency, 'stream')} of {load.tokens_per_second:g} tokens/s: "
        f"{number(load.events_per_s)} events/s, {number(load.requests_per_s)} requests/s",
        f"({load.output_tokens:,} tokens an answer, the first after {load.ttft_s:g} s, "
        f"{_events(load.events_per_token)} a token)",
        "",
        *(f"  {name:13} {value:>12}  {text}" for name, value, text in rows),
        "",
    ]
    start = f"locust -f locustfiles/concurrency.py -u {load.concurrency}"
    if load.rate is not None:
        start = f"locust -f locustfiles/open_loop.py --rate {load.rate:g}"
    out += ["on one machine:", f"  {start} --processes {plan.workers}" if several else f"  {start}"]
    if several:
        out += [
            "on several, one process a core:",
            f"  {start} --master",
            f"  {' '.join(start.split()[:3])} --worker --master-host ADDRESS",
        ]
    for sentence in (*machine.lacks(plan), *plan.notes):
        out += textwrap.wrap(f"! {sentence}", WIDTH, subsequent_indent="  ")
    source = (
        f"An event costs {number(cost.event_us)} us of CPU, a request {number(cost.request_us)} us "
        f"({cost.source}). --measure measures this machine."
    )
    return [*out, "", *textwrap.wrap(source, WIDTH)]


def _events(of_a_token: float) -> str:
    return "one event" if of_a_token == 1 else f"{of_a_token:g} events"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "< 1 %"


def _bytes(mb: float) -> str:
    return f"{number(mb / 1000)} GB" if mb >= 1000 else f"{number(mb)} MB"


def _bits(mbit_s: float) -> str:
    return f"{number(mbit_s / 1000)} Gbit/s" if mbit_s >= 1000 else f"{number(mbit_s)} Mbit/s"
