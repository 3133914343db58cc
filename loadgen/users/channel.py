"""The port on which a master waits for its workers."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.exception import RPCError
from locust.runners import MasterRunner

import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen import exitcodes

LOCAL = "127.0.0.1"


def own_channel(argv: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Defaults for `--processes`, whose workers are this master's children: a free port, seen from here
    alone. With Locust's one port for all, the children of a second run would join the first. Nothing if
    somebody says where the master is.

    >>> own_channel(["--processes", "2", "--master-bind-port", "5557"], {}), own_channel(["--master"], {})
    ({}, {})
    """
    several = any(a.split("=")[0] == "--processes" for a in argv) or "LOCUST_PROCESSES" in env
    said = any(a.startswith("--master-") or a == "--worker" for a in argv)
    if not several or said or any(name.startswith(("LOCUST_MASTER_", "LOCUST_MODE_")) for name in env):
        return {}
    with socket.socket() as s:
        s.bind((LOCAL, 0))
        port: int = s.getsockname()[1]
    return {"master_bind_host": LOCAL, "master_host": LOCAL, "master_bind_port": port, "master_port": port}


def install() -> None:
    """A port that is taken is said in a sentence. Once, before a runner is made."""
    make = MasterRunner.__init__

    def make_or_say(
        runner: MasterRunner, environment: Any, master_bind_host: str, master_bind_port: int
    ) -> None:
        try:
            make(runner, environment, master_bind_host, master_bind_port)
        except RPCError as e:
            print(
                f"loadgen: no worker could reach port {master_bind_port} ({e}): end the master that has it, "
                "or choose another with --master-bind-port, and --master-port for each worker",
                file=sys.stderr,
            )
            sys.exit(exitcodes.FAILED)

    MasterRunner.__init__ = make_or_say  # type: ignore[assignment,method-assign]
