"""`make env`: .env from .env.example, with a fresh random value for every secret. Never overwrites.

Needs nothing but Python, so that a host that has only Docker besides can use it.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECRET = re.compile(r"^([A-Z0-9_]+_(?:PASSWORD|TOKEN))=$", re.M)


def fresh_secret() -> str:
    """43 letters, digits, - and _ (256 bits): nothing that an .env file or a shell would take for syntax, and
    less than the 72 characters that InfluxDB takes as a password."""
    return secrets.token_urlsafe(32)


def filled(example: str, make: Callable[[], str] = fresh_secret) -> str:
    """The example with each secret that it leaves empty, outside comments, filled in.

    >>> filled("A_TOKEN=\\n# B_TOKEN=\\nC_URL=\\n", lambda: "x")
    'A_TOKEN=x\\n# B_TOKEN=\\nC_URL=\\n'
    """
    return SECRET.sub(lambda found: f"{found[1]}={make()}", example)


def missing(example: str, env: str) -> list[str]:
    """The secrets that the example asks for and that `env` does not set."""
    there = set(re.findall(r"^\s*(?:export\s+)?([A-Z0-9_]+)\s*=\s*[^\s#]", env, re.M))
    return [name for name in SECRET.findall(example) if name not in there]


def main(folder: Path = ROOT) -> int:
    """0: .env is there and has all secrets; 1: it lacks some, or cannot be written."""
    example, target = folder / ".env.example", folder / ".env"
    try:
        text = example.read_text(encoding="utf-8")
        try:
            # Made with the mode it is to have: at no moment can others read it.
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if lacking := missing(text, target.read_text(encoding="utf-8")):
                print(
                    f"{target} exists and is left as it is, but lacks {', '.join(lacking)}", file=sys.stderr
                )
                return 1
            print(f"{target} exists, has all secrets, and is left as it is")
            return 0
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)  # whatever the umask took
            file.write(filled(text))
    except OSError as e:
        print(f"{e.filename or target} cannot be used: {e.strerror}", file=sys.stderr)
        return 1
    print(f"{target} is written, with fresh secrets, for you alone to read. Next: docker compose up -d")
    return 0


if __name__ == "__main__":
    sys.exit(main())
