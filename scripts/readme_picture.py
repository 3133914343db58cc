"""Draws the README's picture from a run: the summary of one workload, as the terminal shows it.

    make demo
    python scripts/readme_picture.py [RUN]      a run or suite, as for `loadgen summary`; default: latest

docs/images/summary.svg is 80 columns wide. In summary-narrow.svg, 52 wide, the engines stand below each
other, for narrow screens. The background is part of the picture, so that it is legible on light and dark
pages, and no font is fetched: each line is stretched to its width, whichever monospaced font there is.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from loadgen.report import summarise
from loadgen.report.summary import RunSummary
from loadgen.report.terminal import print_summaries
from loadgen.store import StoreError, resolve

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTHS = {"summary.svg": 80, "summary-narrow.svg": 52}
SCENARIO = "concurrency"

THEME = TerminalTheme(
    background=(22, 27, 34),
    foreground=(230, 237, 243),
    normal=[
        (110, 118, 129),
        (255, 123, 114),
        (126, 231, 135),
        (240, 195, 80),
        (121, 192, 255),
        (210, 168, 255),
        (118, 227, 234),
        (230, 237, 243),
    ],
)

# rich's own format fetches a font from the net; {chrome} is the window with its background and title.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>loadgen summary</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-ligatures: none;
}}
.{unique_id}-title {{ font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(summary: RunSummary, width: int) -> str:
    """The SVG of a run's summary on a terminal of `width` columns."""
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    print_summaries([summary], console)
    title = f"loadgen summary{' · simulated engines' if summary.simulated else ''}"
    svg = console.export_svg(title=title, theme=THEME, code_format=FORMAT, unique_id="summary")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", metavar="RUN", nargs="?", default="latest")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    args = parser.parse_args()
    try:
        summaries = summarise(resolve(args.run, args.runs_dir))
    except StoreError as e:
        print(f"readme_picture: {e}", file=sys.stderr)
        return 1
    chosen = [s for s in summaries if s.scenario == SCENARIO] or summaries
    if not chosen:
        print(f"readme_picture: {args.run} holds no run yet", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, width in WIDTHS.items():
        (IMAGES / name).write_text(picture(chosen[0], width), encoding="utf-8")
        print(IMAGES / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
