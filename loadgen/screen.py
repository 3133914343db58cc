"""The terminal, as rich writes to it."""

from __future__ import annotations

from rich import console


class Console(console.Console):
    """A closed pipe is an error like any other here. rich would end the program, with exit code 1: for a gate
    that is an answer, and a run still has things to write."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
