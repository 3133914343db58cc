"""delivery.json: how far each file of a run has been delivered, to each destination.

    {"format": 1, "destinations": {"http://127.0.0.1:8086 org bucket": {
        "files": {"requests.jsonl": {"offset": 812345, "mark": "9f3c..."}}}}}

`mark` is a fingerprint of what lies before the offset. A file that was replaced or cut since then does not
have it and is delivered from its beginning, which does no harm: the same points are written again.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from loadgen.sinks.tail import size
from loadgen.store.manifest import write_atomically

NAME = "delivery.json"
FORMAT = 1
ENDS = 256
# Made anew as a whole, and likely to begin and end as before: all of it counts.
WHOLE = ("derived.jsonl",)


class DeliveryState:
    """The offsets of one run and one destination. Other destinations' are kept as they are."""

    def __init__(self, folder: Path, destination: str) -> None:
        """Reads what there is; a missing or damaged file means that nothing was delivered."""
        self.folder = Path(folder)
        self.path = self.folder / NAME
        self._all = _read(self.path)
        self._files: dict[str, dict[str, Any]] = self._all.setdefault(destination, {}).setdefault("files", {})

    def offset(self, name: str) -> int:
        """Where to go on in a file: 0 if it is not the one that was delivered so far."""
        known = self._files.get(name, {})
        offset = known.get("offset")
        path = self.folder / name
        if type(offset) is not int or not 0 < offset <= size(path):
            return 0
        return offset if known.get("mark") == mark(path, offset) else 0

    def advance(self, name: str, offset: int) -> None:
        """Everything before `offset` has been delivered or buried. Raises OSError."""
        self._files[name] = {"offset": offset, "mark": mark(self.folder / name, offset)}

    def forget(self, name: str) -> None:
        self._files.pop(name, None)

    def forget_all(self) -> None:
        self._files.clear()

    def save(self) -> None:
        """On disk (fsync) when it returns. Raises StoreError."""
        data = {"format": FORMAT, "destinations": self._all}
        write_atomically(self.path, json.dumps(data, indent=1) + "\n")


def mark(path: Path, offset: int) -> str:
    """Of the first and the last bytes before the offset, or of all where a file is made as a whole."""
    digest = blake2b(digest_size=12)
    with open(path, "rb") as f:
        if path.name in WHOLE:
            left = offset
            while left and (data := f.read(min(left, 2**20))):
                digest.update(data)
                left -= len(data)
        else:
            digest.update(f.read(min(ENDS, offset)))
            f.seek(max(0, offset - ENDS))
            digest.update(f.read(min(ENDS, offset)))
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        destinations = data["destinations"]
        sound = all(isinstance(d["files"], dict) for d in destinations.values())
        sound = sound and all(isinstance(f, dict) for d in destinations.values() for f in d["files"].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
    return destinations if sound and data.get("format") == FORMAT else {}
