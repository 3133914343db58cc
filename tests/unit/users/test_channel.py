import pytest

from loadgen.users.channel import own_channel


@pytest.mark.parametrize("argv", [["--processes", "2"], ["--processes=-1", "--headless"]])
def test_processes_have_a_free_port_of_their_own(argv):
    one, other = own_channel(argv, {}), own_channel(argv, {})
    assert one["master_port"] == one["master_bind_port"] != other["master_port"]
    assert one["master_bind_host"] == one["master_host"] == "127.0.0.1"
    assert own_channel(["--headless"], {"LOCUST_PROCESSES": "4"})["master_port"] > 0


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        (["--headless"], {}),
        (["--master"], {}),
        (["--processes", "2", "--worker"], {}),
        (["--processes", "2", "--master-bind-port=5557"], {}),
        (["--processes", "2"], {"LOCUST_MASTER_BIND_PORT": "6000"}),
        (["--processes", "2"], {"LOCUST_MODE_WORKER": "1"}),
    ],
)
def test_who_says_where_the_master_is_gets_that(argv, env):
    assert own_channel(argv, env) == {}
