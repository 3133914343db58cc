"""RunContext: what a row of a journal does not say itself, and its point needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loadgen.store import Manifest, RunDir, StoreError


@dataclass
class RunContext:
    """Tags of a whole run: its name, scenario, the generator's host, the model of each engine.

    `gpus` and `phases` are learned from rows that came earlier in the same file: the facts of each GPU by
    (host, gpu), and the rows that began a phase which has not ended yet.
    """

    run: str
    scenario: str = ""
    host: str = ""
    models: dict[str, str] = field(default_factory=dict)
    gpus: dict[tuple[Any, Any], dict[str, Any]] = field(default_factory=dict)
    phases: dict[tuple[str, Any, Any], dict[str, Any]] = field(default_factory=dict)
    series: dict[tuple[Any, ...], str] = field(default_factory=dict, init=False)  # made before, by their tags

    @classmethod
    def of(cls, run: RunDir) -> RunContext:
        """From the manifest; of a run without one, or with a damaged one, the directory's name is known."""
        try:
            return cls.from_manifest(run.manifest(), run.name)
        except StoreError:
            return cls(run.name)

    @classmethod
    def from_manifest(cls, manifest: Manifest, name: str) -> RunContext:
        models = {
            str(e.get("name")): str(e["model"]) for e in manifest.engines if isinstance(e.get("model"), str)
        }
        return cls(
            run=manifest.run or name,
            scenario=manifest.scenario,
            host=str(manifest.host.get("name") or ""),
            models=models,
        )

    def load_tags(
        self, engine: Any, model: Any = None, worker: Any = "local", host: Any = None
    ) -> dict[str, Any]:
        """The tags of llm_request, llm_window and llm_window_aligned that have to do with who and where."""
        return {
            "run": self.run,
            "scenario": self.scenario,
            "engine": engine,
            "model": model or self.models.get(str(engine)),
            "host": host or self.host,
            "worker": worker,
        }
