"""Delivery: from the files of a run directory to InfluxDB, by a process of its own."""
