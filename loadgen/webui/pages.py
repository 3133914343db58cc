"""Pages: the live page under /llm in Locust's own web server, and what it asks for."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import csv
import io
import os
import subprocess
import sys
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
from flask import Blueprint, Response, request, send_file
from gevent.lock import BoundedSemaphore

from loadgen.config import ConfigError
from loadgen.plain import clean
from loadgen.report.html.markup import Html, data_block, tag
from loadgen.report.html.words import NEUTRAL, PALETTE
from loadgen.slo import parse_slo
from loadgen.webui.live import Live

REPORT_S = 300
POLL_S = 3.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_PLOTLY = "The charts need plotly: pip install 'loadgen[report]', then start again."
_ASSETS = {"live.css": "text/css", "live.js": "text/javascript", "tab.js": "text/javascript"}
_FORMULA = ("=", "+", "-", "@")  # with these a spreadsheet would begin to calculate

CSV_COLUMNS = (
    "engine",
    "scenario",
    "class",
    "simulated",
    "in_flight",
    "requests",
    "ttft_p50_ms",
    "ttft_p95_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "tokens_per_s",
    "goodput",
    "failed",
    "lag_p99_ms",
    "validity",
    "reasons",
    "final",
)


def blueprint(live: Live, web_ui: Any, base_path: str = "") -> Blueprint:
    """All routes, behind Locust's login where there is one."""
    pages = Blueprint("loadgen", __name__, url_prefix=base_path or None)
    route, member = pages.route, web_ui.auth_required_if_enabled
    making = BoundedSemaphore()

    @route("/llm")
    @member  # type: ignore[untyped-decorator]
    def page() -> Response:
        answer = Response(live_page(), mimetype="text/html")
        answer.headers["Content-Security-Policy"] = POLICY
        return _fresh(answer)

    @route("/llm/data")
    @member  # type: ignore[untyped-decorator]
    def data() -> Response:
        cursor, seen = request.args.get("cursor", "0"), request.args.get("seen", "")
        try:
            number, second = int(cursor), float(seen) if seen else None
        except ValueError:
            return Response("cursor and seen are numbers\n", 400, mimetype="text/plain")
        found = live.data(number, request.args.get("epoch", ""), second)
        return _fresh(Response(orjson.dumps(found), mimetype="application/json"))

    @route("/llm/csv")
    @member  # type: ignore[untyped-decorator]
    def figures() -> Response:
        answer = Response(csv_text(live), mimetype="text/csv")
        name = live.state().get("name", "none")
        answer.headers["Content-Disposition"] = f'attachment; filename="llm_{name}.csv"'
        return _fresh(answer)

    @route("/llm/report")
    @member  # type: ignore[untyped-decorator]
    def report() -> Response:
        name = request.args.get("run") or live.state().get("name", "")
        found = live.reports.get(name)
        if live.run is not None:
            return _say(409, "A run is being measured: reports are made when it is over.")
        if found is None:
            return _say(404, "There is no run of this page by that name that is over.")
        with making:
            path, problem = make_report(*found)
        if path is None:
            return _say(500, problem)
        return send_file(
            path, mimetype="text/html", as_attachment=True, download_name=f"{name}.html", max_age=0
        )

    @route("/llm/plotly.js")
    @member  # type: ignore[untyped-decorator]
    def plotly() -> Response:
        path = plotly_path()
        if path is None:
            return _say(404, NO_PLOTLY)
        return send_file(path, mimetype="text/javascript", max_age=86_400, conditional=True)

    @route("/llm/<name>")
    def asset(name: str) -> Response:
        if name not in _ASSETS:
            return _say(404, "There is no such page.")
        answer = Response((files("loadgen.webui") / "assets" / name).read_bytes(), mimetype=_ASSETS[name])
        answer.headers["Cache-Control"] = "no-cache"
        return answer

    return pages


