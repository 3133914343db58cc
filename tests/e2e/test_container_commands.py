"""The commands of the Locust containers, with their environment and in the folder that the image has."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from loadgen.sim.launch import SimProcess
from tests.support.compose import services
from tests.support.locust_run import LocustRun


def start(folder: Path, service: dict[str, Any], name: str = "runs", **replaced: str) -> LocustRun:
    """The service's command as it stands, but for the words in `replaced` (by the name before them), with its
    environment and what is mounted from the repository."""
    for mount in service["volumes"]:
        if mount["type"] == "bind":
            at = folder / Path(mount["target"]).name
            at.unlink(missing_ok=True)
            at.symlink_to(mount["source"])
    program, *words = service["command"]
    assert program == "locust"
    for flag, value in replaced.items():
        words[words.index(f"--{flag.replace('_', '-')}") + 1] = value
    return LocustRun([sys.executable, "-m", "locust", *words], folder / name, service["environment"])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_the_page_comes_up_its_health_check_says_so_and_it_stops_well(
    tmp_path: Path, sims: tuple[SimProcess, SimProcess]
) -> None:
    port = free_port()
    ports = f"--web-port {port} --master-bind-port {free_port()}"
    urls = {"VLLM_URL": sims[0].url, "LLAMACPP_URL": sims[1].url}
    service = services(tmp_path, LOCUST_ARGS=ports, **urls)["locust"]
    interpreter, *check = service["healthcheck"]["test"][1:]
    assert interpreter == "python"
    check[-1] = check[-1].replace("8089", str(port))

    def healthy(_: object) -> bool:
        return subprocess.run([sys.executable, *check], capture_output=True, timeout=30).returncode == 0

    assert not healthy(None)
    run = start(tmp_path, service, web_host="127.0.0.1")
    try:
        run.wait_for(healthy)
        run.send(signal.SIGTERM)  # docker stop
        assert run.wait().code == 0, run.err
    finally:
        run.stop()
