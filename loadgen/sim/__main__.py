"""`python -m loadgen.sim FLAGS`: like `loadgen sim`, but says one line of JSON when it is ready."""

from __future__ import annotations

import argparse
import sys

from loadgen.sim.main import print_ready, run
from loadgen.sim.options import add_options, to_options

parser = argparse.ArgumentParser(prog="python -m loadgen.sim", description=__doc__)
add_options(parser)
args = parser.parse_args()
try:
    options = to_options(args)
except ValueError as e:
    sys.exit(f"loadgen sim: {e}")
sys.exit(run(options, print_ready))
