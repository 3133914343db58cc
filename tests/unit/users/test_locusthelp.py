from pathlib import Path

import pytest

from loadgen.locusthelp import locustfile


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        ("locust -f a.py --help", None, "a.py"),
        ("locust --help --locustfile a.py", None, "a.py"),
        ("locust --locustfile=b/a.py -h", None, "b/a.py"),
        ("locust -fa.py -h", None, "a.py"),
        ("locust -h", "c.py", "c.py"),
        ("locust -h", None, None),
        ("locust -h -f a.py,b.py", None, None),
        ("locust -h -f folder", None, None),
        ("locust -f", None, None),
    ],
)
def test_locustfile(argv, env, expected):
    assert locustfile(argv.split(), env) == (Path(expected) if expected else None)
