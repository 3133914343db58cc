"""Text and numbers made fit to print: whatever a server sends is data, never terminal control or markup."""

from __future__ import annotations

import unicodedata
from typing import Any

LONGEST = 160


def clean(text: object, longest: int = LONGEST) -> str:
    """One line without control, format or unassigned characters (escape sequences, bidi overrides), and not
    longer than `longest` characters.

    >>> clean("a\\x1b[31mred\\nnext")
    'a?[31mred next'
    """
    out = "".join(_printable(c) for c in str(text)[: 4 * longest])
    out = " ".join(out.split())
    return out if len(out) <= longest else out[: longest - 1] + "…"


def _printable(c: str) -> str:
    if c in "\n\r\t":
        return " "
    return "?" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") else c


def number(value: Any) -> str:
    """Three or four significant digits, no exponent; `-` for None.

    >>> [number(v) for v in (None, 0, 0.1234, 9.876, 98.76, 987.64, 9876.4, 98764)]
    ['-', '0', '0.123', '9.88', '98.8', '987.6', '9,876', '98,764']
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    for below, digits in ((1, 3), (10, 2), (1000, 1)):
        if round(abs(value), digits) < below:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def percent(share: float) -> str:
    """A share as a percentage, small ones not rounded away.

    >>> percent(0.5), percent(0.0004), percent(0.0), percent(0.0000001)
    ('50.0 %', '0.04 %', '0 %', '< 0.01 %')
    """
    if share == 0:
        return "0 %"
    if share < 0.0001:
        return "< 0.01 %"
    return f"{share * 100:.2f} %" if share < 0.01 else f"{share * 100:.1f} %"


def plural(n: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `1,000 requests`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
