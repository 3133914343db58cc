"""Command-line options of the simulated engines (for `loadgen sim` and for tests that start one)."""

from __future__ import annotations

import argparse
import math
from dataclasses import fields, replace

from loadgen.sim.faults import FaultError, parse_fault
from loadgen.sim.model import Constants
from loadgen.sim.presets import DEFAULT_PRESET, PRESETS
from loadgen.sim.server import MODELS, Options

DEFAULT_PORTS = {"vllm": 8000, "llamacpp": 8001}
KINDS = ("vllm", "llamacpp")
_TUNABLE = [f.name for f in fields(Constants) if f.name not in ("kind", "prefix_cache", "slots")]
_HELP = {
    "step_s": "seconds of a decode step with one sequence, without its KV",
    "step_seq_s": "seconds that every further sequence adds to a step",
    "step_kv_s": "seconds that every token of KV adds to a step",
    "prefill_base_s": "seconds that a step with prefill takes longer, whatever the prompt",
    "prefill_tok_s": "prompt tokens prefilled a second",
    "overhead_s": "seconds before a request reaches the scheduler",
    "batch_tokens": "most prompt tokens in one step",
    "context": "tokens of prompt and answer together",
    "kv_tokens": "tokens that fit the KV memory",
    "block": "tokens in a block of vLLM's KV memory",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The flags of `loadgen sim`."""
    g = parser.add_argument_group("what to simulate")
    g.add_argument("--kind", choices=(*KINDS, "both"), default="both", help="which engine (default: both)")
    g.add_argument(
        "--preset",
        action="append",
        default=[],
        metavar="NAME",
        help=f"machine and engine to imitate: {', '.join(PRESETS)} (default: the *-v100 ones)",
    )
    g.add_argument("--speed", type=float, default=1.0, metavar="X", help="run X times faster (default: 1)")
    g.add_argument(
        "--slots",
        type=int,
        metavar="N",
        help="sequences at once: vLLM's max-num-seqs, llama-server's -np (which divides the context)",
    )
    g.add_argument(
        "--model", default="", metavar="NAME", help=f"model name (default: {', '.join(MODELS.values())})"
    )
    g.add_argument("--seed", type=int, default=0, help="decides the texts and which requests get a fault")
    g.add_argument(
        "--odd-share",
        type=float,
        default=0.02,
        metavar="X",
        help="share of words that are emoji or not ASCII (default: 0.02)",
    )
    g.add_argument("--no-prefix-cache", action="store_true", help="compute every prompt from its beginning")
    n = parser.add_argument_group("where")
    n.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    n.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="port; with both engines give it twice (default: 8000 vLLM, 8001 llama.cpp; 0: any)",
    )
    n.add_argument("--log", metavar="FILE", help="write every request's true times here, a JSON line each")
    b = parser.add_argument_group("misbehaviour")
    b.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[:ARG][@SHARE]",
        help="a fault of all requests or a share of them; repeatable (--faults lists them)",
    )
    b.add_argument("--faults", action="store_true", help="list the faults and leave")
    b.add_argument(
        "--loading",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="load the model for so long: llama.cpp answers 503, vLLM refuses connections",
    )
    b.add_argument(
        "--ping",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="llama.cpp's comment after so much silence in a stream (default: 30, 0: never)",
    )
    c = parser.add_argument_group("constants of the model (each overrides the preset's)")
    for name in _TUNABLE:
        kind = int if name in ("batch_tokens", "context", "kv_tokens", "block") else float
        c.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="X", help=_HELP[name])


def to_options(args: argparse.Namespace) -> list[Options]:
    """One Options per engine asked for; ValueError with one clear sentence for what makes no sense."""
    kinds = KINDS if args.kind == "both" else (args.kind,)
    for name, value in vars(args).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"--{name.replace('_', '-')} {value:g} is not a number to count with")
    if args.speed <= 0:
        raise ValueError(f"--speed {args.speed:g} must be greater than 0")
    for name in ("loading", "ping"):
        if getattr(args, name) < 0:
            raise ValueError(f"--{name} must not be negative")
    if args.slots is not None and args.slots < 1:
        raise ValueError(f"--slots {args.slots} must be at least 1")
    if not 0 <= args.odd_share <= 1:
        raise ValueError(f"--odd-share {args.odd_share:g} is a share from 0 to 1")
    if len(args.port) > len(kinds):
        raise ValueError(f"--port was given {len(args.port)} times for {len(kinds)} engine(s)")
    if len(kinds) == 2 and len(args.port) == 1:
        raise ValueError("with both engines give --port twice (vLLM first), or choose one with --kind")
    try:
        faults = [parse_fault(text) for text in args.fault]
    except FaultError as e:
        raise ValueError(str(e)) from None
    presets = dict(DEFAULT_PRESET)
    for name in args.preset:
        if name not in PRESETS:
            raise ValueError(f"there is no preset {name!r} (known: {', '.join(PRESETS)})")
        kind = PRESETS[name].kind
        if kind not in kinds:
            raise ValueError(f"preset {name} is for {kind}, not for {kinds[0]}")
        presets[kind] = name
    out = []
    for i, kind in enumerate(kinds):
        constants = PRESETS[presets[kind]]
        changes = {n: getattr(args, n) for n in _TUNABLE if getattr(args, n) is not None}
        constants = replace(constants, **changes, prefix_cache=not args.no_prefix_cache)
        if args.slots is not None:
            constants = replace(constants, slots=args.slots)
            if kind == "llamacpp" and args.context is None:
                constants = replace(constants, context=max(1, constants.context // args.slots))
        _check(constants)
        out.append(
            Options(
                kind=kind,
                host=args.host,
                port=args.port[i] if args.port else DEFAULT_PORTS[kind],
                preset=presets[kind],
                constants=constants,
                speed=args.speed,
                model=args.model,
                loading_s=args.loading,
                ping_s=args.ping,
                faults=faults,
                seed=args.seed,
                odd_share=args.odd_share,
                log=args.log,
            )
        )
    return out


def _check(c: Constants) -> None:
    for name in ("step_s", "prefill_tok_s"):
        if getattr(c, name) <= 0:
            raise ValueError(f"--{name.replace('_', '-')} must be greater than 0")
    for name in ("step_seq_s", "step_kv_s", "prefill_base_s", "overhead_s"):
        if getattr(c, name) < 0:
            raise ValueError(f"--{name.replace('_', '-')} must not be negative")
    for name in ("batch_tokens", "context", "kv_tokens", "block"):
        if getattr(c, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1")
