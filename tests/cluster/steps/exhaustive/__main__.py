"""Explore larger runs.

``python -m tests.cluster.steps.exhaustive WORKERS PS STEPS DEATHS DEATHS_OF_PS [PUSHES [BACKUP]]``; with PUSHES of each
server, steps overlap. With 0 PUSHES there may be BACKUP workers.
"""

import sys
import time

from tests.cluster.steps.exhaustive.explorer import Explorer
from tests.cluster.steps.exhaustive.sessions import Run


def main() -> None:
    """Print the number of states, and the way to the first broken promise."""
    workers, ps, steps, deaths, deaths_of_ps = map(int, sys.argv[1:6])
    pushes, backup = (*map(int, sys.argv[6:8]), 0, 0)[:2]
    began = time.monotonic()
    found = Explorer(Run(workers, ps, steps, pushes > 0, max(1, pushes), backup), deaths, deaths_of_ps).explore()
    print(
        *found.way,
        f"{found.states} states in {time.monotonic() - began:.0f} s: {found.wrong or 'nothing wrong'}",
        sep="\n",
    )
    sys.exit(found.wrong is not None)


if __name__ == "__main__":
    main()
