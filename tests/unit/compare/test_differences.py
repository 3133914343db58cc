"""What differs between two runs: each thing that matters is named, and nothing else is."""

import copy
import doctest
from typing import Any

import pytest

from loadgen.compare import quantisation as quantisation_module
from loadgen.compare.differences import Difference, differences, paired_engines
from loadgen.compare.quantisation import quantisation
from loadgen.config import EngineSpec, Settings
from loadgen.store.manifest import Manifest

SPEC = {"kind": "vllm", "url": "http://gpu:8000"}
VLLM = {
    "name": "vllm",
    "kind": "vllm",
    "url": "http://gpu:8000",
    "server": "vLLM",
    "version": "0.32.0",
    "model": "Qwen3-8B-FP8",
    "context": 8192,
    "slots": None,
    "total_context": 245200,
    "prefix_cache": True,
    "simulated": False,
    "facts": {"gpu_memory_utilization": "0.9", "cache_dtype": "auto", "model_root": "/m/Qwen3-8B-FP8"},
}
LLAMA = {**VLLM, "name": "llamacpp", "model": "q8b", "facts": {"model_ftype": "Q4_K - Medium"}, "slots": 4}
GPU = {"name": "NVIDIA H200", "uuid": "GPU-1", "driver": "580.159.04", "power_limit_w": 700.0}


def manifest(**more: Any) -> Manifest:
    engines = (EngineSpec(name="vllm", **SPEC), EngineSpec(name="llamacpp", **SPEC))
    settings = Settings(engines=engines).public_dict()
    return Manifest(
        run="r",
        settings=copy.deepcopy(settings),
        engines=copy.deepcopy([VLLM, LLAMA]),
        host={"cpu": "Xeon", "cores": 8, "name": "one"},
        packages={"loadgen": "0.1.0", "locust": "2.47.0"},
        extra={"gpus": [dict(GPU), {**GPU, "uuid": "GPU-2"}], "prompts": {"run_salt": "a", "exact": True}},
        **more,
    )


def test_a_run_made_again_differs_in_nothing() -> None:
    again = manifest()
    again.extra["prompts"]["run_salt"] = "b"
    again.settings["runs_dir"] = "/elsewhere"
    again.settings["influxdb"] = {"url": "http://x"}
    assert differences(manifest(), again) == []


# (path into the manifest, new value, what it is called, does it matter)
CHANGES: list[tuple[tuple[Any, ...], Any, str, bool]] = [
    (("engines", 0, "model"), "Qwen3-8B", "vllm: model", True),
    (("engines", 1, "facts", "model_ftype"), "Q8_0", "llamacpp: quantisation", True),
    (("engines", 0, "version"), "0.33.0", "vllm: engine version", True),
    (("engines", 0, "facts", "gpu_memory_utilization"), "0.5", "vllm: share of GPU memory", True),
    (("engines", 0, "facts", "model_root"), "/n/Qwen3-8B-FP8", "vllm: path of the model", False),
    (("engines", 0, "simulated"), True, "vllm: simulated", True),
    (("engines", 1, "slots"), 16, "llamacpp: slots", True),
    (("settings", "engines", 0, "start"), "vllm serve --enforce-eager", "vllm: start command", True),
    (("settings", "engines", 0, "extra_body"), {"top_k": 1}, "vllm: fields added to requests", True),
    (("settings", "users"), 32, "users", True),
    (("settings", "output_tokens"), 128, "output tokens", True),
    (("settings", "seed"), 2, "prompt set: seed", True),
    (("settings", "prompt_file"), "p.jsonl", "prompt set: file", True),
    (("settings", "blocks"), 12, "blocks", False),
    (("settings", "timeouts", "gap_s"), 9.0, "timeouts: gap_s", False),
    (("settings", "telemetry", "interval_s"), 0.2, "telemetry: interval_s", False),
    (("extra", "prompts", "exact"), False, "prompt set: of exact length", True),
    (("extra", "gpus"), [GPU], "number of GPUs", True),
    (("extra", "gpus", 1, "power_limit_w"), 350.0, "power limit, W", True),
    (("extra", "gpus", 0, "uuid"), "GPU-3", "which card", False),
    (("packages", "loadgen"), "0.2.0", "generator version", True),
    (("packages", "locust"), "2.48.0", "version of locust", False),
    (("clock",), "read", "clock of the times", True),
    (("host", "cores"), 2, "cores of the generator", True),
    (("host", "name"), "two", "host of the generator", False),
    (("extra", "workers"), [{"name": "w"}], "workers", False),
]


