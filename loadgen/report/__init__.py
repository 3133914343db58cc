"""The summary of runs: computed from their journals, printed on a terminal or as JSON."""

from loadgen.report.summary import RunSummary, compute, summarise, to_json, write_summary

__all__ = ["RunSummary", "compute", "summarise", "to_json", "write_summary"]
