"""Load generation and measurement for LLM inference servers, on top of Locust."""

__version__ = "0.1.0"
