"""What differs between two runs beside what is to be compared: manifest against manifest. Pure.

What matters comes first. What only one of the manifests knows (another version wrote it, a server did not
say) is no difference: it may have been the same in the other run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from loadgen.compare.quantisation import quantisation
from loadgen.store.manifest import Manifest

# Settings that change what is measured only by their number of observations, or not at all. All that are not
# named here matter, also those of a newer version.
LENGTHS = frozenset(
    {"blocks", "cooldown_s", "cooldown_max_s", "cooldown_degrees", "warmup_max_s", "ready_timeout_s"}
    | {"warmup", "warmup_requests", "timeouts", "telemetry"}
)
NOT_COMPARED = frozenset({"engines", "runs_dir", "influxdb", "slo"})
PROMPT_SET = {
    "prompt_tokens": "prompt set: tokens a prompt",
    "prompt_lengths": "prompt set: lengths",
    "mix": "prompt set: mix of classes",
    "exchanges": "prompt set: exchanges of a conversation",
    "system_tokens": "prompt set: tokens of the system prompt",
    "prompt_file": "prompt set: file",
    "salt": "prompt set: salt",
    "seed": "prompt set: seed",
}
# Of an EngineInfo: its name here, and whether it matters.
ENGINE = {
    "server": ("server", True),
    "version": ("engine version", True),
    "model": ("model", True),
    "simulated": ("simulated", True),
    "context": ("context", True),
    "slots": ("slots", True),
    "total_context": ("KV cache, tokens", True),
    "prefix_cache": ("prefix cache", True),
    "url": ("address", False),
}
FACTS = {
    "gpu_memory_utilization": ("share of GPU memory", True),
    "cache_dtype": ("KV cache type", True),
    "block_size": ("KV block size", True),
    "n_params": ("parameters of the model", True),
    "size": ("bytes of weights", True),
    "n_vocab": ("vocabulary", True),
    "chat_template_sha256": ("chat template", True),
    "model_root": ("path of the model", False),
    "model_path": ("path of the model", False),
}
SPEC = {
    "kind": ("kind of engine", True),
    "replicas": ("further addresses", True),
    "extra_body": ("fields added to requests", True),
    "start": ("start command", True),
}
GPU = {
    "name": ("GPU", True),
    "compute_capability": ("compute capability", True),
    "memory_total_bytes": ("GPU memory", True),
    "driver": ("driver", True),
    "cuda": ("CUDA", True),
    "power_limit_w": ("power limit, W", True),
    "max_sm_clock_mhz": ("highest SM clock, MHz", True),
    "ecc_enabled": ("ECC", True),
    "mig_enabled": ("MIG", True),
    "pcie_generation_max": ("PCIe generation", True),
    "pcie_width_max": ("PCIe lanes", True),
    "uuid": ("which card", False),
}
HOST = {
    "cpu": ("processor of the generator", True),
    "cores": ("cores of the generator", True),
    "machine": ("architecture of the generator", True),
    "name": ("host of the generator", False),
    "system": ("system of the generator", False),
    "memory_bytes": ("memory of the generator", False),
    "python": ("Python", False),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """`a` and `b` are JSON values, None where one run does not know it. `matters`: figures of the two runs
    may differ by it alone."""

    what: str
    a: Any
    b: Any
    matters: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def differences(
    a: Manifest | None, b: Manifest | None, pairs: Sequence[tuple[str, str]] | None = None
) -> list[Difference]:
    """What differs between the runs of two manifests (None: it has none), what matters first.

    `pairs` are the engines (of a, of b) to hold against each other; by default those of equal names, and the
    one that is left over in each run if it is one in each.
    """
    if a is None or b is None:
        if a is b:
            return []
        there = ["missing" if m is None else "there" for m in (a, b)]
        return [Difference("manifest.json", there[0], there[1], True)]
    found = [
        *_engines(a, b, pairs if pairs is not None else paired_engines(a, b)),
        *_settings(a.settings, b.settings, same_file=same_prompt_file(a, b)),
        *_prompts(a, b),
        *_gpus(a.extra.get("gpus"), b.extra.get("gpus")),
        *_generator(a, b),
    ]
    return sorted(found, key=lambda d: not d.matters)


def paired_engines(a: Manifest, b: Manifest) -> list[tuple[str, str]]:
    """Engines of equal names, then the one left over in each run if it is one in each."""
    names_a, names_b = list(_by_name(a.engines)), list(_by_name(b.engines))
    pairs = [(n, n) for n in names_a if n in names_b]
    left = [n for n in names_a if n not in names_b], [n for n in names_b if n not in names_a]
    if len(left[0]) == len(left[1]) == 1:
        pairs.append((left[0][0], left[1][0]))
    return pairs


def _engines(a: Manifest, b: Manifest, pairs: Sequence[tuple[str, str]]) -> Iterator[Difference]:
    infos = _by_name(a.engines), _by_name(b.engines)
    specs = _by_name(a.settings.get("engines")), _by_name(b.settings.get("engines"))
    paired = [{p[0] for p in pairs}, {p[1] for p in pairs}]
    alone = [[n for n in infos[k] if n not in paired[k]] for k in (0, 1)]
    if any(alone):
        yield Difference(
            "engines without a counterpart", ", ".join(alone[0]) or None, ", ".join(alone[1]) or None, False
        )
    for name_a, name_b in pairs:
        label = name_a if name_a == name_b else f"{name_a} / {name_b}"
        info = infos[0].get(name_a, {}), infos[1].get(name_b, {})
        spec = specs[0].get(name_a, {}), specs[1].get(name_b, {})
        facts = [dict(i.get("facts") or {}) for i in info]
        yield from _compared(label, ENGINE, info[0], info[1])
        weights = [quantisation(i, s) for i, s in zip(info, spec, strict=True)]
        if weights[0] != weights[1]:
            yield Difference(f"{label}: quantisation", weights[0], weights[1], True)
        yield from _compared(label, FACTS, facts[0], facts[1])
        for key, (what, matters) in SPEC.items():  # None is a value here: nothing was asked for
            if key in spec[0] and key in spec[1] and spec[0][key] != spec[1][key]:
                yield Difference(f"{label}: {what}", _text(spec[0][key]), _text(spec[1][key]), matters)


def same_prompt_file(a: Manifest, b: Manifest) -> bool | None:
    """Whether the prompts of both came from files of the same bytes; None where that is not known."""
    sums = [prompt_facts(m).get("file_sha256") for m in (a, b)]
    return sums[0] == sums[1] if all(sums) else None


def prompt_facts(manifest: Manifest) -> Mapping[str, Any]:
    """What the manifest knows of the prompts."""
    facts = manifest.extra.get("prompts")
    return facts if isinstance(facts, dict) else {}


def _settings(
    a: Mapping[str, Any], b: Mapping[str, Any], *, same_file: bool | None = None
) -> Iterator[Difference]:
    for key in a:
        if key in NOT_COMPARED or key not in b or a[key] == b[key]:
            continue
        what = PROMPT_SET.get(key, key.replace("_", " "))
        if isinstance(a[key], dict) and isinstance(b[key], dict):
            for part in sorted(a[key].keys() & b[key].keys()):
                if a[key][part] != b[key][part]:
                    yield Difference(f"{what}: {part}", a[key][part], b[key][part], key not in LENGTHS)
        else:
            # A file that was moved or copied is still the same prompts.
            matters = key not in LENGTHS and not (key == "prompt_file" and same_file)
            yield Difference(what, a[key], b[key], matters)


def _prompts(a: Manifest, b: Manifest) -> Iterator[Difference]:
    facts = [prompt_facts(m) for m in (a, b)]
    if same_prompt_file(a, b) is False:
        sums = [_sum(f["file_sha256"]) for f in facts]
        yield Difference("prompt set: contents of the file", sums[0], sums[1], True)
    labels = {
        "prompts_in_file": "prompt set: prompts in the file",
        "exact": "prompt set: of exact length",
        "first_prompt_tokens": "prompt set: tokens of the first prompt",
    }
    for key, what in labels.items():
        if key in facts[0] and key in facts[1] and facts[0][key] != facts[1][key]:
            yield Difference(what, _text(facts[0][key]), _text(facts[1][key]), True)


def _sum(sha256: Any) -> str:
    return f"sha256 {str(sha256)[:12]}"


def _gpus(a: Any, b: Any) -> Iterator[Difference]:
    rows = [[g for g in some if isinstance(g, dict)] if isinstance(some, list) else [] for some in (a, b)]
    if not rows[0] or not rows[1]:
        if rows[0] or rows[1]:
            said = [_counted(g.get("name") for g in some) or "not watched" for some in rows]
            yield Difference("GPUs", said[0], said[1], True)
        return
    if len(rows[0]) != len(rows[1]):
        yield Difference("number of GPUs", len(rows[0]), len(rows[1]), True)
    for key, (what, matters) in GPU.items():
        counts = [Counter(str(g[key]) for g in some if g.get(key) is not None) for some in rows]
        # A number of GPUs that differs is told once, not with each of their facts.
        if key == "uuid" and len(rows[0]) != len(rows[1]):
            continue
        if counts[0] and counts[1] and set(counts[0]) != set(counts[1]):
            yield Difference(what, _counted(counts[0].elements()), _counted(counts[1].elements()), matters)


def _generator(a: Manifest, b: Manifest) -> Iterator[Difference]:
    for name in a.packages:
        if name in b.packages and a.packages[name] != b.packages[name]:
            what = "generator version" if name == "loadgen" else f"version of {name}"
            yield Difference(what, a.packages[name], b.packages[name], name == "loadgen")
    if a.clock != b.clock:
        yield Difference("clock of the times", a.clock, b.clock, True)
    for key, (what, matters) in HOST.items():
        values = a.host.get(key), b.host.get(key)
        if None not in values and values[0] != values[1]:
            yield Difference(what, values[0], values[1], matters)
    workers = [len(m.extra["workers"]) if isinstance(m.extra.get("workers"), list) else 0 for m in (a, b)]
    if workers[0] != workers[1]:
        yield Difference("workers", workers[0], workers[1], False)


def _compared(
    label: str, names: Mapping[str, tuple[str, bool]], a: Mapping[str, Any], b: Mapping[str, Any]
) -> Iterator[Difference]:
    for key, (what, matters) in names.items():
        if None not in (a.get(key), b.get(key)) and a[key] != b[key]:
            yield Difference(f"{label}: {what}", _text(a[key]), _text(b[key]), matters)


def _by_name(rows: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(rows, list):
        return {}
    return {str(r.get("name")): r for r in rows if isinstance(r, dict)}


def _counted(values: Iterable[Any]) -> str:
    counts = Counter(str(v) for v in values if v is not None)
    return ", ".join(f"{n} x {v}" if n > 1 else v for v, n in sorted(counts.items()))


def _text(value: Any) -> Any:
    """A value as one cell: dicts as text."""
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items()) or "none"
    return value
