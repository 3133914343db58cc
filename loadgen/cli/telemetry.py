"""`loadgen telemetry`: sample GPUs, show them, and keep or serve the samples. Needs no Locust."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.text import Text

from loadgen import exitcodes
from loadgen.config import ConfigError, Settings, load_settings
from loadgen.plain import clean
from loadgen.screen import Console
from loadgen.store import StoreError
from loadgen.store.manifest import host_facts
from loadgen.telemetry.agent import AgentServer, RowBuffer
from loadgen.telemetry.digest import Digest
from loadgen.telemetry.hub import Hub, make_hub
from loadgen.telemetry.recording import SCENARIO, Delivery, Recording
from loadgen.telemetry.screen import facts_line, live, plain_line

HELP = "sample the GPUs of this machine: live table, gpu.jsonl, or an agent"
LISTEN = "127.0.0.1:9467"
LOG_S = 60.0
DELIVER_S = 30.0

DESCRIPTION = """\
Samples NVIDIA GPUs once a second: utilisation, memory by process, power,
energy, clocks and what holds them back, temperature, PCIe, ECC. It shows a
live table and writes a directory of its own, runs/..._telemetry, that
`loadgen ship` can deliver; with INFLUXDB_URL set it delivers by itself.

A run on a GPU host does this already; the command is for looking, for load
that comes from elsewhere, and, with --listen, for GPU hosts that are not the
one that makes the load."""

EPILOG = """\
examples:
  loadgen telemetry                         all GPUs, until Ctrl-C
  loadgen telemetry --gpus 0,1 --interval 0.5 --duration 60
  loadgen telemetry --dcgm http://node7:9400/metrics

on a GPU host, for a generator elsewhere:
  export LOADGEN_TELEMETRY_TOKEN=...        the same on both machines
  loadgen telemetry --listen 0.0.0.0:9467   here
  loadgen run concurrency --agents http://gpuhost:9467      there

The token crosses the network as it is: over networks that you do not trust,
put TLS in front of the port."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--gpus", metavar="LIST", help="which, as 0,1 (default: all)")
    parser.add_argument("--interval", metavar="S", type=float, help="seconds between samples (default: 1)")
    parser.add_argument("--duration", metavar="S", type=float, help="end after so many seconds")
    parser.add_argument("--dcgm", metavar="URLS", action="append", help="also read these dcgm-exporters")
    parser.add_argument("--agents", metavar="URLS", action="append", help="also read these agents")
    parser.add_argument(
        "--engine",
        action="append",
        metavar="NAME=KIND:URL",
        help="whose processes to name; default: as `loadgen run`",
    )
    parser.add_argument(
        "--listen",
        nargs="?",
        const=LISTEN,
        metavar="HOST:PORT",
        help=f"serve the samples (default address: {LISTEN}); keeps no directory unless --runs-dir is given",
    )
    parser.add_argument(
        "--runs-dir", metavar="DIR", type=Path, help="where the directory is made (default: runs)"
    )
    parser.add_argument(
        "--config", "--loadgen-config", metavar="FILE", type=Path, help="instead of ./loadgen.toml"
    )


def execute(args: argparse.Namespace) -> int:
    """Exit code 1 if there is no GPU to sample, or the samples could not be kept or delivered."""
    if args.duration is not None and not args.duration > 0:
        raise ConfigError("--duration is a number of seconds above 0")
    settings = _settings(args)
    server = _server(args.listen, settings)
    recording: Recording | None = None
    try:
        if args.listen is None or args.runs_dir is not None:
            recording = Recording(settings.runs_dir, settings)
        return _sample(args, settings, server, recording)
    except StoreError as e:
        print(f"loadgen telemetry: {e}", file=sys.stderr)
        return exitcodes.FAILED
    finally:
        if server:
            server.server_close()


def _settings(args: argparse.Namespace) -> Settings:
    # Agents of the settings are a run's: one of them may be this very command.
    telemetry: dict[str, Any] = {"gpu": "on", "agents": _listed(args.agents)}
    if args.gpus is not None:
        try:
            telemetry["gpus"] = tuple(int(part) for part in args.gpus.split(",") if part.strip())
        except ValueError:
            raise ConfigError(f"--gpus {args.gpus!r} is not a list of numbers like 0,1") from None
    if args.interval is not None:
        telemetry["interval_s"] = args.interval
    if args.dcgm is not None:
        telemetry["dcgm"] = _listed(args.dcgm)
    flags = {"telemetry": telemetry, "engines": list(_listed(args.engine)), "runs_dir": args.runs_dir}
    settings = load_settings(flags, defaults={"scenario": SCENARIO}, config_file=args.config)
    # Missing tokens are told before anything is sampled or made.
    if settings.influxdb.url:
        settings.influxdb.token()
    if settings.telemetry.agents:
        settings.telemetry.token()
    return settings


