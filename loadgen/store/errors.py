"""The store's one exception."""

from __future__ import annotations


class StoreError(Exception):
    """A run directory that can't be found, read or written: the text is one clear sentence."""
