"""The web page of a master with workers."""

from __future__ import annotations

import json
import signal
from collections import Counter

from tests.e2e.conftest import SHORT, engine_flags
from tests.e2e.test_locust_web import Web, finished
from tests.support.cluster import Cluster, alive, children, free_port


def test_start_stop_and_start_again(runs, sim):
    one = sim("vllm", speed=4)
    web = Web(runs, *engine_flags(a=one), *SHORT, "--processes", "2")
    workers = children(web.run)
    try:
        web.run.wait_for(lambda _: web.stats().get("workers") and len(web.stats()["workers"]) == 2)
        web.swarm(user_count=4)
        web.run.wait_for(finished(web, 1))
        web.shows({"a concurrency (simulated)": 8, "Aggregated": 8})
        # The master's live page has what all workers have seen.
        live = json.loads(web.get("/llm/data"))
        (row,) = live["rows"]
        assert (row["requests"], row["final"], live["run"]["state"]) == (8, True, "complete")
        (track,) = [t for t in live["tracks"] if t["kind"] == "engine"]
        completed = sum(filter(None, track["figures"]["completions"]))
        assert completed == len(web.run.records)

        web.swarm(user_count=4, turn_requests=400, output_tokens=32)
        web.run.wait_for(lambda r: len(web.runs()) == 2 and len(r.measured()) >= 8)
        web.get("/stop", {})
        web.run.wait_for(lambda r: r.manifest.get("state") == "interrupted" and web.state() == "stopped")
        assert web.run.count("outcome").keys() == {"ok"}
        assert not [n for n in web.run.manifest["notes"] if "worker" in n]
        assert web.run.turns() == [("a", False)]

        web.swarm(user_count=3, mix="nonsense=1")
        web.run.wait_for(lambda _: "nonsense" in str(json.loads(web.get("/llm/data"))["run"].get("problem")))
        web.swarm(user_count=3, turn_requests=6, mix="")
        web.run.wait_for(finished(web, 3))
        assert web.run.count("phase", "worker").keys() == {
            (phase, w) for phase in ("warmup", "measure") for w in ("w0", "w1")
        }
        assert len(web.run.measured()) == 6
        web.run.send(signal.SIGINT)
        web.run.wait()
        assert web.run.code == 0, web.run.err
        assert "Traceback" not in web.run.err
        assert not any(map(alive, workers))
        ids = Counter(r["response_id"] for r in web.run.records)
        logged = {row["id"] for row in one.log_records() if row["stream"]}
        assert set(ids) <= logged
    finally:
        web.run.stop()


def test_without_workers_nothing_starts_and_with_one_it_does(runs, sims):
    port = free_port()
    flags = (*engine_flags(a=sims[0]), *SHORT)
    with Cluster(runs, *flags, "--web-host", "127.0.0.1", "-P", str(port)) as cluster:
        web = Web.__new__(Web)
        web.port, web.run = port, cluster.master
        web.run.wait_for(lambda _: web.state())
        web.swarm(user_count=2)
        assert web.runs() == []
        cluster.worker()
        web.run.wait_for(lambda _: len(web.stats().get("workers", [])) == 1)
        web.swarm(user_count=2)
        web.run.wait_for(finished(web, 1))
        assert web.run.count("phase", "worker") == {("warmup", "w0"): 4, ("measure", "w0"): 8}
        web.run.send(signal.SIGINT)
        run = cluster.wait()
    assert run.code == 0, run.err
    assert "Traceback" not in run.err
