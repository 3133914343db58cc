"""docs/validity.md names every check, and each limit as it is in the code."""

import re
import sys
from pathlib import Path

import pytest

from loadgen.compare.ratios import MARGIN, MIN_BLOCKS
from loadgen.metrics.send_lag import LATE_MS
from loadgen.validity import (
    CHECKS,
    coalesced,
    comparable,
    cut_turns,
    failures,
    generator,
    gpu_clocks,
    gpu_rows,
    gpu_throttling,
    littles,
    open_loop,
    samples,
    send_lag,
    short_answers,
    steady_state,
)

PAGE = (Path(__file__).parents[3] / "docs" / "validity.md").read_text(encoding="utf-8")
ROWS = {m[1]: m[0] for m in re.finditer(r"^\| `(\w+)` \|.*$", PAGE, re.MULTILINE)}


def test_every_check_is_on_the_page_by_the_name_it_has_itself() -> None:
    names = [(sys.modules[check.__module__].__doc__ or "").partition(":")[0] for check in CHECKS]
    assert list(ROWS) == names


@pytest.mark.parametrize(
    ("check", "text"),
    [
        ("failures", f"| {failures.SUSPECT_SHARE:.0%} | {failures.VOID_SHARE:.0%} |"),
        (
            "open_loop",
            f"over {open_loop.SUSPECT_LATE:.0%} of requests sent more than {LATE_MS:g} ms late | over "
            f"{open_loop.VOID_LATE:.0%}",
        ),
        ("cut_turns", f"{cut_turns.LONGER} times as long"),
        ("gpu_throttling", f"the same in {gpu_throttling.VOID_SHARE:.0%} of them"),
        ("generator", f"{generator.SUSPECT_CPU_PERCENT:.0f}% of a core"),
        ("generator", f"{generator.VOID_CPU_PERCENT:.0f}% of a core"),
        ("generator", f"timers {generator.SUSPECT_LAG_MS:.0f} ms late"),
        ("generator", f"waited {generator.SUSPECT_READ_MS:.0f} ms"),
        ("littles_law", f"above {littles.SUSPECT_RESIDUAL:.1%} | above {littles.VOID_RESIDUAL:.0%}"),
        ("short_answers", f"| {short_answers.SUSPECT_SHARE:.0%} |"),
        ("coalesced", f"{coalesced.TTFT_SHARE:.0%} of TTFTs; {coalesced.EVENT_SHARE:.0%} of events"),
        ("send_lag", f"{send_lag.SUSPECT_MS:.0f} ms or more"),
        ("blocks", f"fewer than {MIN_BLOCKS}:"),
        ("gpu_clocks", f"below {gpu_clocks.SLOW:.0%} of the highest"),
        ("gpu_clocks", f"in {gpu_clocks.SUSPECT_SHARE:.0%} of the busy samples"),
        ("gpu_clocks", f"in {gpu_clocks.VOID_SHARE:.0%} of the busy samples or more"),
        ("steady_state", f"a mean by {steady_state.EFFECT:.0%}"),
        ("steady_state", f"a trend of {steady_state.TREND:.0%} or more"),
        ("steady_state", f"chance below {steady_state.CHANCE:.0%}"),
        ("steady_state", f"by more than {steady_state.WITHIN:.0%} inside turns"),
        ("comparable", f"{comparable.SHARE:.0%} and {comparable.TOKENS} tokens"),
        ("samples", f"fewer than {samples.LEAST} successful requests"),
    ],
)
def test_the_limits_are_those_of_the_code(check: str, text: str) -> None:
    assert text in ROWS[check].replace(" %", "%")


def test_the_limits_in_the_text() -> None:
    page = " ".join(PAGE.split()).replace(" %", "%")
    assert f"a utilisation of {gpu_rows.BUSY_PERCENT:.0f}% or more" in page
    assert f"busy, with a utilisation of {gpu_rows.CLOCKED_PERCENT:.0f}% or more" in page
    assert f"beyond the margin ({MARGIN - 1:.0%})" in page
    assert f"Fewer than {MIN_BLOCKS} complete blocks" in page
