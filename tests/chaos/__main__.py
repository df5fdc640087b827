"""Carries out trials on fake hosts, as root: python -m tests.chaos, make chaos N=200 SEED=7

A trial that fails prints its seed, what it was, the run's report, what was wrong, and where its files are; with that
seed and N=1 it is the same trial again. At the end, or after Ctrl-C, comes a table of times and losses by kind.
"""

import argparse
import secrets
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Queue
from typing import Iterator, List, Optional, Sequence

from tests.chaos.arena import Arena, Result
from tests.chaos.faults import EVERY, HOSTS, KINDS
from tests.chaos.figures import table
from tests.chaos.trial import Trial, plan_trial
from tests.support.hosts import FakeHosts


def main(argv: Optional[List[str]] = None) -> int:
    """Returns 0 if every trial was right, else 1."""
    options = _options(argv)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    folder = Path(options.folder or tempfile.mkdtemp(prefix="chaos-"))
    print(f"{options.n} trials from seed {seed} on; what fails is kept in {folder}", flush=True)
    results: List[Result] = []
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        arenas = [Arena(stack.enter_context(FakeHosts(len(HOSTS))), folder) for _ in range(options.jobs)]
        trials = [plan_trial(each, options.only or EVERY) for each in range(seed, seed + options.n)]
        for result in carry_out(trials, arenas):
            results.append(result)
            _tell(result, options)
    wrong = [result for result in results if result.complaints]
    print("\n".join(["", *table([result.figures for result in results]), ""]))
    print(
        f"{len(results) - len(wrong)} of {len(results)} right"
        + "".join(f"; {_again(result, options)}" for result in wrong)
    )
    return 1 if wrong else 0


def carry_out(trials: Sequence[Trial], arenas: Sequence[Arena]) -> Iterator[Result]:
    """The results as they come, one trial at a time in each arena. Who stops asking waits for those that have begun."""
    free: Queue[Arena] = Queue()
    for arena in arenas:
        free.put(arena)

    def in_a_free_one(trial: Trial) -> Result:
        arena = free.get()
        try:
            return arena.carry_out(trial)
        finally:
            free.put(arena)

    with ThreadPoolExecutor(len(arenas)) as pool:
        running = [pool.submit(in_a_free_one, trial) for trial in trials]
        try:
            for future in as_completed(running):
                yield future.result()
        finally:
            for future in running:
                future.cancel()


def _options(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=20, help="how many trials (20)")
    parser.add_argument("--seed", type=int, help="of the first; the others count up from it (drawn)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many at a time, each on hosts of its own (1)")
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), metavar="KIND", help=", ".join(sorted(KINDS)))
    parser.add_argument("--folder", help="where files of trials that failed are kept (a new one in /tmp)")
    parser.add_argument("--verbose", action="store_true", help="tell the story of every trial")
    return parser.parse_args(argv)


def _tell(result: Result, options: argparse.Namespace) -> None:
    print(f"{'WRONG' if result.complaints else 'right'}  {result.trial}", flush=True)
    if result.complaints or options.verbose:
        print("\n".join(f"    {line}" for line in [*result.story, *result.complaints]), flush=True)
    if result.complaints:
        print(f"    files: {result.files}; again: {_again(result, options)}", flush=True)


def _again(result: Result, options: argparse.Namespace) -> str:
    only = f" ARGS='--only {' '.join(options.only)}'" if options.only else ""
    return f"make chaos N=1 SEED={result.trial.seed}{only}"


if __name__ == "__main__":
    sys.exit(main())
