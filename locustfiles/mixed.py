"""Interactive, long and batch requests at once, each class with its own figures.

    locust -f locustfiles/mixed.py --headless --mix interactive=70,long=20,batch=10

All of Locust's own flags work, and `locust -f locustfiles/mixed.py --help` lists those of loadgen.
"""

from loadgen.users import MIXED, LlmUser


class Mixed(LlmUser):
    scenario = MIXED
