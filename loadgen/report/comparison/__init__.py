"""A comparison as people and machines read it: terminal, Markdown, CSV. The same numbers in each."""

from loadgen.report.comparison.csvfile import write_csv
from loadgen.report.comparison.markdown import markdown
from loadgen.report.comparison.terminal import print_assessment

__all__ = ["markdown", "print_assessment", "write_csv"]
