"""Install, start and stop the two real servers on this machine's CPU.

python scripts/real_engines.py install llamacpp|vllm
python scripts/real_engines.py start llamacpp|vllm [--port PORT]
python scripts/real_engines.py stop llamacpp|vllm
python scripts/real_engines.py status
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from engine_install import CACHE, SetupError, install_llamacpp, install_vllm
from engine_server import RealServer, alive, answers, stop_group

PORTS = {"vllm": 8000, "llamacpp": 8001}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("install", "start", "stop", "status"))
    parser.add_argument("kind", nargs="?", choices=tuple(PORTS))
    parser.add_argument("--port", type=int, help="default: 8000 for vLLM, 8001 for llama.cpp")
    args = parser.parse_args()
    if args.kind is None and args.action != "status":
        parser.error(f"{args.action} what? llamacpp or vllm")
    try:
        if args.action == "install":
            (install_llamacpp if args.kind == "llamacpp" else install_vllm)()
        elif args.action == "start":
            start(args.kind, args.port or PORTS[args.kind])
        elif args.action == "stop":
            stop(args.kind)
        else:
            status()
    except SetupError as e:
        print(e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def start(kind: str, port: int) -> None:
    if running(kind) is not None:
        raise SetupError(f"a {kind} server of ours is running already: stop it first")
    url = f"http://127.0.0.1:{port}"
    if answers(url):
        raise SetupError(f"something else answers at {url} already: choose another --port")
    server = RealServer(kind, port)
    print(f"starting {kind} at {server.url}, log in {server.log} ...", flush=True)
    server.launch(stop_at_exit=False)
    try:
        server.wait_ready()
    except BaseException:
        server.stop()
        raise
    _pid_file(kind).write_text(f"{server.pid}\n")
    print(f"ready: --engine {kind}={kind}:{server.url}")


def stop(kind: str) -> None:
    pid = running(kind)
    if pid is None:
        print(f"no {kind} server of ours is running")
    else:
        stop_group(pid)
        print(f"{kind} stopped")
    _pid_file(kind).unlink(missing_ok=True)


def status() -> None:
    for kind in PORTS:
        installed = (CACHE / kind / ".step-packages").exists()
        pid = running(kind)
        print(f"{kind:9} {'installed' if installed else '-':10} {f'running, pid {pid}' if pid else '-'}")


def running(kind: str) -> int | None:
    """The process id of the server that `start` left running, if it lives."""
    try:
        pid = int(_pid_file(kind).read_text())
    except (OSError, ValueError):
        return None
    # A process id is used again after a reboot: look at the command before taking it for ours.
    ps = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True)
    ours = "serve_llamacpp" if kind == "llamacpp" else "vllm"
    return pid if alive(pid) and ours in ps.stdout.lower() else None


def _pid_file(kind: str) -> Path:
    return CACHE / f"{kind}.pid"


if __name__ == "__main__":
    sys.exit(main())
