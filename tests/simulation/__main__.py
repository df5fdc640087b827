"""Runs histories of simulated runs: python -m tests.simulation --seeds 1000; --seed N prints one, hosts as columns.

Exit code 1 if a promise is broken in any. A failure is made as short as it still fails.
"""

import argparse
import sys
import time
from typing import List, Optional, Sequence

from tests.simulation.faults import Fault
from tests.simulation.promises import Broken
from tests.simulation.world import World

_WIDTH = 34


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="how many histories (100)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first (0)")
    parser.add_argument("--seed", type=int, help="only this one, which is printed")
    options = parser.parse_args(argv)
    if options.seed is not None:
        return _one(options.seed)
    began, broken, simulated_s = time.monotonic(), 0, 0.0
    for seed in range(options.first, options.first + options.seeds):
        world = World(seed)
        why = failure(world)
        simulated_s += world.agenda.now * len(world.machines)
        if why is not None:
            broken += 1
            short = shortest(seed, why)
            print(f"seed {seed}: {why}; with {len(short)} of {len(world.faults)} faults:", flush=True)
            print("\n".join(f"    {each}" for each in short), flush=True)
    took_s = time.monotonic() - began
    print(f"{options.seeds} histories, {simulated_s / 3600:.1f} host-hours in {took_s:.0f} s: {broken} broken promises")
    return int(broken > 0)


def failure(world: World) -> Optional[str]:
    """Lets a history happen; which promise it breaks."""
    try:
        world.run()
    except Broken as error:
        return str(error)
    return None


def shortest(seed: int, why: str, faults: Optional[Sequence[Fault]] = None) -> Sequence[Fault]:
    """The fewest of a seed's faults, or of others, that still break the same promise."""
    faults, kind = World(seed, faults).faults, why.split(":")[0]
    index = 0
    while index < len(faults):
        fewer = faults[:index] + faults[index + 1 :]
        if (failure(World(seed, fewer)) or "").split(":")[0] == kind:
            faults = fewer
        else:
            index += 1
    return faults


def _one(seed: int) -> int:
    world = World(seed)
    why = failure(world)
    hosts = list(world.machines)
    print(f"seed {seed}: {world.shape}")
    print(" " * 9 + "".join(host.ljust(_WIDTH) for host in ["-", *hosts]))
    for entry in world.history:
        column = 1 + hosts.index(entry.host) if entry.host in hosts else 0
        print(f"{entry.at:8.2f} " + " " * (_WIDTH * column) + entry.text[:120])
    print(f"{world.agenda.now:.1f} s: {why or 'every promise held'}; {world.digest}")
    return int(why is not None)


if __name__ == "__main__":
    sys.exit(main())
