"""What a reader must know beside the figures: one sentence each, most important first."""

from __future__ import annotations

from typing import Any

from loadgen.metrics.energy import LEAST_BEATS
from loadgen.metrics.percentiles import ROUGH_BELOW
from loadgen.report.levels import knee_text, slo_text
from loadgen.report.plain import clean, number, percent, plural
from loadgen.report.summary import RunSummary
from loadgen.store.manifest import FAILED, INTERRUPTED

LITTLE_TOLERANCE = 0.001


def notes(summary: RunSummary) -> list[str]:
    """The notes of one run, in the order in which they are printed."""
    out = []
    if summary.state == INTERRUPTED:
        out.append("interrupted run: killed, stopped, or still going on; this is what there is of it")
    elif summary.state == FAILED:
        out.append("failed run: it ended with an error")
    out += [clean(w, 300) for w in summary.warnings]
    for name, figures in summary.engines.items():
        found = _found(summary, name)
        out += [f"{name}: {s}" for s in _engine(figures, summary.examples.get(name, {}), found)]
    if any(_rough(figures) for figures in summary.engines.values()):
        out.append(
            f"~ p99 of fewer than {ROUGH_BELOW:,} samples: it rests on the largest few, so read it as rough"
        )
    out += [f"note: {clean(n, 300)}" for n in summary.notes]
    return out


def _found(summary: RunSummary, name: str) -> set[str]:
    """The validity checks that speak of this engine: what they say is not said twice."""
    if summary.validity is None:
        return set()
    return {f.check for f in summary.validity.findings if f.evidence.startswith(f"{name}: ")}


def _rough(figures: dict[str, Any]) -> bool:
    return any(isinstance(v, dict) and v.get("p99_rough") for v in figures.values())


def _engine(figures: dict[str, Any], examples: dict[str, str], found: set[str]) -> list[str]:
    counts, window = figures["counts"], figures["window"]
    used = [t for t in window["turns"] if t["complete"] or figures.get("incomplete")]
    out = []
    if counts["requests"] == 0:
        out.append("no request was measured")
    elif figures.get("incomplete"):
        out.append("INCOMPLETE: no turn was completed; the figures are of what there is")
    elif window["turns_incomplete"]:
        left_out = plural(counts["left_out_requests"], "request")
        out.append(f"{plural(window['turns_incomplete'], 'turn')} not complete, left out with {left_out}")
    if figures.get("levels"):
        out.append("the number of users varied: figures of all requests mix loads, those by users do not")
    out += [said for said in (knee_text(figures), slo_text(figures)) if said]
    for kind, n in counts["failed_by_kind"].items():
        example = f', such as: "{clean(examples[kind])}"' if kind in examples else ""
        out.append(f"{n:,} failed with {clean(kind)}{example}")
    if counts["short_answers"] and "short_answers" not in found:
        out.append(f"{plural(counts['short_answers'], 'answer')} shorter than asked for")
    if counts["inexact_requests"] and "coalesced" not in found:
        out.append(
            f"{plural(counts['inexact_requests'], 'request')} with inexact times "
            f"({plural(counts['coalesced_events'], 'event')} of {counts['events']:,} read together with "
            f"later ones, so seen late; TTFT itself in {counts['inexact_ttft']:,})"
        )
    fallback = {clean(k): n for k, n in counts["clock"].items() if k != "kernel"}
    if fallback:
        kinds = ", ".join(fallback)
        out.append(
            f"{plural(sum(fallback.values()), 'request')} timed without kernel stamps ({kinds} clock): "
            "a busy generator makes such times late"
        )
    guessed = counts["token_source"].get("events", 0)
    if guessed:
        out.append(f"{plural(guessed, 'request')} with tokens counted as events: the server reported none")
    if counts["clock_steps"] or any(t["clock_stepped"] for t in used):
        out.append("the wall clock was set during the run; no duration counts by it")
    if any(t["derived"] for t in used):
        out.append("the start or end of a turn was not recorded: its first and last request stand in for it")
    if window["unsuccessful_share"]:
        out.append(
            f"{percent(window['unsuccessful_share'])} of the tokens in its throughput came from requests "
            "that did not succeed"
        )
    if window["straddling_share"] and "open_loop" not in figures:
        out.append(
            f"{percent(window['straddling_share'])} of the tokens in its throughput are of requests that "
            "straddle the window's edge"
        )
    out += _gpu(figures.get("gpu", {}))
    if (window["littles_residual"] or 0.0) > LITTLE_TOLERANCE and "littles_law" not in found:
        out.append(
            f"Little's residual is {number(window['littles_residual'])}: concurrency, rate and time in "
            "flight don't fit together, so distrust this run's throughput and concurrency"
        )
    return out


def _gpu(gpu: dict[str, Any]) -> list[str]:
    out = []
    if "energy_j" in gpu and not gpu["gpus_named"] and gpu["gpus"] > 1:
        out.append(f"energy is that of all {gpu['gpus']} GPUs: its own could not be told by their processes")
    if short := gpu.get("turns_too_short"):
        out.append(
            f"{plural(short, 'turn')} without energy: too short for the beat of the GPU samples "
            f"(it takes {LEAST_BEATS} of them)"
        )
    return out
