"""Conversations that grow turn by turn with the model's own answers: TTFT with a warm prefix cache.

    locust -f locustfiles/chat.py --headless --exchanges 4 --think-time 2

All of Locust's own flags work, and `locust -f locustfiles/chat.py --help` lists those of loadgen.
"""

from loadgen.users import CHAT, LlmUser


class Chat(LlmUser):
    scenario = CHAT
