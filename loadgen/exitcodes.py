"""Exit codes of `loadgen` and of a Locust run, in one place. Locust's own --exit-code-on-error stands."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1  # requests failed, nothing was measured, or an engine is not there or not ready
USAGE: Final = 2  # a command, flag or settings file that can not be used
INTERRUPTED: Final = 130  # Ctrl-C, as shells report it

# `loadgen check` answers with its code, so that its mistakes have one of their own.
MET: Final = 0  # every objective is met
NOT_MET: Final = 1  # at least one is not
NOT_DECIDABLE: Final = 2  # too few samples, or a run that can't be believed
CANNOT_CHECK: Final = 3  # a flag, an objective or a run that can not be used
