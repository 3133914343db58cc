"""One run's part in a comparison: what is needed of it once its columns are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadgen.compare.engines import Side
from loadgen.compare.facts import EngineFacts
from loadgen.report.judge import judge
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import RunSummary, classes, summarise_data
from loadgen.store import Manifest, RunDir
from loadgen.validity.finding import Validity

# What a caller wants to know of each engine of a run, by name, while the run is read: it is read once only.
# The summary has been judged.
Look = Callable[[RunDir, RunData, RunSummary], Mapping[str, Any]]


@dataclass
class Part:
    """A run as it is compared. `seen` is what the caller's `look` saw of each engine; `names` what engines
    are called here, by their own names; `classes` are parts of their own, a traffic class each."""

    name: str
    scenario: str
    manifest: Manifest | None
    sides: dict[str, Side]
    figures: dict[str, dict[str, Any]]
    validity: Validity
    simulated: list[str]
    infos: dict[str, dict[str, Any]]
    seen: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    classes: dict[str, Part] = field(default_factory=dict)

    @classmethod
    def read(cls, run: RunDir, look: Look | None = None) -> Part:
        """Raises StoreError."""
        data = load_run(run)
        summary = summarise_data(data)
        summary.validity = validity = judge(run, data, summary)
        part = cls(
            name=data.name,
            scenario=data.scenario,
            manifest=data.manifest,
            sides={name: Side.of(name, engine) for name, engine in data.engines.items()},
            figures=summary.engines,
            validity=validity,
            simulated=summary.simulated,
            infos={str(info.get("name")): info for info in summary.infos},
            seen=dict(look(run, data, summary)) if look else {},
        )
        for name, figures in classes(summary.engines).items():
            part.classes[name] = part._of_class(name, data.of_class(name), figures)
        return part

    def _of_class(self, traffic_class: str, data: RunData, figures: dict[str, dict[str, Any]]) -> Part:
        """Memory is that of the whole run, and not told again."""
        facts = {name: saw for name, saw in self.seen.items() if isinstance(saw, EngineFacts)}
        return replace(
            self,
            scenario=data.scenario,
            sides={name: Side.of(name, data.engines[name]).of_requests() for name in figures},
            figures=figures,
            seen={
                name: saw.of_class(traffic_class, figures[name])
                for name, saw in facts.items()
                if name in figures
            },
            classes={},
        )

    def renamed(self, names: Mapping[str, str]) -> Part:
        """The same run, its engines called differently."""
        return replace(
            self,
            names=dict(names),
            classes={n: p.renamed({k: names[k] for k in p.sides}) for n, p in self.classes.items()},
            sides={names[n]: Side(names[n], s.values, s.samples) for n, s in self.sides.items()},
            figures={names[n]: of for n, of in self.figures.items()},
            infos={names.get(n, n): info for n, info in self.infos.items()},
            seen={names.get(n, n): saw for n, saw in self.seen.items()},
            simulated=[names[n] for n in self.simulated if n in names],
        )


class Reader:
    """Gives the parts of runs, and reads each run once, however often it is asked for."""

    def __init__(self, look: Look | None = None) -> None:
        self._look = look
        self._read: dict[Path, Part] = {}

    def __call__(self, run: RunDir) -> Part:
        """Raises StoreError."""
        path = run.path.resolve()
        if path not in self._read:
            self._read[path] = Part.read(run, self._look)
        return self._read[path]

    def forget(self, run: RunDir) -> None:
        """Let go of what is kept of it."""
        self._read.pop(run.path.resolve(), None)
