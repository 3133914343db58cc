"""`loadgen influx check`: is delivery set up right?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from loadgen import exitcodes
from loadgen.config import ConfigError, InfluxdbSpec, load_settings
from loadgen.report.plain import clean

HELP = "check: are InfluxDB's address, token, organisation and bucket right?"
DESCRIPTION = """\
Asks the InfluxDB that runs would be delivered to: does it answer, does it take
the token, are organisation and bucket there, and does InfluxQL (what Grafana's
dashboards speak) find what was written? It writes one point, in a measurement
of its own, loadgen_check.

Where: INFLUXDB_URL, INFLUXDB_TOKEN, INFLUXDB_ORG and INFLUXDB_BUCKET, or the
table [influxdb] of loadgen.toml. The token is read from the environment or a
file, and never shown."""
EPILOG = """\
example:
  export INFLUXDB_URL=http://127.0.0.1:8086 INFLUXDB_ORG=loadgen
  export INFLUXDB_BUCKET=loadgen INFLUXDB_TOKEN=...
  loadgen influx check

exit code: 0 all is right, 1 something is not, 2 a setting is missing."""
MARKS = {"ok": "ok    ", "note": "note  ", "failed": "FAILED"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=["check"], help="check: the only thing there is to do yet")
    parser.add_argument(
        "--config", "--loadgen-config", metavar="FILE", type=Path, help="instead of ./loadgen.toml"
    )


def execute(args: argparse.Namespace) -> int:
    from loadgen.sinks.check import check

    spec = influxdb_of(args.config)
    worst = exitcodes.OK
    for finding in check(spec, spec.token()):
        print(f"{MARKS[finding.level]}  {finding.step:8} {clean(finding.text, 500)}", flush=True)
        if finding.level == "failed":
            worst = exitcodes.FAILED
    if worst != exitcodes.OK:
        print("runs are not hurt by this, but nothing of them would be delivered", file=sys.stderr)
    return worst


def influxdb_of(config: Path | None) -> InfluxdbSpec:
    """The [influxdb] of the settings. Raises ConfigError if it has no address."""
    spec = load_settings(config_file=config).influxdb
    if not spec.url:
        raise ConfigError("InfluxDB has no address: set INFLUXDB_URL, or url in [influxdb] of loadgen.toml")
    return spec
