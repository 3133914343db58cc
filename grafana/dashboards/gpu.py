"""GPU and engine: did the hardware hold its clocks, and what did the engines do with it?"""

from __future__ import annotations

import re
from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards import shared
from grafana.dashboards.gpu_engines import engine_lines
from grafana.dashboards.influxql import RUN, over_time, table, tag_values, target
from grafana.dashboards.model import dashboard as make
from grafana.dashboards.model import row, variable

Json = dict[str, Any]

GPU = f'"gpu" =~ /^$gpu$/ AND "host" =~ /^$host$/ AND {RUN}'
NAME = "$tag_host GPU $tag_gpu"
# A sample may fall into its neighbour's second; where more are missing the line has a gap.
GAPS: Json = {"spans_ms": 10_000}
NO_GPU = "No GPU samples: was there a GPU on this host, or an agent or dcgm-exporter in [telemetry]?"
NO_ENGINE = "No engine counters: vLLM has /metrics by itself, llama-server needs --metrics"
NOT_GIVEN = "This card or driver does not give it (dcgm-exporter may)"

# What it is called in the database, what a band says, its colour. An idle card and a clock that somebody has
# set are no throttling.
FIGURES = ("busy", "power", "energy", "hottest", "SM clock", "memory", "of", "power capped")
PARTS = {
    "reserved_bytes": "held",
    "weights_bytes": "weights",
    "kv_capacity_bytes": "KV cache",
    "kv_used_bytes": "KV used",
    "least_needed_bytes": "needed",
}
CLEAR = "transparent"
REASONS = (
    ("throttle_sw_power_cap", "power cap", p.ORANGE),
    ("throttle_sw_thermal_slowdown", "thermal (driver)", p.RED),
    ("throttle_hw_thermal_slowdown", "thermal (hardware)", p.RED),
    ("throttle_hw_power_brake_slowdown", "power brake", p.RED),
    ("throttle_hw_slowdown", "hardware slow-down", p.RED),
)


def dashboard() -> Json:
    gpus = "/^(engine|gpu)$/"
    return make(
        "loadgen-gpu",
        "GPU and engine",
        "Did the hardware hold its clocks, and what did the engines do with it?",
        since="now-1h",
        variables=[
            shared.run_picker(source=gpus, scenario=False),
            variable("host", "Host", tag_values('"gpu"', "host", '"run" =~ /^$run$/'), everything=True),
            variable(
                "gpu", "GPU", tag_values('"gpu"', "gpu", '"run" =~ /^$run$/'), everything=True, multi=True
            ),
        ],
        annotations=shared.event_marks(),
        rows=[
            row("", [_cards()]),
            row("Clocks and why they were held down", [_clocks()], [_throttling()]),
            row("Heat, power, work", _heat(), _work()),
            row("Memory", _memory(), [_parts()]),
            row("Engines: queue, cache, tokens", *engine_lines()),
            row("Bus, links, errors", *_bus(), collapsed=True),
        ],
    )


def _gpu(
    title: str, field: str, about: str, *, aggregate: str = "mean", empty: str = NO_GPU, **look: Any
) -> Json:
    return p.timeseries(
        title, [target(_samples(f'{aggregate}("{field}")'), NAME)], about, empty=empty, **{**GAPS, **look}
    )


def _samples(select: str, fill: str = "null") -> str:
    return over_time(select, "gpu", "host", "gpu", where=GPU, fill=fill)


