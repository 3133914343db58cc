"""Requests that come at a rate, whatever the server does: an open loop.

    locust -f locustfiles/open_loop.py --headless --rate 8
    locust -f locustfiles/open_loop.py --headless --trace conversations.jsonl --turn-requests 500

-u is not used: a dispatcher sends each request when the schedule says so. docs/open-loop.md tells when to
take this, and when users who wait for their answers.
"""

from loadgen.users import OPEN_LOOP, LlmUser


class OpenLoop(LlmUser):
    scenario = OPEN_LOOP
