"""The flags of a run, the same for Locust's command line, its web form and `loadgen run`.

Their defaults are what file, environment and scenario say, so --help and the web form show what is in
force, and whatever they hold in the end is the person's word.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loadgen.config import ConfigError, Settings, engine_texts, load_settings
from loadgen.workload.scenarios import Scenario

CONFIG_ENV = "LOADGEN_CONFIG"
SCENARIO_ENV = "LOADGEN_SCENARIO"  # set by `loadgen sweep`: each step is a scenario of its own
SPAWN_RATE = 100.0  # users a second; Locust's own default of 1 would let a burst of 16 take 16 s to gather
STOP_TIMEOUT_S = 120  # for requests in flight when a run is stopped; Locust's own default cuts them at once


class Option(NamedTuple):
    """One flag: the Settings field it sets (a dot for a nested one), and its help."""

    flag: str
    field: str
    type: type
    help: str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None

    @property
    def dest(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


ENGINE_HELP = (
    "a server to measure, NAME=KIND:URL with kind vllm, llamacpp or openai, as fp8=vllm:http://gpu:8000; "
    "give it once for each engine (in the web form: with commas between them); with more addresses after a "
    "comma, URL,URL, its requests go to all of them in turn"
)

OPTIONS: tuple[Option, ...] = (
    Option("--turn-requests", "turn_requests", int, "requests of one engine's turn", metavar="N"),
    Option("--blocks", "blocks", int, "how often each engine has a turn (6 or more to compare)", metavar="N"),
    Option(
        "--warmup-requests",
        "warmup_requests",
        int,
        "requests a user and engine before measuring",
        metavar="N",
    ),
    Option(
        "--warmup",
        "warmup",
        str,
        "count: just so many; steady: go on until TTFT is steady",
        ("count", "steady"),
    ),
    Option(
        "--prompt-tokens",
        "prompt_tokens",
        str,
        "length of a prompt, chat template included; several with commas are measured one after the other, "
        "--turn-requests of each",
        metavar="N",
    ),
    Option("--output-tokens", "output_tokens", int, "length of an answer, exactly", metavar="N"),
    Option(
        "--mix",
        "mix",
        str,
        "classes of requests with their shares, as interactive=70,long=20,batch=10 or with lengths of their "
        "own, rag=20:6000/300 (prompt/output tokens)",
        metavar="LIST",
    ),
    Option(
        "--exchanges",
        "exchanges",
        int,
        "above 1: conversations of so many questions and answers",
        metavar="N",
    ),
    Option(
        "--system-tokens", "system_tokens", int, "length of the system prompt of conversations", metavar="N"
    ),
    Option("--think-time", "think_s", float, "mean pause before the next question, in seconds", metavar="S"),
    Option(
        "--shape",
        "shape",
        str,
        "the number of users varies: steps, ramp, spike or knee (up to -u), steps:1,2,4@30s, ramp:1-64@10m, "
        "knee:1-256@20s, parts of your own as 4@1m,4-64@5m, or hand: as the web page says",
        metavar="SHAPE",
    ),
    Option("--level", "level_s", float, "length of a shape's levels, in seconds", metavar="S"),
    Option("--prompt-file", "prompt_file", str, "prompts of your own: JSONL or ShareGPT", metavar="FILE"),
    Option(
        "--salt",
        "salt",
        str,
        "off: prompts of a file are sent as they are, without a unique beginning against prefix caches",
        ("on", "off"),
    ),
    Option("--seed", "seed", int, "determines the prompts' text, and goes to the engines", metavar="N"),
    Option("--api", "api", str, "endpoint: chat or plain completions", ("chat", "completions")),
    Option("--temperature", "temperature", float, "sampling temperature", metavar="X"),
    Option("--thinking", "thinking", str, "let models think that can be told not to", ("off", "on")),
    Option(
        "--arrival",
        "arrival",
        str,
        "users' requests: burst (all start a turn together) or staggered (evenly over one request's time); "
        "requests at --rate, whatever the server does: poisson, constant or gamma; trace: of --trace",
        ("burst", "staggered", "poisson", "constant", "gamma", "trace"),
    ),
    Option("--rate", "open_loop.rate", float, "requests a second of an open loop", metavar="R"),
    Option(
        "--turn-seconds",
        "open_loop.turn_s",
        float,
        "length of an open loop's turn, in place of --turn-requests",
        metavar="S",
    ),
    Option(
        "--burstiness",
        "open_loop.burstiness",
        float,
        "coefficient of variation of gamma arrivals' gaps: 1 is poisson, 2 comes in bursts",
        metavar="B",
    ),
    Option(
        "--max-in-flight",
        "open_loop.max_in_flight",
        int,
        "requests of an open loop at once; one that is due beyond that is dropped, and the run is void",
        metavar="N",
    ),
    Option(
        "--trace",
        "open_loop.trace",
        str,
        "replay recorded arrivals and lengths: Mooncake JSONL, Azure or BurstGPT CSV",
        metavar="FILE",
    ),
    Option(
        "--trace-start", "open_loop.trace_start_s", float, "where in the trace to begin, in s", metavar="S"
    ),
    Option("--speed-up", "open_loop.speed_up", float, "replay a trace so many times as fast", metavar="X"),
    Option(
        "--trace-longest",
        "open_loop.longest",
        int,
        "leave out requests of a trace with more tokens than this, prompt and answer together",
        metavar="N",
    ),
    Option(
        "--residency",
        "residency",
        str,
        "shared: all engines stay loaded and take turns; exclusive: each is started for its turns with the "
        "commands in loadgen.toml; parallel: all at the same time, each with its own users",
        ("shared", "exclusive", "parallel"),
    ),
    Option("--cooldown", "cooldown_s", float, "pause after a turn, in seconds", metavar="S"),
    Option(
        "--slo",
        "slo",
        str,
        "what a good request keeps, as 'ttft_p95<500ms,tpot_p95<50ms' or a preset's name: the live page "
        "shows goodput by it",
        metavar="SLO",
    ),
    Option("--runs-dir", "runs_dir", str, "where run directories are made", metavar="DIR"),
    Option("--connect-timeout", "timeouts.connect_s", float, "limit for connecting, in seconds", metavar="S"),
    Option(
        "--first-token-timeout",
        "timeouts.first_token_s",
        float,
        "limit for the first token, in seconds",
        metavar="S",
    ),
    Option("--gap-timeout", "timeouts.gap_s", float, "limit between two tokens, in seconds", metavar="S"),
    Option(
        "--request-timeout", "timeouts.total_s", float, "limit for a whole request, in seconds", metavar="S"
    ),
    Option(
        "--gpu",
        "telemetry.gpu",
        str,
        "auto: sample this machine's GPUs if it has any; on: no run without them; off: leave them alone",
        ("auto", "on", "off"),
    ),
    Option("--gpus", "telemetry.gpus", tuple, "which of them, as 0,1 (none: all)", metavar="LIST"),
    Option(
        "--agents",
        "telemetry.agents",
        tuple,
        "addresses of telemetry agents on GPU hosts, with commas between",
        metavar="URLS",
    ),
    Option(
        "--dcgm", "telemetry.dcgm", tuple, "addresses of dcgm-exporters, with commas between", metavar="URLS"
    ),
)


class Given(str):
    """Engines that somebody has named, even if they are the default ones."""


class EngineAction(argparse.Action):
    """Joins repeated flags with commas; the first one replaces the default."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest, None)
        joined = f"{before},{values}" if isinstance(before, Given) else values
        setattr(namespace, self.dest, Given(joined))


