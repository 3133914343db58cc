from __future__ import annotations

import io
import sys

import pytest
from werkzeug.security import check_password_hash

from loadgen.cli import main
from loadgen.webui.login import login_from


def test_a_hash_that_the_login_takes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\nnot this\n"))
    assert main(["web-password"]) == 0
    made = capsys.readouterr().out.strip()
    assert check_password_hash(made, "correct horse")
    login = login_from({"LOADGEN_WEB_USER": "me", "LOADGEN_WEB_PASSWORD_HASH": made})
    assert login is not None
    assert login.right("me", "correct horse")
    assert not login.right("me", "Correct horse")
    assert not login.right("you", "correct horse")
    assert made not in repr(login)


@pytest.mark.parametrize("said", ["", "\n", "short\n"])
def test_no_password(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, said: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert main(["web-password"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "loadgen web-password: a password has 8 characters or more\n")


@pytest.mark.parametrize(("again", "code"), [("correct horse", 0), ("other horse", 1)])
def test_asked_twice_on_a_terminal(monkeypatch: pytest.MonkeyPatch, again: str, code: int) -> None:
    answers = iter(["correct horse", again])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    assert main(["web-password"]) == code
