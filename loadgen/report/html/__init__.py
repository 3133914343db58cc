"""The report as one HTML file that needs nothing else: `loadgen report`."""

from loadgen.report.html.results import Results, results_of
from loadgen.report.html.write import html_report, write_html

__all__ = ["Results", "html_report", "results_of", "write_html"]