def config_path(argv: list[str], env: Mapping[str, str] = os.environ) -> Path | None:
    """The settings file that is asked for, before the other flags can be parsed; None: ./loadgen.toml."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--loadgen-config")
    named = early.parse_known_args(argv)[0].loadgen_config or env.get(CONFIG_ENV)
    return Path(named) if named else None


def effective_defaults(scenario: Scenario | None, config_file: Path | None) -> Settings:
    """Settings as they are without any flag. Raises ConfigError."""
    return load_settings(defaults=scenario.defaults() if scenario else None, config_file=config_file)


def engines_text(settings: Settings) -> str:
    """The engines as --engine would name them, with commas between."""
    return ",".join(f"{e.name}={e.kind}:{','.join(e.urls)}" for e in settings.engines)


def add_options(parser: Any, defaults: Settings) -> None:
    """Adds the flags to an argparse parser: Locust's, whose web form then has them, or a plain one."""
    group = parser.add_argument_group("LLM engines and workload (loadgen)")
    # Locust's --config is a file of Locust's own flags, hence the longer name.
    group.add_argument(
        "--loadgen-config",
        metavar="FILE",
        help=f"settings file instead of ./loadgen.toml (environment: {CONFIG_ENV})",
    )
    text = engines_text(defaults)
    actions = [
        group.add_argument(
            "--engine",
            action=EngineAction,
            default=text,
            metavar="NAME=KIND:URL",
            help=f"{ENGINE_HELP}. Now: {text}",
        )
    ]
    for option in OPTIONS:
        if option.flag in parser._option_string_actions:  # `loadgen sweep` has a --slo of its own
            continue
        value = _value(defaults, option.field)
        if option.type is str:  # Locust's web form makes of what a person writes the type of what was there
            value = str(value)
        actions.append(
            group.add_argument(
                option.flag,
                type=_type(option.type),
                default=value,
                choices=option.choices,
                metavar=option.metavar,
                help=f"{option.help}. Default: {value if value != '' else 'none'}",
            )
        )
    for action in actions:  # Locust's parser sets these itself, but not for what is added to a group
        action.include_in_web_ui = True
        action.is_secret = action.is_required = action.is_multiple = False


