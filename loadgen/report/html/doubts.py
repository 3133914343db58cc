"""Whether runs may be believed: badges, findings, and the card beside the picture."""

from __future__ import annotations

from collections.abc import Sequence

from loadgen.report.html.digest import Digest
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.plain import plural
from loadgen.validity import Finding, Level

SIGNS = {Level.VALID: "✓", Level.SUSPECT: "!", Level.VOID: "✕"}
MEANING = {
    Level.VALID: "Nothing speaks against these figures.",
    Level.SUSPECT: "Read the reasons, then decide.",
    Level.VOID: "Don't use these figures.",
}


def validity_card(digests: Sequence[Digest], titles: Sequence[str]) -> Html:
    """The worst level, why, and the notes; run by run (called by their titles) where there are several, and
    folded where several are doubtful."""
    judged = [(d, t, d.summary.validity) for d, t in zip(digests, titles, strict=True) if d.summary.validity]
    level = max((v.level for _, _, v in judged), default=Level.VALID)
    parts = [tag("h2", badge(level)), tag("p", MEANING[level])]
    doubtful = [one for one in judged if one[2].level > Level.VALID]
    for digest, title, validity in doubtful:
        against = [f for f in validity.findings if f.level > Level.VALID]
        reasons = tag("ul", *(finding(f) for f in against), class_="findings")
        if len(doubtful) > 1:
            head = join(badge(validity.level), " ", title, tag("small", f" {plural(len(against), 'reason')}"))
            parts.append(tag("details", tag("summary", head), reasons))
            continue
        if len(judged) > 1:
            link = tag("a", title, href=f"#{anchor(digest)}")
            parts.append(tag("h3", badge(validity.level), " ", link))
        parts.append(reasons)
    notes = {f.sentence(): f for _, _, v in judged for f in v.findings if f.level == Level.VALID}
    if notes:
        said = tag("ul", *(finding(f) for f in notes.values()), class_="findings")
        parts.append(tag("details", tag("summary", plural(len(notes), "note")), said))
    return join(*parts)


def badge(level: Level) -> Html:
    return tag("span", tag("i", SIGNS[level], aria_hidden="true"), level.word, class_=f"badge {level.word}")


def finding(found: Finding) -> Html:
    advice = tag("small", found.advice) if found.advice else None
    return tag("li", found.evidence, advice, class_=found.level.word)


def anchor(digest: Digest) -> str:
    """The section of a run; its name is a directory's, made safe."""
    return "run-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in digest.summary.name)


def void(digest: Digest) -> bool:
    return digest.summary.validity is not None and digest.summary.validity.level == Level.VOID
