"""RealServer: one real engine as a child process, from its start to its end.

with RealServer("llamacpp") as server:
    requests.get(server.url + "/health")
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from engine_install import LOGS, ROOT, SetupError, converted_model, llamacpp_venv, model_file, vllm_venv

MODEL_NAME = "smollm2"
READY_S = {"llamacpp": 60.0, "vllm": 240.0}
# One core stays free for the load generator and for the servers' own HTTP threads: computing threads that
# spin on every core make both wait for milliseconds.
THREADS = max(1, (os.cpu_count() or 2) - 1)
VLLM_ENV = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": str(THREADS),
}


def free_port() -> int:
    """A TCP port of loopback that nobody listens on just now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


# fmt: off
def llamacpp_command(port: int, slots: int, context: int) -> list[str]:
    """llama.cpp's server: `slots` requests at once, `context` tokens each. SetupError when not installed."""
    venv = llamacpp_venv()
    return [
        str(venv / "bin" / "python"), str(ROOT / "scripts" / "serve_llamacpp.py"),
        "--model", str(model_file(venv)), "--alias", MODEL_NAME, "--port", str(port),
        "--slots", str(slots), "--context", str(context * slots), "--threads", str(THREADS),
    ]


def vllm_command(port: int, slots: int, context: int) -> list[str]:
    """vLLM on CPU: at most `slots` requests at once, `context` tokens each. SetupError when not installed."""
    program, model = vllm_venv() / "bin" / "vllm", converted_model()
    if not program.exists() or not (model / "config.json").exists():
        raise SetupError("vLLM is not installed here: run `python scripts/real_engines.py install vllm`")
    return [
        str(program), "serve", str(model), "--served-model-name", MODEL_NAME, "--host", "127.0.0.1",
        "--port", str(port), "--enforce-eager", "--dtype", "float32", "--max-model-len", str(context),
        "--max-num-seqs", str(slots), "--distributed-executor-backend", "uni",
    ]
# fmt: on


_KINDS = {"llamacpp": (llamacpp_command, {}, 4), "vllm": (vllm_command, VLLM_ENV, 16)}


class RealServer:
    """A server process, ready (/health says 200) inside the `with` block. Its output goes to `log`."""

    def __init__(self, kind: str, port: int = 0, *, slots: int | None = None, context: int = 4096) -> None:
        self.kind = kind
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log: Path = LOGS / f"{kind}-{self.port}.log"
        make_command, env, usual_slots = _KINDS[kind]
        self._command = make_command(self.port, slots or usual_slots, context)
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealServer:
        self.launch()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def launch(self, *, stop_at_exit: bool = True) -> None:
        """Start the process in a group of its own, so that Ctrl-C reaches it through `stop` alone."""
        LOGS.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._env},
                start_new_session=True,
            )
        if stop_at_exit:
            atexit.register(self.stop)

    def wait_ready(self) -> None:
        """Poll /health until it says 200; SetupError that names the log if the server ends or is too slow."""
        limit = time.monotonic() + READY_S[self.kind]
        while not answers(self.url):
            if self._process is not None and self._process.poll() is not None:
                raise SetupError(
                    f"the {self.kind} server ended with code {self._process.returncode} while starting"
                    f"{self._last_words()}; its output is in {self.log}"
                )
            if time.monotonic() > limit:
                raise SetupError(
                    f"the {self.kind} server was not ready after {READY_S[self.kind]:.0f} s; "
                    f"its output is in {self.log}"
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for the whole group after 10 s."""
        process, self._process = self._process, None
        atexit.unregister(self.stop)
        if process is not None:
            stop_group(process.pid, process)

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f" ({lines[-1][:200]})" if lines else ""


def answers(url: str) -> bool:
    """Whether the server at `url` says that it is ready for requests."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def stop_group(pid: int, process: subprocess.Popen[bytes] | None = None, patience_s: float = 10.0) -> None:
    """End a process that was started in a session of its own, and whatever it has started itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + patience_s
    while time.monotonic() < limit and (process.poll() is None if process else alive(pid)):
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if process is not None:
        process.wait()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
