"""A server of which nothing is known but that it speaks OpenAI's protocol."""

from __future__ import annotations

from tests.e2e.conftest import SHORT
from tests.support.locust_run import run_locust


def test_no_tokenizer_makes_prompts_of_about_the_length_and_says_so(runs, sims):
    run = run_locust(runs, "--engine", f"x=openai:{sims[1].url}", *SHORT, "-u", "3", "--prompt-tokens", "300")
    assert run.code == 0, run.err
    assert run.manifest["prompts"]["exact"] is False
    assert all(200 < r["prompt_tokens"] < 400 for r in run.measured())
    assert len({r["user"] for r in run.measured()}) == 3
    assert any("prompts are only about 300 tokens long" in note for note in run.manifest["notes"])
