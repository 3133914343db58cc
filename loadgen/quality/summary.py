"""What the answers say about the engines: the summary of quality.jsonl, as quality.json and every view show
it.

Per task `measure` says what is counted as right: "correct" answers, or of long-form text "clean" ones, that
do not repeat themselves. `accuracy` is the share of them. A failed request is no wrong answer: it is
counted apart and left out of the pair, but an engine that fails often is not comparable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from . import repetition
from .paired import CONFIDENCE, flips, wilson
from .verdicts import MARGIN, pair_row, with_answers

Row = Mapping[str, Any]
Answers = dict[str, Row]  # by the item's id

OK = "ok"


def summarise_quality(
    rows: Iterable[Row], margin: float = MARGIN, baseline: str | None = None
) -> dict[str, Any]:
    """The summary of result rows, with every pair of engines on the items that both answered. `margin` is the
    difference that matters, as a share (0.05 = 5 points), and is to be fixed before; `baseline` is the engine
    that the others are compared with (else the first one). Of rows of the same item, engine and `repeat` the
    last one counts, an answer before a failure; rows with `repeat` 1 and more are the engine against itself
    (the noise floor). ValueError of a margin that is no share, or a baseline without rows.

        {"margin", "confidence", "baseline", "engines": [names], "tasks": {task: {"measure", "items",
         "engines": {name: {...}}, "pairs": [{...}], "subjects": {subject: {engine: [right, n]}}}}}
    """
    if not 0 < margin < 1:
        raise ValueError("the margin is a share above 0 and below 1, such as 0.05 for 5 points")
    tasks, engines = _sorted_in(rows)
    if baseline is not None and baseline not in engines:
        raise ValueError(f"baseline {baseline!r} has no answers; there are {', '.join(engines) or 'none'}")
    first = [baseline] if baseline is not None else engines[:1]
    engines = first + [name for name in engines if name not in first]
    out = {task: _task(by_run, engines) for task, by_run in tasks.items()}
    pairs = []
    for name, task in out.items():
        for pair in task["pairs"]:
            pair.update(task=name, measure=task["measure"])
            pairs.append(pair)
    with_answers(pairs, margin)
    summary: dict[str, Any] = {"margin": margin, "confidence": CONFIDENCE, "engines": engines, "tasks": out}
    return summary | ({"baseline": engines[0]} if engines else {})


def significant(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pairs whose answer is "better" or "worse": all that a verdict may take into account."""
    pairs = (pair for task in summary["tasks"].values() for pair in task["pairs"])
    return [pair for pair in pairs if pair["answer"] in ("better", "worse")]


def _sorted_in(rows: Iterable[Row]) -> tuple[dict[str, dict[tuple[str, int], Answers]], list[str]]:
    """The rows that count, by task and (engine, repeat), in the order in which they first came."""
    tasks: dict[str, dict[tuple[str, int], Answers]] = {}
    engines: dict[str, None] = {}
    for row in rows:
        engines.setdefault(row["engine"])
        run = tasks.setdefault(row["task"], {}).setdefault((row["engine"], int(row.get("repeat", 0))), {})
        known = run.get(row["id"])
        if known is None or row["outcome"] == OK or known["outcome"] != OK:
            run[row["id"]] = row
    return tasks, list(engines)


def _task(by_run: dict[tuple[str, int], Answers], engines: Sequence[str]) -> dict[str, Any]:
    every = [row for run in by_run.values() for row in run.values()]
    measure = "correct" if any("correct" in row for row in every) else "clean"
    once = {name: by_run[name, 0] for name in engines if (name, 0) in by_run}
    sides = {name: _side(run, measure) for name, run in once.items()}
    for name, run in once.items():
        again = [rows for (who, repeat), rows in by_run.items() if who == name and repeat]
        if noise := _noise(run, again, measure):
            sides[name]["noise"] = noise
    subjects: dict[str, dict[str, list[int]]] = {}
    for name, run in once.items():
        for row in run.values():
            if row.get("subject") and (right := _right(row, measure)) is not None:
                count = subjects.setdefault(row["subject"], {}).setdefault(name, [0, 0])
                count[0] += right
                count[1] += 1
    task: dict[str, Any] = {"measure": measure, "items": len({row["id"] for row in every}), "engines": sides}
    task["pairs"] = [_pair(b, a, once, sides, measure) for a, b in combinations(once, 2)]
    return task | ({"subjects": subjects} if subjects else {})


