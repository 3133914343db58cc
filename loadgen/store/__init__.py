"""The run directory: manifest, journal of requests, events; written as they come, read as they are."""

from loadgen.store.errors import StoreError
from loadgen.store.events import EventsWriter, read_events
from loadgen.store.journal import JournalWriter, read_records
from loadgen.store.jsonl import Damage
from loadgen.store.manifest import Manifest
from loadgen.store.rundir import RunDir, Suite, resolve

__all__ = [
    "Damage",
    "EventsWriter",
    "JournalWriter",
    "Manifest",
    "RunDir",
    "StoreError",
    "Suite",
    "read_events",
    "read_records",
    "resolve",
]
