"""A sidecar for tests: `python -m tests.support.echo_sidecar RUN_DIR`. It plays the telemetry child's part as
the first line it gets says, and echoes orders that it does not know."""

import json
import os
import signal
import sys
import time


def say(**row: object) -> None:
    print(json.dumps(row), flush=True)


def main() -> None:
    first = json.loads(sys.stdin.readline())
    play = os.environ.get("ECHO_PLAY", "")
    temperatures = [40.0, 52.0, 44.0]
    if play == "dies":
        print("Traceback\nOSError: libnvidia-ml.so.1 is broken", file=sys.stderr)
        sys.exit(3)
    if play == "no gpu":
        say(error="--gpu on: this machine has no NVIDIA GPU", gpus=[], notes=[])
    elif play == "nothing here":
        say(ready=True, gpus=[], notes=["no GPU is sampled here"])
    elif play == "delivers":
        say(state="waiting", lines=0, left=10, dead=0, why="http://db:8086 does not answer")
        say(state="delivering", lines=5, left=5, dead=0)
    else:
        say(ready=True, gpus=[{"gpu": 0, "name": "NVIDIA H200"}], notes=["ECC is off"], first=first)
    for line in sys.stdin:
        order = json.loads(line)
        if order.get("cmd") == "scrape":
            say(engine=order["engine"], text=f'up{{engine="{order["engine"]}"}} 1\n')
        elif order.get("cmd") == "gpu":
            say(gpus=[{"host": "h", "gpu": 0, "temperature_c": temperatures.pop(0)}])
        elif order.get("cmd") == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            say(hanging=True)
            time.sleep(3600)
        elif order.get("cmd") != "stop":
            say(echo=order)
    if play == "delivers":
        say(state="done", lines=10, left=0, dead=1)


main()
