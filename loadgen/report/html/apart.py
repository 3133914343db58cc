"""Two runs made apart, one against the other: what differs between them first, then the figures."""

from __future__ import annotations

from collections.abc import Mapping

from loadgen.report.html.markup import Html, tag
from loadgen.report.html.results import Across
from loadgen.report.html.tables import comparison_table, cost_table, differences_table


def apart(across: Across, colours: Mapping[str, int]) -> Html:
    comparison = across.comparison
    scenario, runs = comparison.scenario.replace("_", " "), " against ".join(comparison.runs)
    doubts = [tag("li", sentence) for sentence in comparison.cannot_exclude]
    costs = cost_table(comparison, colours)
    return tag(
        "section",
        tag("h2", "One run against the other"),
        tag("p", f"{scenario} · {runs} · {comparison.pairing}", class_="about"),
        differences_table(comparison),
        tag("h3", "What this can't exclude") if doubts else None,
        tag("ul", *doubts, class_="notes") if doubts else None,
        tag("h3", "Every figure compared"),
        comparison_table(comparison, colours),
        tag("h3", "Memory, energy, cost") if costs else None,
        costs,
        class_="run",
    )
