"""The tab LLM of Locust's own page, by its documented extension points, and a link to the live page."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import secrets
from typing import Any

import orjson
from flask import Response, request

from loadgen.webui.figures import shown
from loadgen.webui.live import Live

KEY = "llm"
# Locust's pages show what servers said, as text; this is for the day on which one of them does not.
POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
TITLES = (
    ("name", "Engine"),
    ("scenario", "Scenario"),
    ("in_flight", "In flight"),
    ("requests", "Requests"),
    ("ttft_p50", "TTFT p50"),
    ("ttft_p95", "TTFT p95"),
    ("ttft_p99", "TTFT p99"),
    ("tpot", "TPOT p50"),
    ("tokens", "Tokens/s"),
    ("goodput", "Goodput"),
    ("failures", "Failures"),
    ("lag", "Read lag p99"),
    ("validity", "Validity"),
)


def install_tab(live: Live, web_ui: Any, base_path: str = "") -> None:
    """Locust's template arguments name the tab, its table and its files; the rows travel with its figures."""
    web_ui.template_args.update(
        extended_tabs=[{"title": "LLM", "key": KEY}],
        extended_tables=[{"key": KEY, "structure": [{"key": k, "title": t} for k, t in TITLES]}],
        extended_csv_files=[
            {"href": "./llm/csv", "title": "Download LLM figures CSV"},
            {"href": "./llm/report", "title": "Download LLM report (when the run is over)"},
            {"href": "./llm", "title": "Live charts of the run"},
        ],
    )
    index, login, stats = f"{base_path}/", f"{base_path}/login", f"{base_path}/stats/requests"

    @web_ui.app.after_request  # type: ignore[untyped-decorator]
    def add(response: Response) -> Response:
        if response.status_code != 200:
            return response
        if request.path == stats and response.is_json:
            rows = [shown(row) for row in live.rows()]
            whole = {**(response.get_json() or {}), "extended_stats": [{"key": KEY, "data": rows}]}
            response.set_data(orjson.dumps(whole))
        elif request.path in (index, index.rstrip("/"), login) and response.mimetype == "text/html":
            nonce = secrets.token_urlsafe(16)
            page = response.get_data(as_text=True).replace("<script>", f'<script nonce="{nonce}">', 1)
            if request.path != login:
                page = page.replace("</body>", '<script src="./llm/tab.js" defer></script></body>', 1)
            response.set_data(page)
            response.headers["Content-Security-Policy"] = POLICY.format(nonce=nonce)
        return response
