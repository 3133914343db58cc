"""What is computed from records. One metric a file, its definition in the docstring of its class."""

from loadgen.metrics.chunk_gap import ChunkGap
from loadgen.metrics.columns import ColumnBuilder, Columns
from loadgen.metrics.connect import Connect
from loadgen.metrics.decode_speed import DecodeSpeed
from loadgen.metrics.e2e import E2E
from loadgen.metrics.first_event import FirstEvent
from loadgen.metrics.headers import Headers
from loadgen.metrics.littles import littles_law
from loadgen.metrics.metric import Metric
from loadgen.metrics.read_lag import ReadLag
from loadgen.metrics.scheduled_e2e import ScheduledE2E
from loadgen.metrics.scheduled_ttft import ScheduledTTFT
from loadgen.metrics.send_lag import SendLag
from loadgen.metrics.tpot import TPOT
from loadgen.metrics.ttfa import TTFA
from loadgen.metrics.ttft import TTFT

METRICS: tuple[Metric, ...] = (
    TTFT(),
    FirstEvent(),
    Headers(),
    TTFA(),
    TPOT(),
    DecodeSpeed(),
    E2E(),
    ChunkGap(),
    ScheduledTTFT(),
    ScheduledE2E(),
    Connect(),
    ReadLag(),
    SendLag(),
)

__all__ = ["METRICS", "ColumnBuilder", "Columns", "Metric", "littles_law"]
