"""gpu and gpu_process: what NVML or a dcgm-exporter says of a card."""

from __future__ import annotations

from loadgen.sinks.schema.model import ENGINE, GPU_HOST, RUN, Field, Measurement, Tag, text

THROTTLE_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
)
INDEX = Tag("gpu", "the card's NVML index on its host, as text")

GPU = Measurement(
    name="gpu",
    meaning="One sample of one GPU. What the card or its driver does not support is absent, never 0.",
    source="gpu.jsonl",
    time="when it was sampled",
    tags=(
        RUN,
        GPU_HOST,
        INDEX,
        Tag("gpu_name", "the card's name"),
        Tag("source", "`nvml` or `dcgm`"),
        Tag("mig_instance", "MIG instance, where the card is divided"),
    ),
    fields=(
        Field("utilization_percent", "share of time in which a kernel ran", "%"),
        Field("memory_busy_percent", "share of time in which memory was read or written: not bandwidth", "%"),
        Field("memory_used_bytes", "memory in use by all processes", "bytes"),
        Field("memory_total_bytes", "memory there is", "bytes"),
        Field("temperature_c", "temperature of the chip", "°C"),
        Field("sm_clock_mhz", "clock of the multiprocessors", "MHz"),
        Field("memory_clock_mhz", "clock of the memory", "MHz"),
        Field("max_sm_clock_mhz", "highest clock of the multiprocessors; the card's constant", "MHz"),
        Field("power_w", "power drawn", "W"),
        Field("power_limit_w", "power limit in force when sampling began", "W"),
        Field("energy_j", "energy drawn since the driver was loaded: a counter", "J"),
        Field("throttle_mask", "why the clock is not higher, as NVML's bits"),
        text("throttle_reasons", "the same by name, joined by commas; empty for none"),
        *(
            Field(f"throttle_{name}", f"1 while `{name}` holds the clock down, else 0")
            for name in THROTTLE_REASONS
        ),
        Field("ecc_corrected", "memory errors corrected: a counter"),
        Field("ecc_uncorrected", "memory errors not corrected: a counter"),
        Field("pcie_generation", "PCIe generation in use"),
        Field("pcie_width", "PCIe lanes in use"),
        Field("pcie_tx_bytes_per_s", "sent over PCIe", "bytes/s"),
        Field("pcie_rx_bytes_per_s", "received over PCIe", "bytes/s"),
        Field("pstate", "performance state: 0 is the fastest"),
        Field("fan_percent", "fan speed", "%"),
        Field("dram_active", "share of cycles in which memory was active (dcgm), 0 to 1"),
        Field("tensor_active", "share of cycles in which tensor cores were active (dcgm), 0 to 1"),
        Field("sm_active", "share of time with a warp on a multiprocessor (dcgm), 0 to 1"),
        Field("nvlink_rx_bytes_per_s", "received over NVLink (dcgm)", "bytes/s"),
        Field("nvlink_tx_bytes_per_s", "sent over NVLink (dcgm)", "bytes/s"),
        Field("xid", "number of the last XID error (dcgm)"),
        Field("cost_ms", "what taking this sample took", "ms"),
    ),
)

GPU_PROCESS = Measurement(
    name="gpu_process",
    meaning="Memory that one engine's processes hold on one GPU.",
    source="gpu.jsonl",
    time="when it was sampled",
    tags=(RUN, GPU_HOST, INDEX, ENGINE),
    fields=(Field("memory_bytes", "sum over the engine's processes on that GPU", "bytes"),),
)
