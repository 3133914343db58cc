"""Which requests a turn has: their lengths and classes, in the order in which they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadgen.workload.arrivals import Arrival
from loadgen.workload.classes import Wanted, length_class, mixed

if TYPE_CHECKING:
    from loadgen.config import Settings


def wanted(settings: Settings, block: int, arrivals: Sequence[Arrival] | None = None) -> list[Wanted]:
    """The prompts of one block, the same for every engine (of conversations: their first messages).

    A mix is shuffled anew for each block; several lengths come one after the other, the shortest first. In an
    open loop there is one for each of the block's `arrivals`, of the lengths that a trace asks for.
    """
    output = settings.output_tokens
    requests = settings.turn_requests if arrivals is None else len(arrivals)
    if settings.classes:
        return mixed(settings.classes, requests, f"{settings.seed}/mix/{block}")
    if arrivals is not None:
        return [
            Wanted(a.prompt_tokens or settings.prompt_tokens, a.output_tokens or output) for a in arrivals
        ]
    if settings.prompt_lengths:
        return [
            Wanted(length, output, length_class(length))
            for length in settings.prompt_lengths
            for _ in range(settings.turn_requests)
        ]
    return [Wanted(settings.prompt_tokens, output)] * (settings.turn_requests // settings.exchanges)