def _listed(texts: list[str] | None) -> tuple[str, ...]:
    """Flags that may be repeated, and hold several values with commas between."""
    return tuple(part.strip() for text in texts or [] for part in text.split(",") if part.strip())


def _server(listen: str | None, settings: Settings) -> AgentServer | None:
    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and len(port) < 6) or int(port) > 65535:
        raise ConfigError(f"--listen {listen!r} is not HOST:PORT, for example {LISTEN}")
    token = settings.telemetry.token()
    try:
        return AgentServer((host.strip("[]"), int(port)), token, RowBuffer())
    except (OSError, UnicodeError) as e:
        said = getattr(e, "strerror", None) or e
        raise ConfigError(f"--listen {listen}: {said}") from None


def _sample(
    args: argparse.Namespace, settings: Settings, server: AgentServer | None, recording: Recording | None
) -> int:
    digest = Digest()
    notes: deque[str] = deque(maxlen=100)

    def write(row: Mapping[str, Any]) -> None:
        digest.add(row)
        if row["kind"] == "note":
            notes.append(row["text"])
        if recording:
            recording.write(row)
        if server:
            server.buffer.write(row)

    hub = make_hub(
        settings.telemetry, [(e.name, e.url) for e in settings.engines], host_facts()["name"], write
    )
    with _stopping() as stopped:
        hub.open()
        if not hub.facts:
            _abandon(recording)
            print(f"loadgen telemetry: {'; '.join(hub.notes)}", file=sys.stderr)
            return exitcodes.FAILED
        delivery = None
        if recording:
            recording.start(hub.facts)
            delivery = Delivery(recording.run, settings) if settings.influxdb.url else None
        hub.start()
        if server:
            server.start()
        _show(hub, notes, stopped, args.duration, server, recording, delivery)
        hub.stop()
        if server:
            server.shutdown()
    for line in digest.lines():
        print(line)
    return _finish(recording, delivery, settings)


def _abandon(recording: Recording | None) -> None:
    """There is nothing to keep: no directory is left behind."""
    if recording:
        recording.finish()
        for path in recording.run.path.iterdir():
            path.unlink()
        recording.run.path.rmdir()


def _finish(recording: Recording | None, delivery: Delivery | None, settings: Settings) -> int:
    code = exitcodes.OK
    if recording:
        if problem := recording.finish():
            print(f"loadgen telemetry: {problem}", file=sys.stderr)
            code = exitcodes.FAILED
        print(f"samples: {recording.run.path}")
    if delivery and not delivery.finish(DELIVER_S):
        why = clean(delivery.status.get("why") or "it has not ended yet", 300)
        print(
            f"loadgen telemetry: not all of it is delivered to {settings.influxdb.url}: {why} "
            f"(loadgen ship {recording.run.path if recording else ''} does the rest)",
            file=sys.stderr,
        )
        code = exitcodes.FAILED
    return code


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set: both end the command as it should end."""
    stopped = threading.Event()
    before = {s: signal.signal(s, lambda *_: stopped.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(
    hub: Hub,
    notes: deque[str],
    stopped: threading.Event,
    duration: float | None,
    server: AgentServer | None,
    recording: Recording | None,
    delivery: Delivery | None,
) -> None:
    """A live table on a terminal; elsewhere the facts, then a line a GPU every minute."""
    console = Console()
    for fact in hub.facts:
        console.print(Text(facts_line(fact)))
    if server:
        console.print(Text(f"serving samples at {server.url}/v1/rows"))
    if recording:
        console.print(Text(f"writing {recording.run.path}"))
    until = time.monotonic() + (duration if duration is not None else float("inf"))
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as screen:
            while not stopped.wait(min(0.5, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
                heading = _heading(delivery)
                screen.update(live(hub.latest(), hub.facts, list(notes), heading), refresh=True)
        return
    sys.stdout.flush()
    said = 0
    at = time.monotonic() + LOG_S
    while not stopped.wait(min(0.5, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
        for note in list(notes)[said:]:
            print(f"- {clean(note, 300)}", flush=True)
        said = len(notes)
        if time.monotonic() >= at:
            at += LOG_S
            for row in hub.latest():
                print(plain_line(row), flush=True)


def _heading(delivery: Delivery | None) -> str:
    delivered = ""
    if delivery and (status := delivery.status):
        why = f": {clean(status['why'], 60)}" if status.get("why") else ""
        delivered = f" · InfluxDB {status.get('state', '')}, {status.get('lines', 0):,} lines{why}"
    return f"{time.strftime('%H:%M:%S')}{delivered} · Ctrl-C ends"
