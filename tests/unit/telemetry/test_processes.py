"""Who owns a process on a GPU, from a /proc made by hand, and from the real one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.telemetry.processes import NOT_OURS, Owners, engine_endpoints, name_by_port
from loadgen.telemetry.procfs import HOST_PID_NAMESPACE, Process, ProcFs

HOST_NET = "net:[1]"
VLLM, LLAMACPP = ("vllm", "http://127.0.0.1:8000"), ("llamacpp", "http://127.0.0.1:8001")
LOOPBACK = ["127.0.0.1"]


class Proc:
    """A folder like /proc."""

    def __init__(self, path: Path, pid_namespace: str = HOST_PID_NAMESPACE) -> None:
        self.path = path
        self.add("self", "generator", net=HOST_NET, addresses=[*LOOPBACK, "192.0.2.7"])
        (path / "self/ns/pid").symlink_to(pid_namespace)

    def add(
        self,
        pid: int | str,
        name: str,
        *,
        parent: int = 1,
        ports: dict[int, int] | None = None,
        opens: tuple[str, ...] = (),
        net: str = HOST_NET,
        addresses: list[str] | None = None,
        others: tuple[tuple[int, int], ...] = (),
        cmdline: str = "",
    ) -> None:
        """`ports`: port to inode of sockets that it listens on; `others`: of somebody else in its network."""
        here = self.path / str(pid)
        for folder in ("fd", "net", "ns"):
            (here / folder).mkdir(parents=True)
        (here / "comm").write_text(name + "\n")
        (here / "cmdline").write_bytes(cmdline.replace(" ", "\0").encode())
        (here / "stat").write_text(f"{pid} ({name} :) x) S {parent} 1 1 0 -1 4194560\n")
        (here / "ns/net").symlink_to(net)
        sockets = [*(ports or {}).items(), *others]
        lines = [f"   0: 00000000:{port:04X} 00000000:0000 0A 0 0 0 0 0 {inode} 1" for port, inode in sockets]
        lines.append("   9: 0100007F:1F40 0100007F:D431 01 0 0 0 0 0 4711 1")  # a connection, no listener
        (here / "net/tcp").write_text("\n".join(["  sl  local_address ...", *lines]) + "\n")
        trie = "".join(f"     |-- {a}\n        /32 host LOCAL\n" for a in addresses or LOOPBACK)
        (here / "net/fib_trie").write_text(f"Main:\n  +-- 0.0.0.0/0 3 0 5\n{trie}")
        targets = [f"socket:[{inode}]" for inode in (ports or {}).values()]
        for n, target in enumerate([*targets, *opens]):
            (here / "fd" / str(n)).symlink_to(target)


def owned(proc: Proc, pid: int, *engines: tuple[str, str]) -> dict[str, object]:
    owners = Owners(engines, ProcFs(proc.path))
    return owners([{"pid": pid, "memory_bytes": 5}])[0]


def test_the_listener_and_its_descendants(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.add(10, "vllm", ports={8000: 77}, cmdline="/opt/bin/vllm serve")
    proc.add(11, "python3", parent=10)
    proc.add(12, "VLLM::EngineCor", parent=11, cmdline="VLLM::EngineCore")
    proc.add(20, "llama-server", ports={8001: 78}, cmdline="/opt/llama-server -m x.gguf")
    proc.add(30, "python3", others=((8000, 77),), cmdline="python3 train.py")
    core = {"pid": 12, "memory_bytes": 5, "name": "VLLM::EngineCore", "port": 8000, "engine": "vllm"}
    assert owned(proc, 12, VLLM, LLAMACPP) == core
    assert owned(proc, 20, VLLM, LLAMACPP)["engine"] == "llamacpp"
    assert owned(proc, 30, VLLM, LLAMACPP) == {"pid": 30, "memory_bytes": 5, "name": "python3"}
    assert owned(proc, 20, VLLM) == {"pid": 20, "memory_bytes": 5, "name": "llama-server", "port": 8001}


def test_one_process_that_serves_two_engines_is_nobodys(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.add(10, "router", ports={8000: 77, 8001: 78})
    assert "engine" not in owned(proc, 10, VLLM, LLAMACPP)


def test_containers_on_one_host(tmp_path: Path) -> None:
    """Both servers listen on 8000, each in its own container; Docker passes 8000 and 8001 on."""
    proc = Proc(tmp_path)
    for pid, net, ip in ((10, "net:[2]", "172.17.0.2"), (20, "net:[3]", "172.17.0.3")):
        proc.add(pid, "server", ports={8000: pid}, net=net, addresses=[*LOOPBACK, ip])
    for pid, port, ip in ((40, 8000, "172.17.0.2"), (41, 8001, "172.17.0.3")):
        line = f"/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port {port} -container-ip {ip}"
        proc.add(pid, "docker-proxy", ports={port: pid}, cmdline=f"{line} -container-port 8000")
    assert owned(proc, 10, VLLM, LLAMACPP)["engine"] == "vllm"
    assert owned(proc, 20, VLLM, LLAMACPP)["engine"] == "llamacpp"
    by_address = ("a", "http://172.17.0.2:8000"), ("b", "http://172.17.0.3:8000")
    assert owned(proc, 20, *by_address)["engine"] == "b"


def test_numbers_that_mean_nothing_here(tmp_path: Path) -> None:
    """A container with process numbers of its own: a number counts if its process has the GPU open."""
    proc = Proc(tmp_path, pid_namespace="pid:[4026532001]")
    proc.add(10, "bash", ports={8000: 77})
    proc.add(20, "llama-server", ports={8001: 78}, opens=("/dev/nvidiactl", "/dev/nvidia0"))
    owners = Owners([VLLM, LLAMACPP], ProcFs(proc.path))
    assert owners([{"pid": 10}, {"pid": 4596}]) == [{"pid": 10}, {"pid": 4596}]
    assert owners.take_notes() == [NOT_OURS]
    assert owners([{"pid": 10}]) == [{"pid": 10}]
    assert owners.take_notes() == []
    assert owned(proc, 20, VLLM, LLAMACPP)["engine"] == "llamacpp"


def test_a_number_is_looked_up_again() -> None:
    class Changing(ProcFs):
        found = Process("old")

        def process(self, pid: int) -> Process | None:
            return self.found

        def published(self) -> dict[int, tuple[str, int]]:
            return {}

    procfs, now = Changing(), [0.0]
    owners = Owners([], procfs, clock=lambda: now[0])
    names = []
    for now[0], procfs.found in ((0.0, Process("old")), (4.0, Process("new")), (6.0, Process("new"))):
        names.append(owners([{"pid": 1}])[0]["name"])
    assert names == ["old", "old", "new"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", {("127.0.0.1", 8000), ("192.0.2.7", 8000), ("172.17.0.2", 80)}),
        ("http://gpuhost:9000", {("198.51.100.1", 9000)}),
        ("https://gpuhost", {("198.51.100.1", 443)}),
        ("http://nowhere:8000", set()),
    ],
)
def test_where_an_engine_listens(url: str, expected: set[tuple[str, int]]) -> None:
    addresses = {"127.0.0.1": {"127.0.0.1"}, "gpuhost": {"198.51.100.1"}}
    found = engine_endpoints(
        [("e", url)],
        {"127.0.0.1", "192.0.2.7"},
        {8000: ("172.17.0.2", 80)},
        lambda host: addresses.get(host, set()),
    )
    assert found == dict.fromkeys(expected, "e")


def test_an_address_of_two_engines_says_nothing() -> None:
    def same(_: str) -> set[str]:
        return {"127.0.0.1"}

    assert engine_endpoints([("a", "http://x:1"), ("b", "http://y:1")], set(), {}, same) == {}


def test_another_machines_processes_are_named_by_port() -> None:
    rows = [{"pid": 1, "port": 8000}, {"pid": 2, "port": 9}, {"pid": 3}]
    assert name_by_port(rows, {8000: "vllm"}) == [{**rows[0], "engine": "vllm"}, *rows[1:]]


@pytest.mark.skipif(not Path("/proc/self/net/fib_trie").exists(), reason="no such /proc here")
def test_a_real_listener_and_its_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcFs, "_host_numbers", lambda self: True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            owners = Owners([("e", f"http://localhost:{port}")])
            rows = owners([{"pid": child.pid}, {"pid": os.getpid()}, {"pid": 2**22 + 1}])
        finally:
            child.communicate(b"\n")
    assert [row.get("engine") for row in rows] == ["e", "e", None]
    assert owners.take_notes() == []
