"""A real database for tests: see server.py."""

from tests.support.influxdb.server import Bucket, InfluxError, InfluxServer, NotInstalled

__all__ = ["Bucket", "InfluxError", "InfluxServer", "NotInstalled"]
