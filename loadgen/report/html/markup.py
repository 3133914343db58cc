"""HTML made of values: every text is escaped unless this module itself made it. Pure."""

from __future__ import annotations

import base64
import hashlib
import html
from typing import Any

import orjson

from loadgen.report.plain import clean

LONGEST = 500
_VOID = frozenset({"br", "hr", "img", "meta", "link", "col"})


class Html(str):
    """Text that is markup already. Nobody makes one from what a server or a person said but `tag`."""

    __slots__ = ()


def text(value: object, longest: int = LONGEST) -> Html:
    """A value as text of a page: one line, bounded, without control characters, escaped; a space at its edge
    stays one. Html is left as it is.

    >>> text("<script>alert(1)</script> & more")
    '&lt;script&gt;alert(1)&lt;/script&gt; &amp; more'
    """
    if isinstance(value, Html):
        return value
    raw = str(value)
    words = clean(raw, longest)
    before, after = (" " if words and edge.isspace() else "" for edge in (raw[:1], raw[-1:]))
    return Html(html.escape(f"{before}{words}{after}") if words else " " * bool(raw))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` and `for_` stand for the words that Python has taken, `_` in a name for `-`; an
    attribute that is None or False is left out, True has no value.

    >>> tag("a", "more & less", href="#x", class_="link")
    '<a href="#x" class="link">more &amp; less</a>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{html.escape(clean(value, 4 * LONGEST))}"')
    opening = Html(f"<{' '.join(parts)}>")
    if name in _VOID:
        return opening
    return Html(f"{opening}{join(*children)}</{name}>")


def join(*children: object, between: str = "") -> Html:
    """Children one after the other; None is nothing, a list is its members. `between` is escaped, too."""
    flat: list[Html] = []
    for child in children:
        if child is None:
            continue
        flat.append(join(*child) if isinstance(child, (list, tuple)) else text(child))
    return Html(html.escape(between).join(flat))


def data_block(identity: str, value: Any) -> Html:
    """JSON for a script of the page. It can hold any text: no `<` is left that could end the element."""
    raw = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    for character, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        raw = raw.replace(character, escaped)
    return Html(f'<script type="application/json" id="{html.escape(identity)}">{raw}</script>')


def plot_text(value: object, longest: int = 60) -> str:
    """Text for a chart: Plotly reads some tags and entities, so there must be none.

    >>> plot_text("a<b>&c")
    'a&lt;b&gt;&amp;c'
    """
    return html.escape(clean(value, longest), quote=False)


def script_hash(script: str) -> str:
    """A script's entry in a Content-Security-Policy: only scripts named there are run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