def _right(row: Row, measure: str) -> bool | None:
    """Whether an answer counts as right; None of a failed request or a row without what is measured."""
    if row["outcome"] != OK:
        return None
    if measure == "correct":
        return bool(row["correct"]) if "correct" in row else None
    found = row.get("repetition")
    return None if found is None else not _repetitive(found, row.get("output_tokens"))


def _repetitive(found: Mapping[str, Any], tokens: int | None) -> bool:
    if "repetitive" in found:
        return bool(found["repetitive"])
    inside = _span(found) or _rep(found)
    return bool(found["tail_loop"]) or ((tokens or 0) > repetition.LONG and inside)


def _span(found: Mapping[str, Any]) -> bool:
    return bool(found["longest_repeat_tokens"] >= repetition.SPAN)


def _rep(found: Mapping[str, Any]) -> bool:
    return bool(found["rep_4"] >= repetition.REP_4)


def _share(right: int, n: int) -> dict[str, Any]:
    """Counts with their share and interval, which nothing has of no answers."""
    if not n:
        return {"n": 0, "correct": 0}
    low, high = wilson(right, n)
    return {"n": n, "correct": right, "accuracy": right / n, "low": low, "high": high}


def _side(run: Answers, measure: str) -> dict[str, Any]:
    """One engine on one task."""
    rows = list(run.values())
    answered = [row for row in rows if row["outcome"] == OK]
    rights = [right for row in rows if (right := _right(row, measure)) is not None]
    side = _share(sum(rights), len(rights)) | {
        "truncated": sum(bool(row.get("truncated")) for row in answered),
        "failed": len(rows) - len(answered),
        "finish_reasons": dict(sorted(Counter(str(row.get("finish_reason")) for row in answered).items())),
    }
    if lengths := [row["output_tokens"] for row in answered if row.get("output_tokens") is not None]:
        side["mean_output_tokens"] = sum(lengths) / len(lengths)
    if measure == "correct":
        side["unread"] = sum("correct" in row and not row.get("extracted") for row in answered)
        if strict := [bool(row["strict"]) for row in answered if "strict" in row]:
            side["strict"] = _share(sum(strict), len(strict))
        return side
    found = [row["repetition"] for row in answered if row.get("repetition")]
    return side | {
        "tail_loops": sum(bool(each["tail_loop"]) for each in found),
        "long_repeats": sum(_span(each) for each in found),
        "high_rep_4": sum(_rep(each) for each in found),
    }


def _noise(run: Answers, repeats: Sequence[Answers], measure: str) -> dict[str, Any] | None:
    """How often an engine asked again answers otherwise: what part of the flips between engines is noise."""
    both = [(run[i], row) for again in repeats for i, row in again.items() if i in run]
    rights = [(_right(a, measure), _right(b, measure)) for a, b in both]
    known = [(a, b) for a, b in rights if a is not None and b is not None]
    if not known:
        return None
    changed = sum(a != b for a, b in known)
    low, high = wilson(changed, len(known))
    noise = {"items": len(known), "flips": changed, "share": flips(changed, 0, len(known))}
    texts = [(a.get("text"), b.get("text")) for a, b in both]
    texts = [(a, b) for a, b in texts if a is not None and b is not None]
    same = {"same_text": sum(a == b for a, b in texts) / len(texts)} if texts else {}
    return noise | {"low": low, "high": high} | same


def _pair(
    engine: str, baseline: str, once: Mapping[str, Answers], sides: Mapping[str, Any], measure: str
) -> dict[str, Any]:
    """The counts of a pair of engines on the items that both were asked."""
    a, b = once[engine], once[baseline]
    asked = [i for i in b if i in a]
    counts: Counter[tuple[bool, bool]] = Counter()
    subjects: dict[str, dict[str, int]] = {}
    for i in asked:
        one, other = _right(a[i], measure), _right(b[i], measure)
        if one is None or other is None:
            continue
        counts[one, other] += 1
        if subject := b[i].get("subject"):
            entry = subjects.setdefault(subject, {"n": 0, "only_a": 0, "only_b": 0})
            entry["n"] += 1
            entry["only_a"] += one and not other
            entry["only_b"] += other and not one
    failed = sum(a[i]["outcome"] != OK or b[i]["outcome"] != OK for i in asked)
    noise = [sides[name]["noise"]["share"] for name in (engine, baseline) if "noise" in sides[name]]
    pair = pair_row(engine, baseline, counts, failed)
    return pair | ({"noise": max(noise)} if noise else {}) | ({"subjects": subjects} if subjects else {})
