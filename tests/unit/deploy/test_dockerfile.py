"""The Dockerfile, as far as it can be checked without building it."""

from __future__ import annotations

import fnmatch
import re
import subprocess

import pytest

from tests.support.compose import ROOT, tool

FILE = ROOT / "Dockerfile"
TEXT = FILE.read_text()
STEPS = [line for line in re.sub(r"\\\n\s*", "", TEXT).splitlines() if line and not line.startswith("#")]
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def in_context(name: str) -> bool:
    """Whether Docker sends this path of the repository to the builder: the last pattern that fits decides."""
    sent = True
    for line in IGNORED:
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(name, pattern):
            sent = line.startswith("!")
    return sent


def test_the_last_stage_runs_as_an_ordinary_user() -> None:
    last = STEPS[max(i for i, step in enumerate(STEPS) if step.startswith("FROM ")) :]
    users = [step.split()[1] for step in last if step.startswith("USER ")]
    assert users == ["1000:1000"]
    assert not any(step.startswith(("RUN", "COPY")) for step in last[last.index("USER 1000:1000") :])


def test_the_base_image_is_pinned_to_a_python_that_the_package_runs_on() -> None:
    assert {step.split()[1] for step in STEPS if step.startswith("FROM ")} == {"${PYTHON_IMAGE}"}
    pinned = re.search(r"^ARG PYTHON_IMAGE=python:(\d+)\.(\d+)\.\d+-", TEXT, re.M)
    assert pinned
    major, minor = map(int, pinned.groups())
    assert (3, 10) <= (major, minor) < (3, 14)


def test_what_is_copied_is_here_and_sent_and_nothing_else_is() -> None:
    copied = [step.split()[1:-1] for step in STEPS if step.startswith("COPY ") and "--from" not in step]
    names = {name for part in copied for name in part}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "loadgen", "locustfiles"}
    for name in names:
        assert (ROOT / name).exists()
        assert in_context(name)
    for name in (".env", ".git", ".venv", ".cache", "runs", "tests", "benchmarks", "loadgen.toml"):
        assert not in_context(name), name


def test_the_image_has_what_the_live_page_and_reports_draw_with() -> None:
    assert "install --no-cache-dir --disable-pip-version-check '.[all]'" in TEXT


def test_what_the_build_configuration_needs_is_copied() -> None:
    """pyproject.toml names files outside the package: the README, the licence, the locustfiles."""
    project = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'^readme = "([^"]+)"', project, re.M) + re.findall(
        r'^license-files = \["([^"]+)"', project, re.M
    )
    forced = project.partition("force-include]")[2].partition("\n[")[0]
    named += [path.split("/")[0] for path in re.findall(r'^"([^"]+)" = ', forced, re.M)]
    assert set(named) == {"README.md", "LICENSE", "locustfiles", "loadgen"}
    assert all(in_context(name) for name in named)


def test_commands_come_from_the_environment_that_is_copied() -> None:
    assert "COPY --from=build /opt/loadgen /opt/loadgen" in STEPS
    assert re.search(r"^ENV PATH=/opt/loadgen/bin:\$PATH", TEXT, re.M)


@pytest.mark.parametrize("file", ["Dockerfile", "deploy/kubernetes/operator/Dockerfile"])
def test_hadolint_finds_nothing(file: str) -> None:
    done = subprocess.run([tool("hadolint"), str(ROOT / file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
