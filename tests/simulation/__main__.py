"""Runs histories of simulated runs: python -m tests.simulation --seeds 1000; --seed N prints one, hosts as columns.

Exit code 1 if a promise is broken in any. A failure is made as short as it still fails, and printed as a test.
"""

import argparse
import os
import sys
from typing import List, Optional

from tests.simulation import lines, met, shorten
from tests.simulation.columns import columns
from tests.simulation.many import Sum, outcomes
from tests.simulation.verdict import HANG, failure, promise, verdict
from tests.simulation.world import World

__all__ = ["failure", "main"]


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 1 if a promise is broken."""
    options = _options(argv)
    if options.seed is not None:
        return _one(options)
    seeds, total = range(options.first, options.first + options.seeds), Sum()
    for outcome in outcomes(seeds, options.processes, options.coverage):
        total.add(outcome)
        if outcome.why is not None:
            print(f"seed {outcome.seed}: {outcome.why}", flush=True)
    first = {promise(each.why): each for each in reversed(total.broken)}  # one of a kind is made short
    for each in sorted(first.values()):
        _shorten(each.seed, each.why or "", options)
    print("\n".join(met.report(total.met)))
    if options.coverage:
        print("\n".join(["lines, branches", *lines.report(total.lines)]))
    print(total)
    return int(bool(total.broken))


def _options(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="how many histories (100)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first (0)")
    processors = len(os.sched_getaffinity(0))
    parser.add_argument("--processes", type=int, default=processors, help=f"how many at a time ({processors})")
    parser.add_argument("--seed", type=int, help="only this one, which is printed")
    parser.add_argument(
        "--tries", type=int, default=shorten.TRIES, help=f"histories to make a failure short ({shorten.TRIES}; 0: none)"
    )
    parser.add_argument("--write", action="store_true", help=f"append its test to {shorten.FOUND.name}")
    parser.add_argument("--coverage", action="store_true", help="list lines that no history has run")
    return parser.parse_args(argv)


def _one(options: argparse.Namespace) -> int:
    world = World(options.seed)
    why = verdict(world)
    print("\n".join(columns(world, why)))
    if why is not None:
        _shorten(options.seed, why, options)
    return int(why is not None)


def _shorten(seed: int, why: str, options: argparse.Namespace) -> None:
    """Print a failure as a test, and append it where that is asked for."""
    if not options.tries or promise(why) == HANG:  # each try would take as long
        return
    faults = shorten.shortest(seed, why, options.tries)
    test = shorten.as_test(seed, why, faults)
    print(f"\nseed {seed}, {len(faults)} of {len(World(seed).faults)} faults:\n\n{test}", flush=True)
    if options.write:
        added = shorten.write(test)
        print(f"{'appended to' if added else 'is already in'} {shorten.FOUND}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
