"""Requests of an engine with replicas: in turn, but a conversation stays where it began."""

from types import SimpleNamespace

from loadgen.users.clients import ReplicaClient, client_for
from tests.unit.users.fakes import lane


class Server:
    def __init__(self):
        self.got = []

    def send(self, path, body, *, keep_text=False, **more):
        self.got.append(body)
        return SimpleNamespace(replica=None, text="" if body == b"fails" else "answer", more=more)

    def cancelled_exchange(self):
        return SimpleNamespace(replica=None)

    def close(self):
        self.got = None


def test_all_users_of_an_engine_take_turns():
    servers, shared = [Server(), Server(), Server()], lane()
    users = [ReplicaClient(shared, servers) for _ in range(2)]
    used = [users[n % 2].send("/p", b"%d" % n, scheduled_mono_ns=n).replica for n in range(6)]
    assert used == [0, 1, 2, 0, 1, 2]
    assert [len(s.got) for s in servers] == [2, 2, 2]
    assert users[0].send("/p", b"", asked_output_tokens=5).more == {"asked_output_tokens": 5}


def test_a_conversation_stays_where_it_began():
    servers, shared = [Server(), Server()], lane()
    talk, other = (ReplicaClient(shared, servers) for _ in range(2))
    used = [talk.send("/p", b"q1", keep_text=True).replica]
    other.send("/p", b"x")
    used.append(talk.send("/p", b"q2", keep_text=True).replica)
    used.append(talk.send("/p", b"q3").replica)
    assert used == [0, 0, 0]
    assert other.send("/p", b"y").replica == 0
    assert talk.send("/p", b"next").replica == 1


def test_after_a_failure_the_next_conversation_has_its_turn():
    servers, shared = [Server(), Server()], lane()
    client = ReplicaClient(shared, servers)
    assert client.send("/p", b"fails", keep_text=True).replica == 0
    assert client.send("/p", b"next", keep_text=True).replica == 1


def test_what_was_cut_off_names_its_replica_and_all_are_closed():
    servers = [Server(), Server()]
    client = ReplicaClient(lane(), servers)
    client.send("/p", b"")
    client.send("/p", b"")
    assert client.cancelled_exchange().replica == 1
    client.close()
    assert [s.got for s in servers] == [None, None]


def test_one_address_needs_none_of_this(monkeypatch):
    monkeypatch.setattr("loadgen.users.clients.StreamClient", lambda engine, reader, timeouts: engine)
    one = lane()
    assert client_for(one, None, None) is one.engine
