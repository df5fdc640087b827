"""Measure what runs leave behind, or what grows while one lasts. Whatever grows is printed, and the exit code is 1.

--runs N     many short runs on this machine, one after the other
--minutes M  one run on fake hosts, as root, that meets a random fault every minute
"""

import argparse
import sys
from pathlib import Path
from typing import List, Optional

from tests.benchmarks.soak import many_runs
from tests.support.hosts import MissingError

FEWEST_MINUTES = 3  # a third of the samples is compared with another third


def main(argv: Optional[List[str]] = None) -> int:
    """Return 0 where nothing has grown, 3 where this machine cannot have such hosts."""
    parser = argparse.ArgumentParser(
        "python -m tests.benchmarks.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--runs", type=int, metavar="N")
    ways.add_argument("--minutes", type=int, metavar="M")
    parser.add_argument("--seed", type=int, default=1, help="of the faults of a long run (1)")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="write every sample of a long run as a JSON line")
    asked = parser.parse_args(argv)
    for name, fewest in (("runs", many_runs.FEWEST), ("minutes", FEWEST_MINUTES)):
        given = getattr(asked, name)
        if given is not None and given < fewest:
            parser.error(f"--{name}: expected at least {fewest}, found {given}")
    if asked.runs:
        return many_runs.measure(asked.runs)
    from tests.benchmarks.soak import long_run  # loads TensorFlow, which no launcher has in its memory

    try:
        return long_run.measure(asked.minutes, asked.seed, asked.samples)
    except MissingError as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
