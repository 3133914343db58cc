"""Moves the sidecars of a run off the generator's core, whose affinity they would inherit.

Python imports this at its start where this folder is on PYTHONPATH. In a sidecar it sets the affinity to
BENCH_ASIDE_CORE and appends its name and process number to BENCH_ASIDE_LOG. Elsewhere it does nothing.
"""

import json
import os
import sys

_NAMES = {"loadgen.sinks.shipper": "shipper", "loadgen.telemetry.child": "sampler"}


def _aside() -> None:
    name = next((_NAMES[word] for word in sys.orig_argv if word in _NAMES), None)
    core, log = os.environ.get("BENCH_ASIDE_CORE"), os.environ.get("BENCH_ASIDE_LOG")
    if name is None or core is None or log is None:
        return
    os.sched_setaffinity(0, {int(core)})
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, "pid": os.getpid()}) + "\n")


_aside()
