"""deploy/kubernetes: valid by Kubernetes' own schemas, and right by what the product needs."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadgen import __version__
from loadgen.config import load_settings
from tests.support.kustomize import build, containers, needed
from tests.unit.deploy.test_commands import parsed

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
LOCUSTTEST = ROOT / "tests" / "fixtures" / "kubernetes" / "locusttest.json"
VARIANTS = ("base", "sim", "operator")
OLDEST, NEWEST = 0, -1  # of the versions of Kubernetes whose schemas the package has


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a person has it who has made the files of secrets."""
    made = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, made, ignore=lambda _, names: [n for n in names if n.endswith(".env")])
    for example in made.glob("base/*.env.example"):
        shutil.copy(example, example.with_suffix(""))
    return made


def by_kind(folder: Path, variant: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["kind"], r["metadata"]["name"]): r for r in build(folder / variant)}


@pytest.mark.parametrize("which", [OLDEST, NEWEST])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_resource_is_valid(folder: Path, variant: str, which: int) -> None:
    validate = needed("kubernetes_validate")
    version = validate.utils.all_versions()[which]
    jsonschema = needed("jsonschema")
    for resource in build(folder / variant):
        if resource["kind"] == "LocustTest":
            jsonschema.validate(resource, json.loads(LOCUSTTEST.read_text()))
        else:
            validate.validate(resource, version, strict=True)


def test_the_validation_would_find_something(folder: Path) -> None:
    validate = needed("kubernetes_validate")
    master = by_kind(folder, "base")["Deployment", "loadgen-master"]
    containers(master)[0]["comand"] = []
    with pytest.raises(validate.ValidationError):
        validate.validate(master, validate.utils.all_versions()[NEWEST], strict=True)
    jsonschema = needed("jsonschema")
    (test,) = (r for r in build(folder / "operator") if r["kind"] == "LocustTest")
    test["spec"]["env"] = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(test, json.loads(LOCUSTTEST.read_text()))


@pytest.mark.parametrize("variant", VARIANTS)
def test_kubectl_builds_the_same(folder: Path, variant: str) -> None:
    yaml = needed("yaml")
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder / variant)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    # The names of generated maps end in a hash of their content, wherever they stand.
    text = re.sub(r"(loadgen-(?:settings|keys|master))-[a-z0-9]{10}\b", r"\1", done.stdout)
    real = {(r["kind"], r["metadata"]["name"]): r for r in yaml.safe_load_all(text)}
    assert real == by_kind(folder, variant)


def test_nothing_is_made_without_the_files_of_secrets_and_none_of_them_is_in_the_repository() -> None:
    needed("yaml")
    spec = (FOLDER / "base" / "kustomization.yaml").read_text()
    assert "master.env\n" in spec
    assert "keys.env\n" in spec
    ignored = (ROOT / ".gitignore").read_text()
    assert "/deploy/kubernetes/base/*.env\n" in ignored
    for example in FOLDER.glob("base/*.env.example"):
        for line in example.read_text().splitlines():
            assert line.startswith("#") or line.endswith("="), f"{example.name}: {line} has a value"


def test_workers_have_keys_of_engines_and_nothing_else_that_is_secret(folder: Path) -> None:
    made = by_kind(folder, "base")
    (worker,) = containers(made["Deployment", "loadgen-worker"])
    (master,) = containers(made["Deployment", "loadgen-master"])
    assert worker["envFrom"] == [{"secretRef": {"name": "loadgen-keys"}}]
    assert [e["secretRef"]["name"] for e in master["envFrom"]] == ["loadgen-master", "loadgen-keys"]
    assert set(made["Secret", "loadgen-keys"]["data"]) == {"ENGINE_API_KEY"}
    assert "INFLUXDB_TOKEN" in made["Secret", "loadgen-master"]["data"]


