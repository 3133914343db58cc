"""From runs on disk to a file that a person can hand on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadgen.report.html.page import page
from loadgen.report.html.results import results_of
from loadgen.slo.objectives import Slo
from loadgen.store import RunDir, StoreError, Suite
from loadgen.store.manifest import write_atomically

Target = RunDir | Suite


def html_report(
    targets: Sequence[Target],
    *,
    baseline: str | None = None,
    gpu_hour: float | None = None,
    slo: Slo | None = None,
) -> str:
    """The page of these runs and suites; two are compared with each other. `gpu_hour` is the price of a GPU
    hour, `slo` what is asked of every engine. Raises StoreError, also where plotly is not installed or there
    is no run."""
    library = plotly_source()
    return page(results_of(targets, baseline=baseline, gpu_hour=gpu_hour, slo=slo), library)


def write_html(
    targets: Sequence[Target],
    path: Path,
    *,
    baseline: str | None = None,
    gpu_hour: float | None = None,
    slo: Slo | None = None,
) -> int:
    """Write the page in one step; its size in bytes. Raises StoreError, OSError."""
    text = html_report(targets, baseline=baseline, gpu_hour=gpu_hour, slo=slo)
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: nothing that may be replaced by a file
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    else:
        write_atomically(path.resolve(), text)  # of a link, the file behind it
    return len(text.encode(errors="replace"))


def plotly_source() -> str:
    """plotly.js as plotly's Python package has it: nothing is fetched. Raises StoreError without it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise StoreError("the HTML report needs plotly: pip install 'loadgen[report]'") from None
    source = str(get_plotlyjs())
    # What would end the script element, or begin a comment in it that hides its end.
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
