"""LineWriter and JournalWriter when all is well, when the disk is full, and when the process is killed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.record import RequestRecord
from loadgen.store import Damage, JournalWriter, StoreError, read_records
from loadgen.store.lines import LineWriter


class Disk:
    """os.write with so many bytes of room: a line that doesn't fit is cut short, the next refused."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.calls = 0

    def write(self, fd: int, data: bytes) -> int:
        self.calls += 1
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        n = os.write(fd, data[: self.room])
        self.room -= n
        return n


def test_one_write_a_line(tmp_path: Path) -> None:
    disk = Disk(1000)
    writer = LineWriter(tmp_path / "a", write=disk.write)
    writer.append(b"one")
    assert (tmp_path / "a").read_bytes() == b"one\n"
    writer.append(b"two")
    assert disk.calls == 2
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"one\ntwo\n"
    assert writer.problem is None


def test_full_disk_that_gets_room_again_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(6)  # "line1\n" fits, nothing else
    writer = LineWriter(tmp_path / "a", write=disk.write)
    for n in (1, 2, 3):
        writer.append(f"line{n}".encode())
    assert writer.waiting == 2
    assert "No space left on device" in str(writer.problem)
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1
    disk.room = 1000
    writer.append(b"line4")
    assert writer.waiting == 0
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"line1\nline2\nline3\nline4\n"


def test_line_cut_in_half_by_a_full_disk_is_completed(tmp_path: Path) -> None:
    disk = Disk(9)  # "line1\n" and "lin"
    writer = LineWriter(tmp_path / "a", write=disk.write)
    writer.append(b"line1")
    writer.append(b"line2")
    assert (tmp_path / "a").read_bytes() == b"line1\nlin"
    disk.room = 1000
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"line1\nline2\n"


def test_disk_still_full_at_close_writes_elsewhere(tmp_path: Path) -> None:
    disk = Disk(9)
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    writer = LineWriter(tmp_path / "a", write=disk.write, fallback_dir=elsewhere)
    writer.append(b"line1")
    writer.append(b"line2")
    writer.append(b"line3")
    writer.close()
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"line1\n"
    assert writer.fallback is not None
    assert writer.fallback.read_bytes() == b"line2\nline3\n"
    assert str(writer.fallback) in str(writer.problem)


def test_nowhere_to_write_says_that_lines_are_lost(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "a", write=Disk(0).write, fallback_dir=tmp_path / "missing")
    writer.append(b"x")
    writer.close()
    assert "lost" in str(writer.problem)


def test_memory_is_bounded_and_the_loss_is_told(tmp_path: Path) -> None:
    disk = Disk(0)
    writer = LineWriter(tmp_path / "a", write=disk.write, keep_bytes=10, fallback_dir=tmp_path)
    for n in range(5):
        writer.append(f"{n}234".encode())  # 5 bytes with the newline: two fit
    assert (writer.waiting, writer.dropped) == (2, 3)
    disk.room = 1000
    writer.close()
    assert (tmp_path / "a").read_bytes() == b"0234\n1234\n"
    assert "3 lines" in str(writer.problem)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_dev_full(tmp_path: Path) -> None:
    writer = JournalWriter(Path("/dev/full"), fallback_dir=tmp_path)
    writer.append(RequestRecord(engine="e", sequence=7))
    assert "No space left" in str(writer.problem)
    writer.close()
    assert writer.fallback is not None
    assert [r.sequence for r in read_records(writer.fallback)] == [7]


def test_a_torn_line_of_an_earlier_writer_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"sequence":1}\n{"seq')
    writer = JournalWriter(path)
    writer.append(RequestRecord(sequence=2))
    writer.close()
    damage = Damage()
    assert [r.sequence for r in read_records(path, damage)] == [1, 2]
    assert damage.bad_lines == [2]


def test_a_directory_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        JournalWriter(tmp_path / "no" / "a.jsonl")


def test_appending_after_close_is_a_programming_error(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "a")
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.append(b"x")


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ([100, 200, 300], [100, 200, 300]),
        ([100, 100, 100], [100, 101, 102]),  # a coarse clock
        ([100, 40, 50, 200], [100, 101, 102, 200]),  # set back, and caught up
        ([100, 9000, 50], [100, 9000, 9001]),  # a jump ahead, corrected
    ],
)
def test_point_ns_is_unique_and_increases(tmp_path: Path, clock: list[int], expected: list[int]) -> None:
    writer = JournalWriter(tmp_path / "j", wall_ns=iter(clock).__next__)
    for _ in clock:
        writer.append(RequestRecord())
    writer.close()
    assert [r.point_ns for r in read_records(tmp_path / "j")] == expected


def test_a_workers_point_ns_is_kept(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "j", wall_ns=lambda: 50)
    writer.append(RequestRecord(worker="w1", point_ns=7))
    writer.append(RequestRecord())
    writer.close()
    assert [r.point_ns for r in read_records(tmp_path / "j")] == [7, 50]


KILLED_WRITER = """
import sys
from pathlib import Path
from loadgen.record import RequestRecord
from loadgen.store import JournalWriter
writer = JournalWriter(Path(sys.argv[1]))
n = 0
while True:
    writer.append(RequestRecord(sequence=n, event_us=list(range(500))))
    n += 1
    if n == 200:
        print("going", flush=True)
"""


def test_sigkill_loses_at_most_the_line_being_written(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    writer = subprocess.Popen([sys.executable, "-c", KILLED_WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"going\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    damage = Damage()
    sequences = [r.sequence for r in read_records(path, damage)]
    assert len(sequences) >= 200
    assert sequences == list(range(len(sequences)))  # none missing, and at most one line torn
    assert damage.bad == 0


def test_a_file_that_is_removed_under_the_writer_is_told_at_once_and_saved_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    writer = LineWriter(tmp_path / "run" / "a", fallback_dir=tmp_path)
    writer.append(b"one")
    assert writer.problem is None
    (tmp_path / "run" / "a").unlink()
    (tmp_path / "run").rmdir()
    writer.append(b"two")
    assert writer.problem == f"{tmp_path}/run/a was removed while it was being written"
    writer.append(b"three")
    writer.close()
    assert writer.fallback is not None
    assert writer.fallback.read_bytes() == b"one\ntwo\nthree\n"
    assert str(writer.problem).endswith(f": its lines are in {writer.fallback}")
