"""Users that come and go: by hand in the web page, or by a shape, which runs whole on each engine.

    locust -f locustfiles/ramp.py --engine vllm=vllm:http://localhost:8000
    locust -f locustfiles/ramp.py --class-picker
    locust -f locustfiles/ramp.py --headless --shape steps:1,2,4,8,16@30s

All of Locust's own flags work, and `locust -f locustfiles/ramp.py --help` lists those of loadgen.
"""

from loadgen.users import RAMP, LlmUser
from loadgen.users.shapes import FindKnee, Ramp, Spike, Steps

__all__ = ["FindKnee", "Load", "Ramp", "Spike", "Steps"]  # the shapes are for the class picker


class Load(LlmUser):
    scenario = RAMP
