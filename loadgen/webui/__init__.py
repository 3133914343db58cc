"""What loadgen adds to Locust's web page: the tab LLM, the live page under /llm, a guard and a login.

live = install(environment, options)    at Locust's init event; None without a web page
"""

from loadgen.webui.install import install
from loadgen.webui.live import Live

__all__ = ["Live", "install"]