def _type(of: type) -> Callable[[str], Any]:
    """How argparse reads a value: lists as text; a number that is not given, and has no default, is ""."""
    if of not in (int, float):
        return str

    def read(text: str) -> Any:
        return of(text) if text else text

    read.__name__ = of.__name__  # argparse says it: invalid float value
    return read


def settings_from(
    options: argparse.Namespace,
    scenario: Scenario,
    defaults: Settings,
    config_file: Path | None,
    *,
    shape: str | None = None,
) -> Settings:
    """The settings that the flags, or the web form, ask for; `shape` is one that was picked by its class.
    Raises ConfigError with one sentence."""
    flags: dict[str, Any] = {}
    for option in OPTIONS:
        value = getattr(options, option.dest)
        if value == "" or value is None:
            continue
        if isinstance(value, list):
            value = ",".join(value)
        if option.type is tuple:
            value = tuple(part.strip() for part in value.split(",") if part.strip())
        outer, _, inner = option.field.partition(".")
        if inner:
            flags.setdefault(outer, {})[inner] = value
        else:
            flags[outer] = value
    engine = getattr(options, "engine", None)
    texts = engine_texts(engine if isinstance(engine, str) else ",".join(engine or ()))
    if texts and (isinstance(engine, Given) or ",".join(texts) != engines_text(defaults)):
        flags["engines"] = texts
    # The web form of Locust 2.46, the last for Python 3.10, does not put its number where -u does.
    users = getattr(options, "users", None)
    if not isinstance(users, int):  # `loadgen sweep` has a list of them there
        users = getattr(options, "num_users", None)
    if users is not None:
        flags["users"] = users
    if shape is not None and str(flags.get("shape", "")).partition(":")[0].strip() != shape:
        flags["shape"] = shape
    lent = scenario.defaults()
    lent["scenario"] = os.environ.get(SCENARIO_ENV) or lent["scenario"]
    try:
        settings = load_settings(flags, defaults=lent, config_file=config_file)
        _check_slo(settings.slo)
    except ConfigError as e:
        raise ConfigError(_in_flags(str(e))) from None
    return settings


def _check_slo(slo: str | None) -> None:
    """Objectives, or limits of single requests, whose share is then what counts. Raises ConfigError."""
    if slo is None:
        return
    from loadgen.slo import parse_slo  # needs numpy, which a run needs only for its summary

    try:
        parse_slo([slo])
    except ConfigError as e:
        try:
            parse_slo([slo, "goodput>0"])
        except ConfigError:
            raise e from None


def _in_flags(text: str) -> str:
    """An error that names a field, in the words of the flags."""
    where, _, rest = text.partition(": ")
    for option in (*OPTIONS, Option("-u", "users", int, "")):
        if rest.startswith(f"{option.field}: "):
            return f"{option.flag}: {rest.removeprefix(f'{option.field}: ')}"
    return text if where else rest


def _value(settings: Settings, field: str) -> Any:
    if field == "prompt_tokens" and settings.prompt_lengths:
        field = "prompt_lengths"
    value: Any = settings
    for part in field.split("."):
        value = getattr(value, part)
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value) if isinstance(value, Path) else value
