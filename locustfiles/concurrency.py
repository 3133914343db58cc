"""16 users at once: total throughput, and what each of them gets.

    locust -f locustfiles/concurrency.py --headless

All of Locust's own flags work, and `locust -f locustfiles/concurrency.py --help` lists those of loadgen.
"""

from loadgen.users import CONCURRENCY, LlmUser


class Concurrency(LlmUser):
    scenario = CONCURRENCY
