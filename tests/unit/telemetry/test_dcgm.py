"""dcgm-exporter's text, in the form of its template: gpu, UUID, device, modelName, MIG labels, Hostname."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from loadgen.telemetry.dcgm import parse
from loadgen.telemetry.exporter import DcgmExporter
from loadgen.telemetry.polling import PollError
from loadgen.telemetry.rows import DCGM_FIELDS, SAMPLE_FIELDS
from tests.support.waiting import wait_for
from tests.unit.telemetry.serving import serve


def line(name: str, value: object, gpu: int = 0, host: str = "node-a", **more: str) -> str:
    labels = {
        "gpu": gpu,
        "UUID": f"GPU-{gpu}",
        "pci_bus_id": "00000000:31:00.0",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3",
        **more,
        "Hostname": host,
        "DCGM_FI_DRIVER_VERSION": "580.105.08",
    }
    written = ",".join(f'{k}="{v}"' for k, v in labels.items() if v != "")
    return f"# HELP {name} help\n# TYPE {name} gauge\n{name}{{{written}}} {value}\n"


def one(**values: object) -> dict[str, Any]:
    text = "".join(line(f"DCGM_FI_{name}", value) for name, value in values.items())
    _, (sample,) = parse(text, 5, "url-host")
    return sample


def test_names_and_units() -> None:
    sample = one(
        DEV_GPU_UTIL=97,
        DEV_MEM_COPY_UTIL=41,
        DEV_FB_USED=60000,
        DEV_FB_FREE=20000,
        DEV_FB_RESERVED=559,
        DEV_GPU_TEMP=61,
        DEV_SM_CLOCK=1455,
        DEV_MEM_CLOCK=2619,
        DEV_POWER_USAGE="689.365000",
        DEV_TOTAL_ENERGY_CONSUMPTION=4742776,
        DEV_CLOCKS_EVENT_REASONS=68,
        PROF_DRAM_ACTIVE="0.625000",
        PROF_PIPE_TENSOR_ACTIVE="0.250000",
        PROF_SM_ACTIVE="0.900000",
        PROF_NVLINK_TX_BYTES=1000000,
        PROF_NVLINK_RX_BYTES=2000000,
        PROF_PCIE_TX_BYTES=112603,
        PROF_PCIE_RX_BYTES=17544,
        DEV_XID_ERRORS=79,
        DEV_VGPU_LICENSE_STATUS=0,
    )
    assert sample == {
        "kind": "sample",
        "t_ns": 5,
        "host": "node-a",
        "gpu": 0,
        "source": "dcgm",
        "utilization_percent": 97.0,
        "memory_busy_percent": 41.0,
        "memory_used_bytes": 62914560000,  # 60,000 MiB
        "memory_total_bytes": 84472233984,  # 80,559 MiB
        "temperature_c": 61.0,
        "sm_clock_mhz": 1455.0,
        "memory_clock_mhz": 2619.0,
        "power_w": 689.365,
        "energy_j": 4742.776,
        "throttle_mask": 68,
        "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
        "dram_active": 0.625,
        "tensor_active": 0.25,
        "sm_active": 0.9,
        "nvlink_tx_bytes_per_s": 1e6,
        "nvlink_rx_bytes_per_s": 2e6,
        "pcie_tx_bytes_per_s": 112603.0,
        "pcie_rx_bytes_per_s": 17544.0,
        "xid": 79,
    }


@pytest.mark.parametrize(
    "value",
    [
        "9223372036854775792",
        "9223372036854775794",
        "140737488355328.000000",
        "140737488355330",
        "NaN",
        "+Inf",
    ],
)
def test_dcgms_blank_values_are_no_values(value: str) -> None:
    assert "power_w" not in one(DEV_POWER_USAGE=value, DEV_GPU_TEMP=30)


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e30", "18446744073709551615", "NaN", "+Inf"])
def test_figures_that_no_gpu_has_cost_no_other(value: str) -> None:
    names = (
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "DCGM_FI_DEV_PSTATE",
    )
    text = "".join(line(name, value) for name in names) + line("DCGM_FI_DEV_GPU_TEMP", 40)
    facts, (row,) = parse(text, 5, "h")
    assert row["temperature_c"] == 40
    assert not {"memory_used_bytes", "memory_total_bytes", "throttle_mask", "pstate"} & row.keys()
    assert orjson.dumps([facts, row])


def test_the_older_name_of_the_clock_reasons() -> None:
    assert one(DEV_CLOCK_THROTTLE_REASONS=1)["throttle_reasons"] == ["gpu_idle"]


def test_facts_say_what_the_exporter_lacks() -> None:
    text = line("DCGM_FI_DEV_POWER_USAGE", 16.4) + line("DCGM_FI_DEV_FB_USED", 5)
    (facts,), _ = parse(text, 5, "x")
    assert (facts["uuid"], facts["name"]) == ("GPU-0", "NVIDIA H100 80GB HBM3")
    assert facts["driver"] == "580.105.08"
    assert set(facts["unsupported"]) == {*SAMPLE_FIELDS, *DCGM_FIELDS} - {"power_w", "memory_used_bytes"}


def test_mig_instances_are_rows_of_their_own() -> None:
    mig = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7"}
    text = (
        line("DCGM_FI_DEV_FB_USED", 1, **mig)
        + line("DCGM_FI_DEV_FB_USED", 2, GPU_I_PROFILE="3g.40gb", GPU_I_ID="1")
        + line("DCGM_FI_DEV_FB_USED", 3, gpu=1)
        + line("DCGM_FI_PROF_DRAM_ACTIVE", 0.5, **mig)
    )
    facts, found = parse(text, 5, "x")
    rows = [(r["gpu"], r.get("mig_instance"), r["memory_used_bytes"], r.get("dram_active")) for r in found]
    assert rows == [
        (0, "1g.10gb/7", 2**20, 0.5),
        (0, "3g.40gb/1", 2 * 2**20, None),
        (1, None, 3 * 2**20, None),
    ]
    assert [f.get("mig_enabled") for f in facts] == [True, True, None]


def test_several_hosts_pods_and_strangers() -> None:
    text = (
        line("DCGM_FI_DEV_GPU_UTIL", 50, container="a", pod="one")
        + line("DCGM_FI_DEV_GPU_UTIL", 50, container="b", pod="two")  # a GPU that two pods share
        + line("DCGM_FI_DEV_GPU_UTIL", 60, host="node-b")
        + line("DCGM_FI_DEV_GPU_UTIL", 70, gpu=3, host="")
        + 'DCGM_FI_DEV_NVSWITCH_TEMPERATURE{nvswitch="nvswitch0"} 40\n'
        + 'DCGM_EXP_XID_ERRORS_COUNT{gpu="0",window_size_in_ms="300000"} 0\n'
        + "go_goroutines 12\nDCGM_FI_DEV_GPU_UTIL{gpu=torn"
    )
    _, found = parse(text, 5, "url-host")
    rows = [(r["host"], r["gpu"], r["utilization_percent"]) for r in found]
    assert rows == [("node-a", 0, 50.0), ("node-b", 0, 60.0), ("url-host", 3, 70.0)]


def test_an_exporter_that_repeats_itself_gives_no_new_samples() -> None:
    """By default it renews its figures every 30 s, however often it is asked."""
    rows: list[Any] = []
    exporter = DcgmExporter("http://h:9400", "here", 1.0, rows.append)
    for second in range(91):
        text = line("DCGM_FI_DEV_POWER_USAGE", 100 + second // 30)
        exporter.take(*parse(text, second, "h"), float(second))
    times = [r["t_ns"] for r in rows if r["kind"] == "sample"]
    assert times == list(range(0, 91, 10))
    assert [r["t_ns"] for r in rows if r["kind"] == "facts"] == [0]
    (note,) = [r["text"] for r in rows if r["kind"] == "note"]
    assert "only every 30 s or so" in note


def test_polling() -> None:
    rows: list[Any] = []
    answers = [
        (200, line("DCGM_FI_DEV_POWER_USAGE", 1.0)),
        (500, "no"),
        (500, "no"),
        (200, line("DCGM_FI_DEV_POWER_USAGE", 2.0)),
    ]
    with serve(lambda path, headers: answers[0] if len(answers) == 1 else answers.pop(0)) as server:
        exporter = DcgmExporter(server.url, "here", 0.01, rows.append)
        facts, notes = exporter.open()
        assert (len(facts), notes) == (1, [])
        exporter.start()
        wait_for(lambda: len([r for r in rows if r["kind"] == "sample"]) >= 2)
        exporter.stop()
    assert server.paths[0] == "/metrics"
    assert exporter.latest()[0]["power_w"] == 2.0
    url = f"{server.url}/metrics"
    assert [r["text"] for r in rows if r["kind"] == "note"] == [
        f"{url} answers HTTP 500",
        f"{url} answers again",
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, "up 1\n"), "no DCGM_FI_ figures"),
        ((302, ""), "HTTP 302"),
        ((404, ""), "HTTP 404"),
        ((200, "x" * 3000), "more than"),
    ],
)
def test_answers_that_are_none(answer: tuple[int, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.telemetry.polling.LARGEST", 2000)
    with (
        serve(lambda path, headers: answer) as server,
        pytest.raises(PollError, match=said),
    ):
        DcgmExporter(server.url, "here", 1.0, lambda row: None).poll()


def test_nobody_there() -> None:
    with serve(lambda path, headers: (200, "")) as server:
        url = server.url
    facts, notes = DcgmExporter(url, "here", 1.0, lambda row: None).open()
    assert facts == []
    assert notes == [f"{url}/metrics does not answer (connection refused)"]
