"""The page: one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from loadgen import __version__
from loadgen.report.html.answer import advice_list
from loadgen.report.html.apart import apart
from loadgen.report.html.definitions import definitions
from loadgen.report.html.digest import Digest
from loadgen.report.html.doubts import anchor, badge
from loadgen.report.html.loadcurves import load_curves
from loadgen.report.html.markup import Html, join, script_hash, tag
from loadgen.report.html.opening import headline, opening, title_of
from loadgen.report.html.results import Results
from loadgen.report.html.section import section
from loadgen.report.html.words import NEUTRAL, PALETTE, colours_of

MANY = 5  # more runs than this stand folded, but for the first


def page(results: Results, plotly: str) -> str:
    """The report as HTML; `plotly` is the library's source.

    A policy in the page names the three scripts that it may run by their hashes, and nothing from elsewhere:
    markup that got through escaping all the same would be inert.
    """
    digests = results.digests
    colours = colours_of(results.engines)
    title, when = headline(results)
    script = _asset("page.js")
    policy = (
        f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {script_hash(plotly)} {script_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    body = join(
        tag(
            "header",
            tag("p", "loadgen report", class_="brand"),
            tag("h1", title),
            tag("p", when, class_="when"),
        ),
        tag(
            "main",
            opening(results, colours),
            _contents(digests),
            advice_list(results.advice),
            *(apart(a, colours) for a in results.across),
            load_curves(results, colours),
            *(section(d, colours, folded=len(digests) > MANY) for d in digests),
            tag("section", tag("h2", "Definitions"), definitions(), id="definitions"),
        ),
        tag("footer", tag("p", f"Made by loadgen {__version__} from the journals of {_names(digests)}.")),
        tag("noscript", tag("p", "The curves need JavaScript; verdict, tables and manifest don't.")),
    )
    swatches = "".join(
        f".{kind}{n}{{--engine:{colour}}}"
        for kind, palette in (("e", PALETTE), ("g", NEUTRAL))
        for n, colour in enumerate(palette)
    )
    head = join(
        Html('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · loadgen"),
        Html(f"<style>{_asset('page.css')}{swatches}</style>"),
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}\n'
        f"<script>{plotly}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _contents(digests: Sequence[Digest]) -> Html | None:
    if len(digests) < 2:
        return None
    items = []
    titles = [title_of(d) for d in digests]
    for d, title in zip(digests, titles, strict=True):
        about = tag("small", f" {d.summary.name}") if titles.count(title) > 1 else None
        link = tag("a", title, about, href=f"#{anchor(d)}")
        items.append(tag("li", link, " ", badge(d.summary.validity.level) if d.summary.validity else None))
    items.append(tag("li", tag("a", "definitions", href="#definitions")))
    return tag("nav", tag("ul", *items), aria_label="Contents")


def _names(digests: Sequence[Digest]) -> str:
    names = [d.summary.name for d in digests]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _asset(name: str) -> str:
    return (files("loadgen.report.html") / "assets" / name).read_text(encoding="utf-8")
