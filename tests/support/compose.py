"""docker-compose.yml as the real Compose binary reads it. No container engine is needed for that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {
    "INFLUXDB_PASSWORD": "pw-influx",
    "INFLUXDB_TOKEN": "token-influx",
    "GRAFANA_PASSWORD": "pw-grafana",
    "LOADGEN_TELEMETRY_TOKEN": "token-telemetry",
}
PROFILES = ("sim", "vllm", "llamacpp", "gpu")


def tool(name: str) -> str:
    """A program that is installed with the developer tools, else one on PATH; the test is skipped without,
    and fails in continuous integration."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        if name == "docker-compose" and sys.version_info < (3, 11):
            pytest.skip("the package that brings docker-compose needs Python 3.11, and there is none on PATH")
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"{name} is missing: pip install '.[dev]' brings it", pytrace=False)
        pytest.skip(f"{name} is not installed (pip install '.[dev]' brings it)")
    return found


def compose(env_file: Path, *profiles: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`docker-compose config` with the variables of `env_file`, and none of this process's but PATH."""
    flags = ["--project-directory", str(ROOT), "--env-file", str(env_file)]
    flags += [part for name in profiles for part in ("--profile", name)]
    return subprocess.run(
        [tool("docker-compose"), *flags, "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": str(env_file.parent), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def services(folder: Path, *profiles: str, **env: str) -> dict[str, Any]:
    """The services of a valid configuration, with every secret set and `env` besides."""
    return model(folder, *profiles, **env)["services"]


def model(folder: Path, *profiles: str, **env: str) -> dict[str, Any]:
    done = compose(write_env(folder, {**SECRETS, **env}), *profiles)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_env(folder: Path, values: Mapping[str, str]) -> Path:
    file = folder / "test.env"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return file