def _cards() -> Json:
    query = table(f"""
        SELECT mean("utilization_percent") AS "busy", mean("power_w") AS "power",
            spread("energy_j") AS "energy", max("temperature_c") AS "hottest",
            mean("sm_clock_mhz") AS "SM clock", max("memory_used_bytes") AS "memory",
            last("memory_total_bytes") AS "of", mean("throttle_sw_power_cap") AS "power capped"
        FROM "gpu" WHERE {GPU} GROUP BY "host", "gpu", "gpu_name"
    """)
    return p.table(
        "Cards",
        [query],
        "Each GPU over the time range: means, except the hottest moment, the most memory and the energy "
        "used.",
        columns=["host", "gpu", ("gpu_name", "card"), *FIGURES],
        h=5,
        empty=NO_GPU,
        overrides=[
            p.for_field("busy", unit="percent", decimals=0),
            p.for_field("power", unit="watt", decimals=0),
            p.for_field("energy", unit="joule"),
            p.for_field("hottest", unit="celsius", decimals=0),
            p.for_field("SM clock", unit=p.MHZ, decimals=0),
            p.for_field("memory", unit="bytes"),
            p.for_field("of", unit="bytes"),
            p.for_field("power capped", unit="percentunit", decimals=0),
        ],
    )


def _reasons() -> str:
    return ", ".join(f'max("{field}") AS "{name}"' for field, name, _ in REASONS)


def _clocks() -> Json:
    query = _samples(
        'mean("sm_clock_mhz") AS "SM", max("max_sm_clock_mhz") AS "SM at most", '
        'mean("memory_clock_mhz") AS "memory"'
    )
    held = over_time(_reasons(), "gpu", where=GPU)
    band: Json = {
        "unit": "bool",
        "min": 0,
        "max": 1,
        "custom__axisPlacement": "hidden",
        "custom__lineWidth": 0,
        "custom__lineInterpolation": "stepAfter",
        "custom__showPoints": "never",
        "custom__fillOpacity": 20,
    }
    colors = [
        p.for_field(f"held down: {name}", color={"mode": "fixed", "fixedColor": color}, **band)
        for _, name, color in REASONS
    ]
    return p.timeseries(
        "Clocks",
        [target(query, f"{NAME} $col"), target(held, "held down: $col")],
        "A band says that something held a clock down on one of the GPUs; below stands on which. An idle "
        "GPU lowers its clocks by itself, so a low clock alone means nothing.",
        unit=p.MHZ,
        w=24,
        h=9,
        **GAPS,
        empty=NO_GPU,
        overrides=[p.dashed("(memory|at most)$"), *colors],
    )


def _throttling() -> Json:
    # Without empty intervals: a state holds until the next sample.
    query = _samples(_reasons(), fill="none")
    colored = [
        p.for_fields(f"{re.escape(name)}$", mappings=[p.value_map([("0", "no", CLEAR), ("1", name, color)])])
        for _, name, color in REASONS
    ]
    return p.timeline(
        "Why clocks were held down",
        [target(query, f"{NAME} $col")],
        "Power cap: the card works at its power limit, which is usual under load and lowers both engines "
        "alike. Thermal, power brake and hardware slow-down are faults of the machine: a run with them in a "
        "measured turn is void.",
        mappings=[],
        h=8,
        empty=NO_GPU,
        overrides=colored,
    )


def _heat() -> list[Json]:
    return [
        _gpu(
            "Temperature",
            "temperature_c",
            "Both engines should find the card equally warm.",
            unit="celsius",
            low=None,
            w=8,
        ),
        p.timeseries(
            "Power",
            [target(_samples('mean("power_w") AS "drawn", max("power_limit_w") AS "limit"'), f"{NAME} $col")],
            "Where the card touches its limit it lowers its clocks.",
            unit="watt",
            w=8,
            empty=NO_GPU,
            overrides=[p.dashed("limit$")],
            **GAPS,
        ),
        _gpu(
            "GPU busy",
            "utilization_percent",
            "Share of time in which any kernel ran. 100 % does not say that it was used well.",
            unit="percent",
            high=100,
            w=8,
        ),
    ]


def _work() -> list[Json]:
    def share(title: str, field: str, about: str) -> Json:
        return _gpu(title, field, about, unit="percentunit", high=1, w=6, empty=NOT_GIVEN)

    return [
        _gpu(
            "Memory controller busy",
            "memory_busy_percent",
            "Share of time in which memory was read or written; not bandwidth.",
            unit="percent",
            high=100,
            w=6,
        ),
        share(
            "DRAM active",
            "dram_active",
            "Nearer to bandwidth: decoding should come close to the card's peak.",
        ),
        share("Tensor cores active", "tensor_active", "Prefill uses them, decoding hardly."),
        share("SMs active", "sm_active", "Share of multiprocessors with work."),
    ]


