"""From runs on disk to a file that a person can hand on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadgen.report.html.digest import digest
from loadgen.report.html.page import page
from loadgen.store import RunDir, StoreError
from loadgen.store.manifest import write_atomically


def html_report(runs: Sequence[RunDir], *, baseline: str | None = None) -> str:
    """The page of these runs. Raises StoreError, also where plotly is not installed or there is no run."""
    library = plotly_source()
    if not runs:
        raise StoreError("there is no run to report on yet")
    return page([digest(run, baseline=baseline) for run in runs], library)


def write_html(runs: Sequence[RunDir], path: Path, *, baseline: str | None = None) -> int:
    """Write the page in one step; its size in bytes. Raises StoreError."""
    text = html_report(runs, baseline=baseline)
    write_atomically(path, text)
    return len(text.encode())


def plotly_source() -> str:
    """plotly.js as plotly's Python package has it: nothing is fetched. Raises StoreError without it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise StoreError("the HTML report needs plotly: pip install 'loadgen[report]'") from None
    source = str(get_plotlyjs())
    # What would end the script element, or begin a comment in it that hides its end.
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