def test_pods_have_few_rights(folder: Path) -> None:
    deployments = [r for r in build(folder / "sim") if r["kind"] == "Deployment"]
    assert len(deployments) == 3
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000  # the image's own
        assert pod["automountServiceAccountToken"] is False
        # LOADGEN_MASTER_PORT and the like of Kubernetes would look like settings of ours.
        assert pod["enableServiceLinks"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["image"] == f"loadgen:{__version__}"
            assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys()
            mounted = {m["mountPath"] for m in container["volumeMounts"]}
            assert "/tmp" in mounted
            if container["name"] != "sim":
                assert "/srv/loadgen/runs" in mounted  # where both of them write
        assert {m["name"] for c in pod["containers"] for m in c["volumeMounts"]} == {
            v["name"] for v in pod["volumes"]
        }


def test_the_page_is_on_the_pods_own_address_and_only_workers_reach_the_master(folder: Path) -> None:
    made = by_kind(folder, "base")
    (master,) = containers(made["Deployment", "loadgen-master"])
    assert "--web-host" not in master["command"]
    ports = [p["port"] for (kind, _), r in made.items() if kind == "Service" for p in r["spec"]["ports"]]
    assert ports == [5557]
    policy = made["NetworkPolicy", "loadgen-master"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels(made, "loadgen-master").items()
    (rule,) = policy["ingress"]
    (peer,) = rule["from"]
    assert peer["podSelector"]["matchLabels"].items() <= labels(made, "loadgen-worker").items()


def labels(made: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, str]:
    found: dict[str, str] = made["Deployment", name]["spec"]["template"]["metadata"]["labels"]
    return found


@pytest.mark.parametrize("variant", ["base", "sim"])
def test_services_find_their_pods_and_ports(folder: Path, variant: str) -> None:
    made = by_kind(folder, variant)
    for (kind, name), service in made.items():
        if kind != "Service":
            continue
        pods = [
            r
            for (k, n), r in made.items()
            if k == "Deployment" and service["spec"]["selector"].items() <= labels(made, n).items()
        ]
        assert [p["metadata"]["name"] for p in pods] == [name]
        (container,) = containers(pods[0])
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= {p["name"] for p in container["ports"]}


def test_commands_are_ones_of_the_image(folder: Path) -> None:
    made = by_kind(folder, "sim")
    for name in ("loadgen-master", "loadgen-worker"):
        (container,) = containers(made["Deployment", name])
        command = container["command"]
        assert command[0] == "locust"
        assert (ROOT / command[command.index("-f") + 1]).is_file()
    worker = containers(made["Deployment", "loadgen-worker"])[0]["command"]
    assert worker[worker.index("--master-host") + 1] in {n for k, n in made if k == "Service"}
    (sim,) = containers(made["Deployment", "loadgen-sim"])
    assert parsed(sim["command"]).host == "0.0.0.0"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_settings_file_is_one(variant: str) -> None:
    settings = load_settings(env={}, config_file=FOLDER / variant / "loadgen.toml")
    assert [(e.name, e.kind, e.url.rpartition(":")[2]) for e in settings.engines] == [
        ("vllm", "vllm", "8000"),
        ("llamacpp", "llamacpp", "8001"),
    ]


def test_the_operator_finds_locustfile_and_settings(folder: Path) -> None:
    made = by_kind(folder, "operator")
    spec = made["LocustTest", "loadgen"]["spec"]
    assert ("ConfigMap", spec["locustfile"]["configMap"]["name"]) in made  # it mounts that at /home/locust
    parser = argparse.ArgumentParser()
    for flag in ("-f", "--loadgen-config", "--web-host"):
        parser.add_argument(flag)
    args = parser.parse_args(shlex.split(spec["args"]))
    inside = args.f.removeprefix("/srv/loadgen/")
    assert (ROOT / inside).is_file()
    settings = made["ConfigMap", spec["locustfile"]["configMap"]["name"]]["data"]
    assert args.loadgen_config == f"/home/locust/{next(iter(settings))}"
    dockerfile = (FOLDER / "operator" / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["locust"]' in dockerfile  # it gives its containers arguments alone
    assert f"LOADGEN_IMAGE=loadgen:{__version__}" in dockerfile
    assert spec["image"] == f"loadgen-operator:{__version__}"
