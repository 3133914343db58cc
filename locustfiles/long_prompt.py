"""One user, prompts of 2,000 tokens: what prefill costs.

    locust -f locustfiles/long_prompt.py --headless

All of Locust's own flags work, and `locust -f locustfiles/long_prompt.py --help` lists those of loadgen.
"""

from loadgen.users import LONG_PROMPT, LlmUser


class LongPrompt(LlmUser):
    scenario = LONG_PROMPT
