"""`kubectl kustomize` as far as deploy/kubernetes uses it, for machines without kubectl.

Names of generated maps keep no hash; every key of a kustomization.yaml that is not known here is an error.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

KNOWN = {
    *("apiVersion", "kind", "resources", "labels", "images"),
    *("configMapGenerator", "secretGenerator", "generatorOptions"),
}


def needed(name: str) -> Any:
    """A module of the developer tools; the test is skipped without, and fails in continuous integration."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"{name} is missing: pip install '.[dev]' brings it", pytrace=False)
        pytest.skip(f"{name} is not installed (pip install '.[dev]' brings it)")


def build(folder: Path) -> list[dict[str, Any]]:
    """The resources of a folder with a kustomization.yaml."""
    yaml = needed("yaml")
    spec = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(spec) <= KNOWN, set(spec) - KNOWN
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for name in spec["resources"]:
        path = folder / name
        found = build(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
        for one in found:
            key = one["kind"], one["metadata"]["name"]
            assert key not in made, key
            made[key] = json.loads(json.dumps(one))  # what an anchor shares is each one's own
    for kind, field in (("ConfigMap", "configMapGenerator"), ("Secret", "secretGenerator")):
        for generator in spec.get(field, []):
            key = kind, generator["name"]
            assert (key in made) == (generator.get("behavior", "create") == "replace"), key
            fresh = _generated(folder, kind, generator)
            if key in made:  # only the data are replaced
                fresh["metadata"] = made[key]["metadata"]
            made[key] = fresh
    for one in made.values():
        for label in spec.get("labels", []):
            one["metadata"].setdefault("labels", {}).update(label["pairs"])
        for container in containers(one):
            for image in spec.get("images", []):
                if container["image"].split(":")[0] == image["name"]:
                    container["image"] = f"{image['newName']}:{image['newTag']}"
    return list(made.values())


def containers(resource: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        resource.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    )
    return found


def _generated(folder: Path, kind: str, generator: dict[str, Any]) -> dict[str, Any]:
    data = {name: (folder / name).read_text() for name in generator.get("files", [])}
    for name in generator.get("envs", []):
        for line in (folder / name).read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                key, _, value = line.partition("=")
                data[key] = value
    if kind == "Secret":
        data = {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": generator["name"]}, "data": data}
    return {**made, "type": "Opaque"} if kind == "Secret" else made