def plotly_path() -> Path | None:
    """plotly.js as its Python package has it, without importing that package; None if it is not there."""
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    return None


def live_page() -> str:
    """The page, without anything that a server said: that comes as data, and its script sets text."""
    colours = data_block("colours", {"engine": PALETTE, "gpu": NEUTRAL, "poll_s": POLL_S})
    drawn = plotly_path() is not None
    body = tag(
        "body",
        tag(
            "header",
            tag("p", tag("a", "‹ Locust", href="./", class_="back"), " · loadgen live", class_="brand"),
            tag("h1", "No run yet", id="title"),
            tag("span", "waiting", id="state", class_="pill"),
            tag("a", "Download report", id="report", class_="button", hidden=True),
            tag("p", "", id="stage", class_="muted"),
        ),
        tag(
            "p",
            "The connection is lost. What is shown is as of then; it is tried again.",
            id="lost",
            role="status",
            hidden=True,
        ),
        tag(
            "main",
            tag("div", tag("table", id="figures"), class_="card scroll"),
            tag("p", "", id="good", class_="muted"),
            tag("ul", id="notes"),
            tag("div", id="ranges", role="group", aria_label="Time shown"),
            tag("p", "", id="legend", class_="legend"),
            tag("p", NO_PLOTLY, class_="card") if not drawn else None,
            tag("div", id="charts"),
            tag("p", "No GPU is watched in this run.", id="no-gpu", class_="muted", hidden=True),
        ),
        tag("noscript", "This page needs JavaScript; the figures are in Locust's LLM tab, too."),
        colours,
        tag("script", src="llm/plotly.js") if drawn else None,
        tag("script", src="llm/live.js"),
    )
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", "loadgen live"),
        Html('<link rel="stylesheet" href="llm/live.css">'),
        Html('<link rel="icon" href="assets/favicon-light.png">'),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def csv_text(live: Live) -> str:
    """The rows of the tab with plain numbers; what is not there is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in live.rows():
        writer.writerow([_cell(row[name]) for name in CSV_COLUMNS])
    return out.getvalue()


def make_report(folder: Path, slo: str | None = None) -> tuple[Path | None, str]:
    """report.html of a run: made if it is not there, in a process of its own; or why it cannot be."""
    path = folder / "report.html"
    inputs = [p for p in (folder / "requests.jsonl", folder / "manifest.json") if p.exists()]
    if path.exists() and all(path.stat().st_mtime_ns >= p.stat().st_mtime_ns for p in inputs):
        return path, ""
    if not os.access(folder, os.W_OK):
        path = Path(tempfile.mkdtemp(prefix="loadgen-")) / "report.html"
    command = [sys.executable, "-m", "loadgen.cli", "report", str(folder), "--output", str(path)]
    if slo is not None:
        command += ["--slo", slo if _is_objective(slo) else f"{slo},goodput>0"]
    try:
        # After everything else: somebody may start the next run meanwhile.
        lower = (lambda: os.nice(10)) if hasattr(os, "nice") else None
        done = subprocess.run(command, capture_output=True, timeout=REPORT_S, check=False, preexec_fn=lower)
    except (OSError, subprocess.TimeoutExpired) as e:
        return None, f"The report could not be made: {clean(e, 300)}"
    if done.returncode:
        return None, clean(done.stderr.decode("utf-8", "replace").strip() or "The report failed.", 500)
    return path, ""


def _is_objective(slo: str) -> bool:
    """Whether it can be judged as it stands; limits of single requests are kept by a share of them."""
    try:
        parse_slo([slo])
    except ConfigError:
        return False
    return True


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (str, list)):
        text = clean("; ".join(value) if isinstance(value, list) else value, 2000)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return "" if value is None else value


def _say(code: int, text: str) -> Response:
    return _fresh(Response(f"{text}\n", code, mimetype="text/plain"))


def _fresh(answer: Response) -> Response:
    answer.headers["Cache-Control"] = "no-store"
    return answer
