"""What servers say when something is wrong, on one bounded line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.errors import clean, http_error_text


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (500, b"", "HTTP 500"),
        (500, b"   \r\n", "HTTP 500"),
        (500, b"Internal Server Error\n", "HTTP 500: Internal Server Error"),
        (502, b"<html>\n<h1>Bad Gateway</h1></html>", "HTTP 502: <html> <h1>Bad Gateway</h1></html>"),
        (503, b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}',
         "HTTP 503: Loading model (unavailable_error, 503)"),
        (404, b'{"detail":"Not Found"}', "HTTP 404: Not Found"),
        (422, b'{"detail":[{"loc":["body"]}]}', 'HTTP 422: {"detail":[{"loc":["body"]}]}'),
        (400, b'{"object":"error","message":"too long","type":"BadRequestError","code":400}',
         "HTTP 400: too long (BadRequestError, 400)"),
        (429, b'{"message":"slow down"}', "HTTP 429: slow down"),
        (400, b'"just a text"', 'HTTP 400: "just a text"'),
        (500, b"\xff\xfe\x00", "HTTP 500: \ufffd\ufffd"),
    ],
)  # fmt: skip
def test_http_error_text(status: int, body: bytes, text: str) -> None:
    assert http_error_text(status, body) == text


@given(st.text(max_size=3000))
def test_clean_text_is_one_short_printable_line(text: str) -> None:
    cleaned = clean(text, 100)
    assert len(cleaned) <= 100
    assert cleaned.isprintable()


@given(st.integers(400, 599), st.binary(max_size=300))
def test_any_body_gives_a_sentence(status: int, body: bytes) -> None:
    text = http_error_text(status, body)
    assert text.startswith(f"HTTP {status}")
    assert len(text) < 500
    assert text.isprintable()
