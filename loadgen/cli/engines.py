"""`loadgen engines`: what each endpoint is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.table import Table
from rich.text import Text

from loadgen import exitcodes
from loadgen.config import EngineSpec, Settings, engine_texts, load_settings
from loadgen.engines import EngineError, EngineInfo, make_engine
from loadgen.engines.errors import clean
from loadgen.screen import Console

WIDE = 1000  # for pipes and files: nothing is folded
COLUMNS = ("name", "kind", "url", "server", "version", "model", "context", "slots", "simulated")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        action="append",
        metavar="NAME=KIND:URL",
        help="a server to ask, kinds vllm, llamacpp, openai; default: those of loadgen.toml, of VLLM_URL and "
        "LLAMACPP_URL, else 127.0.0.1:8000 (vllm) and :8001 (llamacpp)",
    )
    parser.add_argument(
        "--config", "--loadgen-config", metavar="FILE", type=Path, help="instead of ./loadgen.toml"
    )


def execute(args: argparse.Namespace) -> int:
    """Exit code 1 if an engine that somebody named cannot be used, or none at all answers."""
    texts = engine_texts(",".join(args.engine or ()))
    settings = load_settings({"engines": texts}, config_file=args.config)
    every = [spec.at(k) for spec in settings.engines for k in range(len(spec.urls))]
    found = [(spec, ask(spec, settings)) for spec in every]
    errors = [e for _, e in found if isinstance(e, EngineError)]
    terminal = Console()
    width = terminal.width if terminal.is_terminal else None
    Console(width=width or WIDE).print(table(found, width))
    for error in errors:
        print(error, file=sys.stderr)
    named = any(spec.named and isinstance(answer, EngineError) for spec, answer in found)
    return exitcodes.FAILED if named or len(errors) == len(found) else exitcodes.OK


def ask(spec: EngineSpec, settings: Settings) -> EngineInfo | EngineError:
    """What the engine says of itself, or why it does not."""
    spec.api_key()
    engine = make_engine(spec, settings)
    try:
        health = engine.health()
        if not health.ready:
            return EngineError(health.text, health.reason)
        return engine.identify()
    except EngineError as e:
        return e
    finally:
        engine.close()


def table(found: list[tuple[EngineSpec, EngineInfo | EngineError]], width: int | None) -> Table:
    """An engine a row; a column where `width`, in characters, is too small for that (None: no limit)."""
    rows = [[clean(cell) for cell in _cells(spec, answer)] for spec, answer in found]
    needed = sum(max(len(c) for c in column) + 1 for column in zip(COLUMNS, *rows, strict=True))
    if width is not None and needed > width:
        out = Table(box=None, pad_edge=False, show_header=False)
        for line in zip(COLUMNS, *rows, strict=True):
            out.add_row(*(Text(cell) for cell in line))
        return out
    out = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in COLUMNS:
        out.add_column(column, no_wrap=True)
    for row in rows:
        out.add_row(*(Text(cell) for cell in row))
    return out


def _cells(spec: EngineSpec, answer: EngineInfo | EngineError) -> list[str]:
    row = [spec.name, spec.kind, spec.url]
    if isinstance(answer, EngineError):
        return [*row, f"({answer.reason})", *[""] * (len(COLUMNS) - len(row) - 1)]
    return [
        *row,
        answer.server,
        answer.version or "?",
        answer.model or "none",
        str(answer.context or "?"),
        str(answer.slots or "-"),
        "yes" if answer.simulated else "no",
    ]
