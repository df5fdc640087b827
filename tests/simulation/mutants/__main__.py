"""Search for seeds that find mutants: python -m tests.simulation.mutants --reverts, --drawn 100, or with --launchers.

A mend with a known history is looked for by that alone. Exit code 1 if it is not found.
"""

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, Optional, Tuple

from tests.simulation.mutants import drawn
from tests.simulation.mutants.hunt import Found, Hunt, table
from tests.simulation.mutants.keepers import KEEPERS
from tests.simulation.mutants.launchers import LAUNCHERS
from tests.simulation.mutants.mutant import Edit, Mutant
from tests.simulation.mutants.reverts import REVERTS
from tests.simulation.mutants.stories import Story, stories
from tests.simulation.runs import FURTHER_FROM


def main(argv: Optional[List[str]] = None) -> int:
    """Return 1 if a known history finds nothing."""
    options = _options(argv)
    subprocess.run([sys.executable, "-c", ""], check=True)  # else every mutant would pass for found
    first = options.first_seed + (FURTHER_FROM if options.launchers else 0)
    seeds = range(first, first + options.seeds)
    told = [Story(seed, soon=True) for seed in seeds] if options.launchers else stories(seeds)
    began, hunt = time.monotonic(), Hunt(told, options.seconds, options.processes)
    mutants = _mutants(options)
    with ThreadPoolExecutor(options.processes) as pool:
        results = list(pool.map(lambda number: _search(hunt, number, mutants), range(len(mutants))))
    found = {mutant.name: each for mutant, each in results}
    print("\n".join(table(found)), f"in {time.monotonic() - began:.0f} s")
    return int(any(mutant.known is not None and each.kind is None for mutant, each in results))


def _options(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reverts", action="store_true", help="mends of the history, each taken out")
    parser.add_argument("--only", default="", help="of those, the names with this text")
    parser.add_argument("--drawn", type=int, default=0, help="how many mistakes to draw")
    parser.add_argument("--launchers", action="store_true", help="draw mistakes of launchers and keepers")
    parser.add_argument("--first", type=int, default=0, help="the number of the first drawn mistake (0)")
    parser.add_argument("--first-seed", type=int, default=0, help="the seed of the first history (0)")
    parser.add_argument("--seeds", type=int, default=2000, help="how many histories at most (2000)")
    parser.add_argument("--processes", type=int, default=2, help="mutants at once (2)")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of a processor's time, for one mutant at most (120)"
    )
    return parser.parse_args(argv)


def _mutants(options: argparse.Namespace) -> List[Mutant]:
    reverts = [each for each in REVERTS + KEEPERS + LAUNCHERS if options.reverts and options.only in each.name]
    different: Dict[Tuple[Edit, ...], Mutant] = {}
    of = drawn.LAUNCHERS if options.launchers else drawn.AGENTS
    for number in range(options.first, options.first + 2 * options.drawn):
        mutant = drawn.draw(number, of=of)
        different.setdefault(mutant.edits, mutant)
    return reverts + list(different.values())[: options.drawn]


def _search(hunt: Hunt, number: int, mutants: List[Mutant]) -> Tuple[Mutant, Found]:
    mutant, again = mutants[number], 0
    found = hunt.find(mutant)
    while mutant.name.startswith("drawn ") and (found.kind == "stillborn" or not found.run):
        again += 1
        _, drawn_as, of = mutant.name.split()
        mutant = drawn.draw(int(drawn_as), again, of)
        found = hunt.find(mutant)
    what = "not found" if found.kind is None else f"{found.kind} by {found.story}: {found.why[:110]}"
    numbers = f"{found.run} histories run, {found.differ} differ, {found.same} never reach it"
    print(f"{mutant.name}: {mutant.what}\n    {what}\n    {numbers}", flush=True)
    return mutant, found


if __name__ == "__main__":
    sys.exit(main())
