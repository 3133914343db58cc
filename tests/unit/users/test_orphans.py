import pytest

from loadgen.users.worker import orphaned


@pytest.mark.parametrize(
    ("born", "own", "parent", "gone"),
    [(5, 5, 1, False), (5, 6, 5, False), (5, 6, 1, True), (5, 6, 2, True)],
)
def test_only_a_forked_worker_whose_master_has_gone_is_an_orphan(born, own, parent, gone):
    assert orphaned(born, own, parent) is gone
