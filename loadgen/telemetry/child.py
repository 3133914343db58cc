"""The telemetry process of a run: `python -m loadgen.telemetry.child RUN_DIR`.

Without gevent and Locust. It samples GPUs into gpu.jsonl and engines' counters into engine.jsonl, and talks
with the generator in JSON lines:

    stdin, first   {"telemetry": TelemetrySpec, "engines": [EngineSpec, ...], "host": name}
    stdout, first  {"ready": true, "gpus": [facts], "notes": [sentences]}
                   or {"error": sentence} and exit code 1: `gpu = "on"` and there is none
    stdin          {"cmd": "scrape", "engine": name}   {"cmd": "gpu"}   {"cmd": "stop"}
    stdout         {"engine": name, "text": /metrics or null, "error"?}   {"gpus": [latest samples]}

Each command but `stop` has one line as its answer, in order. The end of stdin is a `stop`: a generator that
was killed leaves nothing behind. Ctrl-C is ignored, as the generator gets it too and knows what to do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import orjson
from pydantic import ValidationError

from loadgen import exitcodes
from loadgen.config import ConfigError, EngineSpec, TelemetrySpec
from loadgen.store.errors import StoreError
from loadgen.telemetry.hub import Hub, make_hub
from loadgen.telemetry.output import RowFile

GPU_FILE = "gpu.jsonl"
ENGINE_FILE = "engine.jsonl"
NICE = 5  # the generator comes first


class EngineScraper(Protocol):
    """engine_metrics.Scraper."""

    def start(self) -> None: ...
    def scrape_now(self, name: str) -> str | None: ...
    def problem(self, name: str) -> str | None: ...
    def stop(self) -> None: ...


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m loadgen.telemetry.child RUN_DIR", file=sys.stderr)
        return exitcodes.USAGE
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    code = serve(Path(argv[0]), sys.stdin.buffer, sys.stdout.buffer)
    # Not sys.exit: a thread that is stuck in the driver would be waited for by the interpreter's end.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _end(*_: object) -> None:
    raise SystemExit


def serve(run_dir: Path, stdin: BinaryIO, stdout: BinaryIO) -> int:
    """The whole conversation. The exit code."""
    gpu_file, engine_file = RowFile(run_dir / GPU_FILE), RowFile(run_dir / ENGINE_FILE)
    hub: Hub | None = None
    scraper: EngineScraper | None = None
    try:
        spec, engines, host = _first_line(stdin)
        # The counters of one server of several would be taken for those of the engine.
        single = [e for e in engines if not e.replicas]
        if spec.engine_metrics == "on" and single:
            scraper = _scraper(single, spec.interval_s, engine_file)
            scraper.start()
        hub = make_hub(spec, [(e.name, url) for e in engines for url in e.urls], host, gpu_file.write)
        hub.open()
        if spec.gpu == "on" and not hub.facts:
            raise ConfigError("; ".join(hub.notes) or "no GPU was found")
        hub.start()
        _say(stdout, {"ready": True, "gpus": hub.facts, "notes": hub.notes})
        _answer(stdin, stdout, hub, scraper)
    except (ConfigError, StoreError) as e:
        _say(stdout, {"error": str(e)})
        return exitcodes.FAILED
    except (BrokenPipeError, SystemExit):
        pass
    finally:
        if scraper:
            scraper.stop()
        if hub:
            hub.stop()
        for file in (gpu_file, engine_file):
            if problem := file.close():
                print(problem, file=sys.stderr)
    return exitcodes.OK


def _first_line(stdin: BinaryIO) -> tuple[TelemetrySpec, list[EngineSpec], str]:
    try:
        first = orjson.loads(stdin.readline())
        spec = TelemetrySpec(**first.get("telemetry", {}))
        return spec, [EngineSpec(**e) for e in first.get("engines", [])], str(first.get("host") or "local")
    except (ValueError, AttributeError, TypeError, ValidationError) as e:
        raise ConfigError(f"the telemetry process was not told what to do: {e}") from None


def _scraper(engines: list[EngineSpec], interval_s: float, file: RowFile) -> EngineScraper:
    from loadgen.telemetry.engine_metrics import Scraper

    made: EngineScraper = Scraper(engines, interval_s, file.write, os.environ)
    return made


def _answer(stdin: BinaryIO, stdout: BinaryIO, hub: Hub, scraper: EngineScraper | None) -> None:
    for line in iter(stdin.readline, b""):
        try:
            command = orjson.loads(line)
            kind = command.get("cmd")
        except (ValueError, AttributeError):
            kind = None
        if kind == "stop":
            return
        if kind == "gpu":
            _say(stdout, {"gpus": hub.latest()})
        elif kind == "scrape":
            _say(stdout, _scrape(scraper, str(command.get("engine"))))
        else:
            _say(stdout, {"error": f"not a command: {line[:100].decode('utf-8', 'replace').strip()}"})


def _scrape(scraper: EngineScraper | None, name: str) -> dict[str, Any]:
    if scraper is None:
        return {"engine": name, "text": None, "error": "engine metrics are off"}
    text = scraper.scrape_now(name)
    return {"engine": name, "text": text, **({} if text is not None else {"error": scraper.problem(name)})}


def _say(stdout: BinaryIO, message: dict[str, Any]) -> None:
    stdout.write(orjson.dumps(message, default=str) + b"\n")
    stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
