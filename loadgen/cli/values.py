"""Values of flags that several commands take, as argparse types."""

from __future__ import annotations

import argparse
import re

_MARGIN = re.compile(r"(\d+(?:\.\d+)?) ?%?")


def margin(text: str) -> float:
    """`5%` or `5` as the factor 1.05. Raises ArgumentTypeError."""
    found = _MARGIN.fullmatch(text.strip())
    percent = float(found[1]) if found else 0.0
    if not 0.1 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no margin: give per cent from 0.1 to 100, such as 5%")
    return 1 + percent / 100


def price(text: str) -> float:
    """What a GPU hour costs, in any currency. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no price of a GPU hour: give a number, such as 2.50")
    return value
