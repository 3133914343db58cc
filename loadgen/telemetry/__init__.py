"""GPUs and engine counters during a run: a process of their own, without gevent and without Locust.

NVML calls take tens of milliseconds and sometimes a second, so they never run in the load generator:
`child.py` is the process that a run starts, `cli/telemetry.py` the command for a GPU host. What they read
goes to gpu.jsonl and engine.jsonl, a row a line; `rows.py` says what a row holds.
"""