def _memory() -> list[Json]:
    card = _samples('max("memory_used_bytes") AS "used", last("memory_total_bytes") AS "total"')
    process = over_time('max("memory_bytes")', "gpu_process", "engine", "host", "gpu", where=GPU)
    kv = over_time('max("kv_used_share")', "engine", "engine")
    return [
        p.timeseries(
            "Memory of the cards",
            [target(card, f"{NAME} $col")],
            "What is used on each card, and what there is.",
            unit="bytes",
            **GAPS,
            empty=NO_GPU,
            overrides=[p.dashed("total$")],
        ),
        p.timeseries(
            "Memory that engines hold, and how much of their KV cache is used",
            [target(process, "$tag_engine on GPU $tag_gpu"), target(kv, "$tag_engine KV in use")],
            "An engine's processes hold weights, KV cache and buffers. vLLM takes its share of the card at "
            "once, used or not: how full the KV cache gets says what it would need.",
            unit="bytes",
            **GAPS,
            empty="No engine's process was found on a GPU (containers hide them: pid: host), and no KV gauge",
            overrides=[p.right_axis("KV in use$", "percentunit", min=0, max=1), p.dashed("KV in use$")],
        ),
    ]


def _parts() -> Json:
    query = table(f"""
        SELECT {", ".join(f'last("{field}") AS "{title}"' for field, title in PARTS.items())}
        FROM "engine_memory" WHERE {RUN} GROUP BY "engine"
    """)
    return p.bars(
        "What the memory is for",
        [query],
        "Of the whole run, once it is over; the time range must reach its start. Held: the most that the "
        "engine's processes held on GPUs. Weights, KV cache: as the engine or its log tells (`log` in the "
        "engine's settings). KV used: the most of it that the measured requests used. Needed: weights, KV "
        "used and working memory: enough for this load. A bar that is missing was not told.",
        unit="bytes",
        w=24,
        h=8,
        empty="Known once the run is over, where the engine or its log tells (docs/compare.md, Memory)",
    )


def _bus() -> list[list[Json]]:
    def small(title: str, field: str, about: str, unit: str = "short", aggregate: str = "max") -> Json:
        return _gpu(
            title, field, about, aggregate=aggregate, unit=unit, w=6, empty=NOT_GIVEN, spans_ms=120_000
        )

    def traffic(title: str, field: str, about: str) -> Json:
        return small(title, field, about, "Bps", "mean")

    pcie = "Sampled at a slower beat: asking takes the driver 20 ms."
    nvlink = "Two cards that share a model talk here."
    return [
        [
            traffic("PCIe to the card", "pcie_rx_bytes_per_s", pcie),
            traffic("PCIe from the card", "pcie_tx_bytes_per_s", pcie),
            traffic("NVLink in", "nvlink_rx_bytes_per_s", nvlink),
            traffic("NVLink out", "nvlink_tx_bytes_per_s", nvlink),
        ],
        [
            small(
                "PCIe generation", "pcie_generation", "An idle link slows down; loaded it should be the best."
            ),
            small("PCIe lanes", "pcie_width", "Fewer than 16 may be the slot."),
            small("Performance state", "pstate", "P0 is the fastest."),
            small("Fan", "fan_percent", "Cards made for servers have none.", "percent"),
        ],
        [
            small("ECC errors, corrected", "ecc_corrected", "A counter."),
            small("ECC errors, uncorrected", "ecc_uncorrected", "A counter. Any is a fault of the card."),
            small("Last Xid", "xid", "NVIDIA's number of the driver's last complaint."),
            small("What a sample took", "cost_ms", "Above a second the sampler can't hold its beat.", "ms"),
        ],
    ]
