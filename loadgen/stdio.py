"""Standard streams as a program finds them: closed, or of an encoding that lacks characters."""

from __future__ import annotations

import io
import os
import sys


def make_usable() -> None:
    """After this, printing raises nothing but OSError.

    A stream that was closed (`2>&-`) becomes /dev/null: Python has None there, on which any `write` is an
    AttributeError in whoever prints. One that is not UTF-8 shows `?` for what it lacks.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (as long as we live)
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def nobody_reads() -> None:
    """The pipe behind standard output is closed: Python's own flush at exit must not meet it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
