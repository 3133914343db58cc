"""Text and numbers made fit to print: loadgen/plain.py, where it needs none of the report's imports."""

from loadgen.plain import LONGEST, clean, number, percent, plural

__all__ = ["LONGEST", "clean", "number", "percent", "plural"]
