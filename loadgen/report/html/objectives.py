"""What was asked of the engines, and whether they keep it: the answers of `loadgen check` on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadgen.report.html.digest import Digest
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.words import engine_mark
from loadgen.report.plain import plural
from loadgen.slo.check import CheckedRun, worst
from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET, Judgement, overall

SIGNS = {MET: ("valid", "✓"), NOT_MET: ("void", "✕"), NOT_DECIDABLE: ("suspect", "?")}
MOST_LINES = 5  # more runs than this are counted on the first screen
BASIS = "Met, or not met, only if the whole 95 % interval of the figure lies on that side of the limit."

Colours = Mapping[str, int]


def mark(answer: str) -> Html:
    level, sign = SIGNS[answer]
    return tag("span", tag("i", sign, aria_hidden="true"), answer, class_=f"badge {level}")


def objectives_line(digests: Sequence[Digest], titles: Sequence[str], colours: Colours) -> Html | None:
    """For the first screen: the answer of all, and of each run which engines keep what was asked."""
    checked = [(d.checked, title) for d, title in zip(digests, titles, strict=True) if d.checked]
    if not checked:
        return None
    runs = [one for one, _ in checked]
    head = join(tag("b", "Objectives"), " ", mark(worst(runs)), " ")
    if len(checked) > MOST_LINES:
        counts = [(a, sum(one.answer == a for one in runs)) for a in (MET, NOT_MET, NOT_DECIDABLE)]
        said = ", ".join(f"{answer} in {plural(n, 'run')}" for answer, n in counts if n)
        return tag("p", head, said, class_="objectives")
    items = []
    for one, title in checked:
        alone = "all requests" if digests[0].checked_classes else ""
        label = title if len(checked) > 1 else alone
        about = tag("b", label, ": ") if label else None
        items.append(tag("li", about, _engines(one, colours)))
    if len(digests) == 1:
        for name, one in digests[0].checked_classes.items():
            items.append(tag("li", tag("b", name, ": "), _engines(one, colours)))
    return tag("div", tag("p", head), tag("ul", *items), class_="objectives")


def _engines(checked: CheckedRun, colours: Colours) -> Html:
    if not checked.believed:
        return join(f"decided by nothing, since the run is {checked.validity.level.word}")
    parts = []
    for name, judgements in checked.engines.items():
        answer = overall(judgements)
        against = [j.objective.text for j in judgements if j.answer == answer] if answer != MET else []
        which = f" ({', '.join(against)})" if against else ""
        parts.append(join(engine_mark(name, colours), f" {answer}{which}"))
    return join(*parts, between=", ")


def objectives_of(digest: Digest, colours: Colours) -> Html | None:
    """The run's objectives, and those of each traffic class; None where nothing was asked."""
    if digest.checked is None or not digest.checked.engines:
        return None
    of_classes = [objectives_table(one, colours, name) for name, one in digest.checked_classes.items()]
    return join(objectives_table(digest.checked, colours), *of_classes)


def objectives_table(checked: CheckedRun, colours: Colours, about: str = "") -> Html:
    """Every objective by engine, with what was measured and what the answer rests on."""
    engines = checked.engines
    head = tag(
        "tr",
        tag("th", "objective", scope="col"),
        *(tag("th", engine_mark(name, colours), scope="col") for name in engines),
    )
    rows = [
        tag("tr", tag("th", some[0].objective.text, scope="row"), *(_cell(j) for j in some))
        for some in zip(*engines.values(), strict=True)
    ]
    notes = [checked.cut] if checked.cut else []
    if not checked.believed:
        notes.append(f"The run is {checked.validity.level.word}, so it decides nothing: {checked.answer}.")
    table = tag(
        "table", tag("caption", BASIS), tag("thead", head), tag("tbody", *rows), class_="figures asked"
    )
    return join(
        tag("h3", f"Objectives of {about} " if about else "Objectives ", mark(checked.answer)),
        tag("div", table, class_="scroll"),
        tag("ul", *(tag("li", n) for n in notes), class_="notes small") if notes else None,
    )


def _cell(judgement: Judgement) -> Html:
    return tag("td", mark(judgement.answer), tag("small", judgement.sentence))