@pytest.mark.parametrize(("path", "value", "what", "matters"), CHANGES, ids=[c[2] for c in CHANGES])
def test_one_change_is_one_difference(path: tuple[Any, ...], value: Any, what: str, matters: bool) -> None:
    other = manifest()
    place: Any = vars(other)
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert [(d.what, d.matters) for d in differences(manifest(), other)] == [(what, matters)]
    assert [(d.what, d.matters) for d in differences(other, manifest())] == [(what, matters)]


def test_what_matters_comes_first_and_values_stay_values() -> None:
    other = manifest()
    other.settings["blocks"] = 12
    other.settings["users"] = 32
    assert differences(manifest(), other) == [
        Difference("users", 16, 32, True),
        Difference("blocks", 6, 12, False),
    ]
    assert Difference("users", 16, 32, True).to_dict() == {
        "what": "users",
        "a": 16,
        "b": 32,
        "matters": True,
    }


def test_a_prompt_file_is_known_by_its_contents() -> None:
    one, moved, changed = manifest(), manifest(), manifest()
    for m, name, sha256 in ((one, "p", "aa" * 32), (moved, "q", "aa" * 32), (changed, "p", "bb" * 32)):
        m.settings["prompt_file"] = name
        m.extra["prompts"]["file_sha256"] = sha256
    assert differences(one, moved) == [Difference("prompt set: file", "p", "q", False)]
    assert differences(one, changed) == [
        Difference("prompt set: contents of the file", "sha256 aaaaaaaaaaaa", "sha256 bbbbbbbbbbbb", True)
    ]


def test_a_setting_that_another_version_did_not_have_is_no_difference() -> None:
    old = manifest()
    del old.settings["arrival"], old.packages["locust"], old.engines[0]["version"]
    old.settings["future"] = 1
    assert differences(old, manifest()) == []


def test_a_setting_of_a_newer_version_matters() -> None:
    a, b = manifest(), manifest()
    a.settings["future"], b.settings["future"] = 1, 2
    assert differences(a, b) == [Difference("future", 1, 2, True)]


def test_runs_of_one_engine_each_are_held_against_each_other() -> None:
    a, b = manifest(), manifest()
    a.engines, b.engines = a.engines[:1], b.engines[1:]
    assert paired_engines(a, b) == [("vllm", "llamacpp")]
    found = {d.what: (d.a, d.b) for d in differences(a, b)}
    assert found["vllm / llamacpp: quantisation"] == ("FP8", "Q4_K_M")
    assert "vllm / llamacpp: slots" not in found  # vLLM has none


def test_an_engine_more_is_told() -> None:
    b = manifest()
    b.engines = b.engines[:1]
    assert differences(manifest(), b) == [
        Difference("engines without a counterpart", "llamacpp", None, False)
    ]


def test_gpus_and_manifests_that_are_missing() -> None:
    a, b = manifest(), manifest()
    del b.extra["gpus"]
    assert differences(a, b) == [Difference("GPUs", "2 x NVIDIA H200", "not watched", True)]
    b.extra["gpus"] = "nonsense"
    assert len(differences(a, b)) == 1
    assert differences(a, None) == [Difference("manifest.json", "there", "missing", True)]
    assert differences(None, None) == []


@pytest.mark.parametrize(
    ("info", "start", "expected"),
    [
        ({"facts": {"ftype": "Q4_1"}}, None, "Q4_1"),
        ({"facts": {"ftype": "Q4_K - Small"}, "model": "m-FP8"}, None, "Q4_K_S"),
        ({"model": "q8b"}, "vllm serve q8b --quantization fp8 --dtype float16", "FP8"),
        ({"model": "q8b"}, "vllm serve q8b --quantization=awq", "AWQ"),
        ({"model": "Qwen3-8B-Q4_K_M.gguf"}, None, "Q4_K_M"),
        ({"model": "bartowski/Llama-IQ3_XXS"}, None, "IQ3_XXS"),
        ({"facts": {"model_root": "/models/Qwen3-8B-GPTQ-Int4"}, "model": "m"}, None, "INT4"),
        ({"model": "Qwen3-8B-BF16"}, None, "BF16"),
        ({"model": "Qwen3-8B", "facts": {}}, "vllm serve", None),
        ({}, None, None),
    ],
)
def test_quantisation(info: dict[str, Any], start: str | None, expected: str | None) -> None:
    assert quantisation(info, {"start": start}) == expected


def test_the_examples_are_true() -> None:
    assert doctest.testmod(quantisation_module).failed == 0
