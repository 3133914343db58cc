"""Service level objectives: what is asked of an engine, and whether a run shows that it keeps it.

slo = parse_slo(["ttft_p95<500ms", "goodput>0.99", "tpot<50ms"])
answer = overall(judge_engine(slo, load_run(run).engines["vllm"]))
"""

from loadgen.slo.check import CheckedRun, check_run
from loadgen.slo.expression import Objective, parse_objective
from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET, Judgement, judge_engine, overall
from loadgen.slo.objectives import Slo, parse_slo
from loadgen.slo.presets import PRESETS

__all__ = [
    "MET",
    "NOT_DECIDABLE",
    "NOT_MET",
    "PRESETS",
    "CheckedRun",
    "Judgement",
    "Objective",
    "Slo",
    "check_run",
    "judge_engine",
    "overall",
    "parse_objective",
    "parse_slo",
]
