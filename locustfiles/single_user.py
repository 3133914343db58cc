"""One user, short prompts: TTFT and decode speed.

    locust -f locustfiles/single_user.py --headless

All of Locust's own flags work, and `locust -f locustfiles/single_user.py --help` lists those of loadgen.
"""

from loadgen.users import SINGLE_USER, LlmUser


class SingleUser(LlmUser):
    scenario = SINGLE_USER
