"""sweep.json: what a sweep was asked for, the steps it has made and what they say; in its suite's directory.

    {"format": 1, "name", "state": "running"|"complete"|"interrupted"|"failed", "start_ns", "end_ns",
     "workload": "concurrency", "variable": "users", "flags": [...], "asked_engines": [...],
     "blocks": 2, "requests_per_user": 4, "turn_requests": 8, "loads": [1, 2, 4], "margin": 1.05,
     "slo": ["ttft_p95<500ms"], "refine": 2, "stop": true,
     "engines": {"vllm": {"flag": "vllm=vllm:http://...", "stopped": "flat"|..., "best": {"load", ...},
                          "knee": {"load", "below", ...}, "slo": {"within", "broken"}, "sentences": [...]}},
     "steps": [{"load": 1, "run": "2026-11-30T16-41-02_concurrency_1", "searching": false, "seconds": 41.2,
                "engines": {"vllm": {... see loadgen/sweep/figures.py ...}}}]}

`variable` is what is raised; `load` is a value of it. Steps stand in the order they were made in.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.plain import clean
from loadgen.store.errors import StoreError
from loadgen.store.manifest import write_atomically
from loadgen.sweep.figures import point_of
from loadgen.sweep.names import RATE, USERS
from loadgen.sweep.outcome import outcome, sentences
from loadgen.sweep.plan import Plan
from loadgen.sweep.point import Point
from loadgen.sweep.shape import check_shape

FILE = "sweep.json"
FORMAT = 1
RUNNING, COMPLETE, INTERRUPTED, FAILED = "running", "complete", "interrupted", "failed"


@dataclass
class StepRecord:
    """One step that was made. `run` is its directory's name within the suite, `seconds` what it took."""

    load: float
    run: str
    engines: dict[str, dict[str, Any]]
    searching: bool = False
    seconds: float = 0.0


@dataclass
class Sweep:
    """`flags` go to every run, `asked_engines` (of --engine) to the first; which engines there are, and their
    flags (NAME=KIND:URL) by name, it tells: `engines`. `requests_per_user` and `turn_requests` make the
    length of a turn, see `requests`; of a sweep of rates `turn_seconds` and `turn_requests` do."""

    name: str
    workload: str
    plan: Plan
    flags: list[str] = field(default_factory=list)
    asked_engines: list[str] = field(default_factory=list)
    slo: list[str] = field(default_factory=list)
    blocks: int = 2
    requests_per_user: int = 4
    turn_requests: int = 8
    state: str = RUNNING
    start_ns: int = field(default_factory=time.time_ns)
    end_ns: int | None = None
    engines: dict[str, str] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    turn_seconds: float = 0.0

    @property
    def variable(self) -> str:
        return self.plan.variable

    def requests(self, load: float) -> int:
        """Requests of one engine's turn at a load."""
        per_load = self.turn_seconds if self.variable == RATE else self.requests_per_user
        return max(self.turn_requests, math.ceil(per_load * load))

    def figures(self, engine: str) -> dict[float, dict[str, Any]]:
        """An engine's figures by load; of a load that was measured twice, the later ones."""
        return {s.load: s.engines[engine] for s in self.steps if engine in s.engines}

    def points(self, engine: str) -> list[Point]:
        return [point_of(load, one) for load, one in self.figures(engine).items()]

    def history(self) -> dict[str, list[Point]]:
        return {name: self.points(name) for name in self.engines}

    @property
    def simulated(self) -> list[str]:
        return [n for n in self.engines if any(f.get("simulated") for f in self.figures(n).values())]

    def sentences(self, engine: str) -> list[str]:
        """What was found of an engine, and whether it stayed the same server."""
        points, figures = self.points(engine), self.figures(engine)
        out = sentences(engine, self.plan, points, figures, clean(" and ".join(self.slo), 200))
        servers = list(dict.fromkeys(clean(f["server"], 80) for f in figures.values() if f.get("server")))
        if len(servers) > 1:
            out.append(
                f"{engine}: its steps are of different servers, so don't compare them: {'; '.join(servers)}"
            )
        return out

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "state": self.state,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "workload": self.workload,
            "variable": self.variable,
            "flags": self.flags,
            "asked_engines": self.asked_engines,
            "blocks": self.blocks,
            "requests_per_user": self.requests_per_user,
            "turn_requests": self.turn_requests,
            **({"turn_seconds": self.turn_seconds} if self.variable == RATE else {}),
            "loads": list(self.plan.loads),
            "margin": self.plan.margin,
            "slo": self.slo,
            "refine": self.plan.refine,
            "stop": self.plan.stop,
            "engines": {
                name: {
                    "flag": flag,
                    **outcome(self.plan, self.points(name)),
                    "sentences": self.sentences(name),
                }
                for name, flag in self.engines.items()
            },
            "steps": [
                {
                    "load": s.load,
                    "run": s.run,
                    "searching": s.searching,
                    "seconds": s.seconds,
                    "engines": s.engines,
                }
                for s in self.steps
            ],
        }

    def write(self, folder: Path) -> None:
        """Replace sweep.json in one step. Raises StoreError."""
        write_atomically(folder / FILE, json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Sweep:
        """Raises StoreError with one sentence if there is none, or it is damaged."""
        path = folder / FILE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None
        except (ValueError, RecursionError) as e:
            raise StoreError(f"{path} is damaged: {e}") from None
        try:
            return cls._from(data)
        except KeyError as e:
            raise StoreError(f"{path} is damaged, or of another version of loadgen: no {e}") from None
        except (TypeError, ValueError, AttributeError) as e:
            raise StoreError(f"{path} is damaged, or of another version of loadgen: {e}") from None

    @classmethod
    def _from(cls, data: Mapping[str, Any]) -> Sweep:
        if data["format"] != FORMAT or data["variable"] not in (USERS, RATE):
            raise ValueError(f"format {data['format']}, a sweep of {data['variable']}")
        check_shape(data)
        plan = Plan(
            tuple(data["loads"]),
            margin=data["margin"],
            slo=bool(data["slo"]),
            refine=data["refine"],
            stop=data["stop"],
            variable=data["variable"],
        )
        steps = [
            StepRecord(s["load"], s["run"], dict(s["engines"]), s["searching"], s["seconds"])
            for s in data["steps"]
        ]
        sweep = cls(
            name=data["name"],
            workload=data["workload"],
            plan=plan,
            flags=list(data["flags"]),
            asked_engines=list(data["asked_engines"]),
            slo=list(data["slo"]),
            blocks=data["blocks"],
            requests_per_user=data["requests_per_user"],
            turn_requests=data["turn_requests"],
            turn_seconds=data.get("turn_seconds", 0.0),
            state=data["state"],
            start_ns=data["start_ns"],
            end_ns=data["end_ns"],
            engines={name: e["flag"] for name, e in data["engines"].items()},
            steps=steps,
        )
        sweep.history()  # every step has what the planner needs
        return sweep
