"""Who is answered: our own pages and programs, and nobody else's page."""

from __future__ import annotations

import pytest

from loadgen.webui.guard import Guard, Guarded, allowed_hosts, host_name

HERE = {"host": "127.0.0.1:8089"}
EVIL = "https://evil.example"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8089",
        "[::1]:8089",
        "[fe80::1%eth0]:8089",
        "localhost",
        "LOCALHOST:8089",
        "10.1.2.3",
        "locust:8089",  # a service of Docker or Kubernetes
        "gpu.local",
        "a.b.internal:80",
        "bench.example.com:8089",
        "bench.example.com.:8089",
        "",  # HTTP/1.0, which no browser speaks
    ],
)
def test_names_of_this_server(host: str) -> None:
    assert Guard(["Bench.example.com"]).refusal("GET", "/", {"host": host}) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "x.nip.io:8089", "[::1", "localhost@b.c", "a.b:x"]
)
def test_a_strangers_name_for_this_server(host: str) -> None:
    """DNS rebinding: the browser thinks that it talks to the stranger's own server."""
    assert "LOADGEN_WEB_HOSTS" in (Guard().refusal("GET", "/stats/requests", {"host": host}) or "")
    assert Guard(["*"]).refusal("GET", "/", {"host": host}) is None


@pytest.mark.parametrize("path", ["/swarm", "/stop", "/stats/reset", "/user", "/llm/login"])
@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ({}, True),  # curl, scripts
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8089"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "https://proxy.example"}, True),  # a proxy renamed us
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site", "origin": EVIL}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9000"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://127.0.0.1:8089"}, True),
        ({"origin": "http://127.0.0.1:9000"}, False),
        ({"origin": EVIL}, False),
        ({"origin": "null"}, False),
        ({"referer": "http://127.0.0.1:8089/"}, True),
        ({"referer": f"{EVIL}/page"}, False),
        ({"origin": "http://[broken"}, False),
    ],
)
def test_orders_come_from_here(path: str, headers: dict[str, str], answered: bool) -> None:
    assert (Guard().refusal("POST", path, {**HERE, **headers}) is None) == answered


def test_reading_is_for_all_but_what_acts() -> None:
    """Others may ask; their pages cannot read the answer (see below). Locust 2.46 stops a test by GET."""
    guard, other = Guard(base_path="/x"), {**HERE, "sec-fetch-site": "cross-site"}
    assert guard.refusal("GET", "/x/", other) is None
    assert guard.refusal("GET", "/x/llm", other) is None
    for path in ("/x/stop", "/x/stats/reset", "/x/stats/reset/", "/x/llm/report"):
        assert guard.refusal("GET", path, other) is not None
        assert guard.refusal("GET", path, {**HERE, "sec-fetch-site": "none"}) is None


def call(app: Guarded, **environ: str) -> tuple[str, dict[str, str], bytes]:
    said: list[object] = []
    body = app(
        {"REQUEST_METHOD": "GET", "PATH_INFO": "/", **environ},
        lambda status, headers, _=None: said.extend((status, headers)),
    )
    return str(said[0]), dict(said[1]), b"".join(body)  # type: ignore[call-overload]


def test_no_other_site_may_read() -> None:
    """Locust allows every origin to read everything."""

    def inner(environ, start):
        start("200 OK", [("Access-Control-Allow-Origin", "*"), ("Content-Type", "text/plain")])
        return [b"figures"]

    status, headers, body = call(Guarded(inner, Guard()), HTTP_HOST="localhost:1", HTTP_ORIGIN=EVIL)
    assert (status, body) == ("200 OK", b"figures")
    assert not [h for h in headers if h.lower().startswith("access-control")]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    status, headers, body = call(Guarded(inner, Guard()), HTTP_HOST="evil.example")
    assert status == "403 Forbidden"
    assert b"figures" not in body


def test_names_in_the_environment() -> None:
    assert allowed_hosts({"LOADGEN_WEB_HOSTS": "a.example, b.example,"}) == ["a.example", " b.example"]
    assert allowed_hosts({}) == []
    assert Guard([" b.example"]).refusal("GET", "/", {"host": "b.example"}) is None
    assert host_name("[::1") == ""
