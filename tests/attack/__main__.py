"""python -m tests.attack: every attack on a run that trains, on fake hosts. As root; exit code 1 if one got through."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import List

from tests.attack.attacks import attacks
from tests.attack.siege import LEAD_PORT, Result, Siege, planted
from tests.support.hosts import FakeHosts, HostError

TRAINING = {"job": "digits", "args": {"hidden": 16}, "train": {"steps": 10_000_000, "mode": "async", "towers": 1}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=int, default=10_000, help="idle connections at a time (default: 10,000)")
    parser.add_argument("--counting", action="store_true", help="attack tasks that count, not ones that train")
    options = parser.parse_args()
    try:
        with FakeHosts(3) as hosts, tempfile.TemporaryDirectory() as folder:
            siege = Siege(hosts, Path(folder), **({} if options.counting else TRAINING))
            results = [_shown(planted(siege))]
            with siege.up():
                results += [_shown(siege.carry_out(attack)) for attack in attacks(LEAD_PORT, options.idle)]
    except HostError as error:
        print(error, file=sys.stderr)
        return 3
    return _verdict(results)


def _shown(result: Result) -> Result:
    print(f"{'THROUGH' if result.through else 'held':8} {result.title:45} {result.seen}", flush=True)
    for line in result.through:
        print(f"{'':8} {line}", flush=True)
    return result


def _verdict(results: List[Result]) -> int:
    through = [result.title for result in results if result.through]
    print(f"{len(results)} attacks, {len(through)} got through")
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main())
