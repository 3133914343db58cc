"""Writes the tables of docs/configuration.md from the settings themselves.

python scripts/config_page.py            writes them
python scripts/config_page.py --check    exit code 1 if the page and the code differ

A setting's meaning is its flag's help, or what MEANINGS says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from generated_page import write_page
from pydantic import BaseModel

from loadgen.config import EngineSpec, InfluxdbSpec, OpenLoopSpec, Settings, TelemetrySpec, Timeouts
from loadgen.users.options import OPTIONS
from loadgen.workload.scenarios import REFERENCE, SCENARIOS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

MEANINGS = {
    "users": "users, that is requests in flight on the engine whose turn it is",
    "warmup_max_s": 'longest warm-up with `warmup = "steady"`, in seconds',
    "output_tokens": "length of an answer, exactly: an end-of-text token is ignored, a short one marked",
    "temperature": "sampling temperature; 0 takes the likeliest token",
    "cooldown_s": "pause between two turns, in seconds; 0: none",
    "cooldown_max_s": "the longest that a pause goes on until the GPUs have cooled down, in seconds",
    "cooldown_degrees": "they have when none is this many degrees C above its temperature at the start",
    "ready_timeout_s": "exclusive residency: longest wait for an engine that was started, in seconds",
    "void_below_sm_clock_mhz": "a run is void in which a busy GPU had a lower SM clock in 1 % of the "
    "samples; the published reference used 1200",
    "name": "the table's name, `[engines.NAME]`; it stands for the engine in every result",
    "kind": "`vllm`, `llamacpp`, or `openai` for any other compatible server",
    "url": "the server's root, without `/v1`",
    "replicas": "roots of further servers of the same model: requests go to all of them in turn",
    "model": "model to ask for",
    "api_key_env": "the environment variable that holds the API key",
    "headers": "further headers of every request; their values stay out of the manifest",
    "extra_body": "further fields of every request's JSON body",
    "verify_tls": "check the server's certificate",
    "ca_file": "PEM file with the certificates to trust instead of the usual ones",
    "start": "shell command that starts the engine (exclusive residency)",
    "stop": "shell command that stops it; without one, the start command's processes are ended",
    "ready": "shell command that ends with 0 when it is ready; without one, its /health is asked",
    "log": "the engine's own log, a file on this machine; read after the run for the bytes of weights and "
    "KV cache",
    "token_env": "the environment variable that holds the agents' token",
    "token_file": "a file that holds it, read if the variable is not set",
    "interval_s": "time between two samples, in seconds",
    "engine_metrics": "`off`: leave the engines' /metrics alone",
    "named": "`false`: skip the engine, with a line that says so, when it does not answer",
}
INFLUXDB_MEANINGS = {
    "url": "the server's address (`INFLUXDB_URL`); without one nothing is delivered",
    "org": "organisation (`INFLUXDB_ORG`); InfluxDB 1.8 and 3 Core ignore it",
    "bucket": "bucket (`INFLUXDB_BUCKET`); `database/retention-policy` for InfluxDB 1.8",
    "token_env": "the environment variable that holds the token",
    "token_file": "a file that holds it, read if the variable is not set",
    "verify_tls": "check the server's certificate",
    "ca_file": "PEM file with the certificates to trust instead of the usual ones",
}
DEFAULTS = {"model": "the first the server lists", "prompt_file": "none: text that comes with loadgen"}
LEFT_OUT = {
    "engines",
    "timeouts",
    "influxdb",
    "telemetry",
    "open_loop",
    "scenario",
    "prompt_lengths",
}  # tables of their own; the workload's to say
FLAGS = {"users": "`-u N` (`LOCUST_USERS`)", "url": "`--engine NAME=KIND:URL`"}
REQUIRED = {"name", "kind", "url"}


def tables() -> dict[str, str]:
    """Marker in the page -> the table that belongs there."""
    return {
        "settings": _table(Settings, ""),
        "open_loop": _table(OpenLoopSpec, "open_loop."),
        "timeouts": _table(Timeouts, "timeouts."),
        "telemetry": _table(TelemetrySpec, "telemetry."),
        "influxdb": _table(InfluxdbSpec, "influxdb.", INFLUXDB_MEANINGS),
        "engine": _engine_table(),
    }


def _table(model: type[BaseModel], prefix: str, own: dict[str, str] | None = None) -> str:
    rows = []
    for key in model.model_fields:
        if key in LEFT_OUT:
            continue
        option = next((o for o in OPTIONS if o.field == prefix + key), None)
        flag = "" if own else FLAGS.get(key, "")
        if option is not None:
            values = "\\|".join(option.choices or ()) or option.metavar or ""
            flag = f"`{option.flag} {values}`".replace(" `", "`")
        meaning = own[key] if own else MEANINGS[key] if key in MEANINGS or option is None else option.help
        rows.append((f"`{key}`", flag, _default(model, key), meaning))
    return _markdown(("key", "flag", "default", "meaning"), rows)


def _engine_table() -> str:
    rows = [
        (f"`{key}`", "needed" if key in REQUIRED else _default(EngineSpec, key), MEANINGS[key])
        for key in EngineSpec.model_fields
    ]
    return _markdown(("key", "default", "meaning"), rows)


def _default(model: type[BaseModel], key: str) -> str:
    if key in DEFAULTS and model is not InfluxdbSpec:
        return DEFAULTS[key]
    if model is Settings:
        lent = [s.defaults().get(key) for s in map(SCENARIOS.__getitem__, REFERENCE)]
        if key == "scenario":
            return "the locustfile's"
        if len(set(lent)) > 1:
            return " / ".join(f"{value:,}" for value in lent)
    value = model.model_fields[key].default
    if value is None or value in ({}, ()):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str | Path) else f"`{value}`"


def _markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def filled(page: str) -> str:
    """The page with today's tables between its markers."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: made by scripts/config_page.py -->\n", f"<!-- end of {name} -->"
        page, found = re.subn(
            re.escape(begin) + ".*?" + re.escape(end),
            lambda _, new=begin + table + end: new,  # type: ignore[misc]
            page,
            flags=re.S,
        )
        assert found == 1, f"{PAGE} has {found} places for {name}"
    return page


if __name__ == "__main__":
    sys.exit(write_page("config_page.py", __doc__, PAGE, filled))
