"""The whole comparison in small: single user, long prompt, 16 at once, two engines.

demo.py          against two simulated engines (no model, no GPU), about a minute
demo.py --real   against llama.cpp and vLLM on this machine's CPU, some minutes
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from engine_install import SetupError
from engine_server import RealServer

from loadgen.cli import main as loadgen
from loadgen.cli.run import run_suite
from loadgen.report import summarise, to_json
from loadgen.store import StoreError, resolve

RUNS = Path("runs")
INTERRUPTED = 130

SHORT_TTFT = "1 user, short prompt: TTFT, ms"
SHORT_DECODE = "1 user, short prompt: tokens/s"
LONG_TTFT = "1 user, long prompt: TTFT, ms"
LONG_DECODE = "1 user, long prompt: tokens/s"
THROUGHPUT = "16 users: tokens/s in all"
# (what it is called here, scenario, metric, which of its figures)
ROWS = (
    (SHORT_TTFT, "single_user", "ttft_ms", "p50"),
    (SHORT_DECODE, "single_user", "decode_tokens_per_s", "p50"),
    (LONG_TTFT, "long_prompt", "ttft_ms", "p50"),
    (LONG_DECODE, "long_prompt", "decode_tokens_per_s", "p50"),
    (THROUGHPUT, "concurrency", "window", "throughput_tokens_per_s"),
)


@dataclass(frozen=True)
class Demo:
    """One way to show the comparison: what is said before and after it, the flags of each workload, and the
    engines (a context that yields NAME=KIND:URL). `published`: figures to stand beside the measured ones."""

    about: str
    shortened: str
    flags: Mapping[str, str]
    engines: Callable[[], contextlib.AbstractContextManager[list[str]]]
    published: Mapping[str, Mapping[str, float]]


@contextlib.contextmanager
def simulated_engines() -> Iterator[list[str]]:
    from loadgen.sim.launch import SimProcess

    with (
        SimProcess("vllm", preset="vllm-v100", own_session=True) as vllm,
        SimProcess("llamacpp", preset="llamacpp-v100", own_session=True) as llamacpp,
    ):
        yield [f"vllm=vllm:{vllm.url}", f"llamacpp=llamacpp:{llamacpp.url}"]


@contextlib.contextmanager
def real_engines() -> Iterator[list[str]]:
    print("\nStarting both servers, most of a minute ...", flush=True)
    with RealServer("vllm") as vllm, RealServer("llamacpp") as llamacpp:
        yield [f"vllm=vllm:{vllm.url}", f"llamacpp=llamacpp:{llamacpp.url}"]


SIMULATED = Demo(
    about="""\
Two SIMULATED engines on this machine: no model, no GPU. One answers like vLLM
with FP8 weights, one like llama.cpp with Q4_K_M, at the speeds that were
published for Qwen3-8B on two Tesla V100. This shows what a comparison looks
like; it says nothing about real servers.""",
    shortened="""\
Shortened to fit into a minute: answers of 48, 32 and 128 tokens instead of
256, few requests, one or two blocks. TTFT and decode speed do not depend on
that. Throughput of 16 users does: in a short answer the wait for its first
token weighs more, so it comes out lower than with 256 tokens. So few requests
are no ground for a p99, nor for saying who is better: `loadgen run reference`
measures at full length.""",
    flags={
        "single_user": "--turn-requests 4 --blocks 2 --output-tokens 48 --warmup-requests 1 --cooldown 0.5",
        "long_prompt": "--turn-requests 2 --blocks 1 --output-tokens 32 --warmup-requests 0 --cooldown 0.5",
        "concurrency": "--turn-requests 16 --blocks 1 --output-tokens 128 --warmup-requests 0 --cooldown 0.5",
    },
    engines=simulated_engines,
    published={
        "vllm": {SHORT_TTFT: 180, SHORT_DECODE: 42, LONG_TTFT: 1200, LONG_DECODE: 40, THROUGHPUT: 380},
        "llamacpp": {SHORT_TTFT: 95, SHORT_DECODE: 58, LONG_TTFT: 2800, LONG_DECODE: 55, THROUGHPUT: 210},
    },
)

REAL = Demo(
    about="""\
Two REAL servers on this machine's CPU: vLLM and llama.cpp, with one model for
both, SmolLM2-135M (vLLM in float32; llama.cpp in Q4_1, 4 slots). They take
turns, so only one of them works at a time. A CPU and so small a model say
nothing about the two engines on a GPU.""",
    shortened="""\
Shortened to some minutes: answers of 32, 16 and 32 tokens instead of 256, few
requests, one or two blocks. Throughput of 16 users comes out lower than with
long answers, because the wait for the first token weighs more.""",
    flags={
        "single_user": "--turn-requests 3 --blocks 2 --output-tokens 32 --warmup-requests 1 --cooldown 1",
        "long_prompt": "--turn-requests 1 --blocks 2 --output-tokens 16 --warmup-requests 1 --cooldown 1",
        "concurrency": "--turn-requests 16 --blocks 1 --output-tokens 32 --warmup-requests 1 --cooldown 1",
    },
    engines=real_engines,
    published={},
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", action="store_true", help="two real servers on this CPU")
    demo = REAL if parser.parse_args().real else SIMULATED
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    started = time.monotonic()
    try:
        code = show(demo)
    except (SetupError, StoreError, RuntimeError) as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: stopped, and both engines with it", file=sys.stderr)
        return INTERRUPTED
    print(f"The demo took {time.monotonic() - started:.0f} s.")
    return code


def show(demo: Demo) -> int:
    """The three workloads as one suite, the tables, and what was published in one glance. An exit code."""
    print(demo.about, flush=True)
    with demo.engines() as engines:
        common = [part for engine in engines for part in ("--engine", engine)] + ["--runs-dir", str(RUNS)]
        flags = {workload: [*common, *own.split()] for workload, own in demo.flags.items()}
        code = run_suite(flags, RUNS, tables=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    print(flush=True)
    code = loadgen(["summary", "latest", "--runs-dir", str(RUNS)]) or code
    suite = resolve("latest", RUNS)
    print(f"\n{overview(to_json(summarise(suite)), demo.published)}\n\n{demo.shortened}\n")
    print(f"All of it is in {suite.path}\n(loadgen summary {suite.name}).")
    return code


def overview(figures: Mapping[str, Any], published: Mapping[str, Mapping[str, float]]) -> str:
    """The five figures of the reference experiment, a line each: medians, and throughput of whole turns."""
    engines = list(next(iter(figures.values()), {}))
    simulated = any(e.get("simulated") for e in next(iter(figures.values()), {}).values())
    lines = [f"{'In short (simulated engines)' if simulated else 'In short':31}"]
    lines[0] += "".join(f"{name:>11}{'published' if name in published else '':>12}" for name in engines)
    lines.append("-" * len(lines[0]))
    for text, scenario, metric, which in ROWS:
        line = f"{text:31}"
        for name in engines:
            value = figures.get(scenario, {}).get(name, {}).get(metric, {}).get(which)
            then = published.get(name, {}).get(text)
            line += f"{'-' if value is None else f'{value:,.0f}':>11}"
            line += f"{'' if then is None else f'{then:,.0f}':>12}"
        lines.append(line)
    return "\n".join(lines)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
