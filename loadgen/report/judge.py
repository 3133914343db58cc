"""What the checks of loadgen/validity say of a run that has been read and summarised."""

from __future__ import annotations

from loadgen.report.load import RunData
from loadgen.report.summary import RunSummary
from loadgen.store import RunDir
from loadgen.validity import Evidence, Validity, check_run, telemetry


def judge(run: RunDir, data: RunData, summary: RunSummary) -> Validity:
    """May this run be believed? Raises StoreError where its telemetry can't be read."""
    generator, gpus = telemetry(run.path, {name: engine.turns for name, engine in data.engines.items()})
    return check_run(
        Evidence(
            state=summary.state,
            engines=summary.engines,
            settings=summary.settings,
            notes=summary.notes,
            generator=generator,
            gpus=gpus,
        )
    )
