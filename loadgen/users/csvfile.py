"""Locust's --csv, complete to the last request."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust import stats

import time


class CompleteCsv(stats.StatsCSVFileWriter):
    """Locust writes these files once a second and closes them as they are, so that whatever ended in the
    last second is missing. This one writes them again before it closes them."""

    def close_files(self) -> None:
        files = (self.requests_csv_filehandle, self.failures_csv_filehandle, self.exceptions_csv_filehandle)
        for file in files:
            file.seek(0)
        self.requests_csv(self.requests_csv_writer)
        self.failures_csv(self.failures_csv_writer)
        self.exceptions_csv(self.exceptions_csv_writer)
        for file in files:
            file.truncate()
        if self.stats_history_csv_filehandle.tell() == 0:
            self.stats_history_csv_writer.writerow(self.stats_history_csv_columns)
        self._stats_history_data_rows(self.stats_history_csv_writer, time.time())
        super().close_files()


def install() -> None:
    """Locust looks its writer up when it starts, after the locustfile has been loaded."""
    stats.StatsCSVFileWriter = CompleteCsv  # type: ignore[misc]
