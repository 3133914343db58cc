"""Standard streams that are closed or cannot show everything."""

from __future__ import annotations

import io
import sys

import pytest

from loadgen import stdio


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_stream_takes_everything_and_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, name, None)
    stdio.make_usable()
    stream = getattr(sys, name)
    assert stream.write("é\n") == 2
    assert not stream.isatty()
    stream.close()


def test_what_an_encoding_lacks_is_a_question_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    stdio.make_usable()
    print("a · b")
    sys.stdout.flush()
    assert raw.getvalue().split() == [b"a", b"?", b"b"]


def test_an_error_handler_that_somebody_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    chosen = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", chosen)
    stdio.make_usable()
    print("é")
    sys.stdout.flush()
    assert raw.getvalue().strip() == b"\\xe9"
