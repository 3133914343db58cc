"""Our flags in `locust -f LOCUSTFILE --help`.

Locust prints its help before it loads the locustfile, so flags that a locustfile adds are missing from it.
But Locust first imports `locust_plugins`, if there is such a module, to let it add flags. The start-up file
`loadgen-help.pth` imports this module in processes that were started for help, and this module answers that
import where nobody else does: by loading the locustfile, if it is one of ours. It does nothing else, and
nothing at all in any other process.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


def locustfile(argv: Sequence[str], env: str | None = None) -> Path | None:
    """The one locustfile that a command line names, None if there is none or several.

    >>> locustfile(["locust", "-f", "a.py", "--help"])
    PosixPath('a.py')
    """
    name = env
    for flag, following in zip(argv[1:], (*argv[2:], ""), strict=True):
        if flag in ("-f", "--locustfile"):
            name = following
        elif flag.startswith("--locustfile="):
            name = flag.partition("=")[2]
        elif flag.startswith("-f") and len(flag) > 2:
            name = flag[2:]
    return Path(name) if name and name.endswith(".py") and "," not in name else None


class _Plugins(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "locust_plugins":
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        file = locustfile(sys.argv, os.environ.get("LOCUST_LOCUSTFILE"))
        # Help is shown whatever is wrong with the file; Locust will say it when it is to be run.
        with contextlib.suppress(Exception):
            if file is None or "loadgen" not in file.read_text(encoding="utf-8"):
                return
            from locust.util.load_locustfile import load_locustfile

            load_locustfile(str(file.resolve()))


def _asked_of_locust() -> bool:
    command = sys.orig_argv[1:3]
    return any(Path(part).name in ("locust", "locust.exe", "locust-script.py") for part in command)


if _asked_of_locust():
    sys.meta_path.append(_Plugins())
