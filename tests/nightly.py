"""Run everything that takes too long for ``make test``: python -m tests.nightly, make nightly

The parts run one after the other, and a part that fails ends no other part. The exit code is 1 if one has failed. As
root, for the parts on fake hosts.
"""

import argparse
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence

PARTS = {
    "constructions": "tests.differential.constructions --seeds 1000 --first {first}",
    "without mends": "tests.differential.constructions --seeds 1000 --without all",
    "histories": "tests.simulation --seeds 20000 --first {first}",
    "mutants": "tests.simulation.mutants --reverts",
    "strict steps": "tests.cluster.steps.exhaustive 3 2 3 1 0",
    "strict steps, with a ps that dies": "tests.cluster.steps.exhaustive 3 2 3 0 1",
    "strict steps, with both": "tests.cluster.steps.exhaustive 2 2 1 1 1",
    "overlapped steps": "tests.cluster.steps.exhaustive 2 2 1 1 0 1",
    "many values": "pytest --nightly -n 2 --dist loadfile -q tests",
    "chaos": "tests.chaos -n 60 --seed {first}",
    "attack": "tests.attack",
    "many runs": "tests.benchmarks.soak --runs 100",
    "one long run": "tests.benchmarks.soak --minutes 30 --seed {first}",
}


def main(argv: Optional[List[str]] = None, run: Callable[[Sequence[str]], int] = subprocess.call) -> int:
    """Return 1 if a part has failed.

    Args:
      run: runs a command, and returns its exit code.
    """
    options = _options(argv)
    codes: Dict[str, int] = {}
    for part in options.parts or PARTS:
        words = PARTS[part].format(first=options.first).split()
        print(f"== {part}: python -m {' '.join(words)}", flush=True)
        began = time.monotonic()
        codes[part] = run([sys.executable, "-m", *words])
        print(f"== {part}: exit code {codes[part]} after {(time.monotonic() - began) / 60:.1f} min", flush=True)
    failed = [part for part, code in codes.items() if code != 0]
    print(f"== {len(codes) - len(failed)} of {len(codes)} parts are right" + "".join(f"; {part}" for part in failed))
    return int(bool(failed))


def _options(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.nightly", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(map(repr, PARTS))}")
    parser.add_argument("--first", type=int, default=0, help="the first seed, constructions and trials included (0)")
    options = parser.parse_args(argv)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"expected some of {', '.join(PARTS)}, found {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
