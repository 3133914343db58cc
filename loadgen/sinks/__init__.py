"""Where results are delivered to: InfluxDB, from the run directory."""
