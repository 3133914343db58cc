"""Running simulated engines in this process until somebody says stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import signal
import sys
from collections.abc import Callable

from loadgen.sim import loop
from loadgen.sim.server import Options, Server


async def serve(options: list[Options], ready: Callable[[list[Server]], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called when all listen. OSError as from `start`."""
    stop = asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    servers = [Server(o) for o in options]
    try:
        for server in servers:
            try:
                await server.start()
            except OSError as e:
                raise OSError(port_problem(server.options, e)) from None
        ready(servers)
        await stop.wait()
    finally:
        for server in servers:
            with contextlib.suppress(OSError):
                await server.stop()


def port_problem(o: Options, e: OSError) -> str:
    """One sentence about why a port could not be had."""
    where = f"{o.host}:{o.port}"
    if e.errno == errno.EADDRINUSE:
        return f"{where} is taken by another program: stop that one, or choose a port with --port"
    if e.errno == errno.EACCES:
        return f"{where}: ports below 1024 are not for everyone, choose another with --port"
    return f"cannot listen on {where}: {e.strerror or e}"


def print_ready(servers: list[Server]) -> None:
    """A line of JSON for a program that waits for us."""
    rows = [{"kind": s.options.kind, "url": s.url, "port": s.port, "model": s.view.model} for s in servers]
    print(json.dumps({"ready": rows}), flush=True)


def run(options: list[Options], ready: Callable[[list[Server]], None]) -> int:
    """Serve; the exit code."""
    try:
        loop.run(serve(options, ready))
    except OSError as e:
        print(f"loadgen sim: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0
