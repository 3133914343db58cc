"""Which requests a turn has: their lengths and classes, in the order in which they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.workload.classes import Wanted, length_class, mixed

if TYPE_CHECKING:
    from loadgen.config import Settings


def wanted(settings: Settings, block: int) -> list[Wanted]:
    """The prompts of one block, the same for every engine (of conversations: their first messages).

    A mix is shuffled anew for each block; several lengths come one after the other, the shortest first.
    """
    output = settings.output_tokens
    if settings.classes:
        return mixed(settings.classes, settings.turn_requests, f"{settings.seed}/mix/{block}")
    if settings.prompt_lengths:
        return [
            Wanted(length, output, length_class(length))
            for length in settings.prompt_lengths
            for _ in range(settings.turn_requests)
        ]
    return [Wanted(settings.prompt_tokens, output)] * (settings.turn_requests // settings.exchanges)
