"""The report as one HTML file that needs nothing else: `loadgen report`."""

from loadgen.report.html.digest import Digest, digest
from loadgen.report.html.write import html_report, write_html

__all__ = ["Digest", "digest", "html_report", "write_html"]
