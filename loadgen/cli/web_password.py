"""`loadgen web-password`: a hash for the login of Locust's web page."""

from __future__ import annotations

import argparse
import getpass
import sys

from loadgen import exitcodes

HELP = "a password's hash, for the login of Locust's web page"
DESCRIPTION = """\
Asks for a password and prints its hash (scrypt, salted), for the login of the
web page: Locust's page with the live page in it then asks for user and
password. The password itself is stored nowhere."""
EPILOG = """\
examples:
  loadgen web-password
  export LOADGEN_WEB_USER=me
  export LOADGEN_WEB_PASSWORD_HASH="$(loadgen web-password)"
  locust -f locustfiles/concurrency.py --web-host 0.0.0.0

With both variables set the page asks for them; --web-login insists that they
are set. In .env the hash stands in single quotes: it has $ signs.
From a pipe, the password is the first line.

exit code: 0 printed, 1 no password, or it was not repeated."""
SHORTEST = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def execute(args: argparse.Namespace) -> int:
    """The hash is all that standard output gets."""
    try:
        password = _asked()
        if len(password) < SHORTEST:
            raise ValueError(f"a password has {SHORTEST} characters or more")
    except (EOFError, ValueError) as e:
        print(f"loadgen web-password: {e or 'no password'}", file=sys.stderr)
        return exitcodes.FAILED
    from werkzeug.security import generate_password_hash

    print(generate_password_hash(password))
    return exitcodes.OK


def _asked() -> str:
    """The password. Raises ValueError if it was not repeated."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if len(password) >= SHORTEST and getpass.getpass("Again: ") != password:
        raise ValueError("these were two different ones")
    return password
