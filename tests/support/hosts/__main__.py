"""Fake hosts by hand.

python -m tests.support.hosts up 3      starts h1, h2, h3 and keeps them until Ctrl-C
python -m tests.support.hosts down      removes what ended sessions left behind
"""

import argparse
import signal
import sys
from typing import Any, List, Optional

from tests.support.hosts import FakeHosts, HostError
from tests.support.hosts.rack import sweep


def main(argv: Optional[List[str]] = None) -> int:
    """Exit code: 0, or 3 where fake hosts cannot work here."""
    options = _parser().parse_args(argv)
    try:
        return _up(options.count, options.prefix) if options.verb == "up" else _down()
    except HostError as error:
        print(error, file=sys.stderr)
        return 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.hosts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", metavar="up|down")
    verbs.required = True
    up = verbs.add_parser("up", help="start hosts and keep them until Ctrl-C")
    up.add_argument("count", type=int, help="how many hosts")
    up.add_argument("--prefix", default="h", help="of their names (default: h)")
    verbs.add_parser("down", help="remove what ended sessions left behind")
    return parser


def _up(count: int, prefix: str) -> int:
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        with FakeHosts(count, prefix) as hosts:
            print(_welcome(hosts), flush=True)
            while True:
                signal.pause()
    except _Stopped:
        return 0


class _Stopped(BaseException):
    """A signal asked for the end."""


class _Stop:
    """A signal handler that asks for the end once: a second time would interrupt the cleaning up."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self, number: int, frame: Any) -> None:
        if not self._asked:
            self._asked = True
            raise _Stopped


def _welcome(hosts: FakeHosts) -> str:
    table = "\n".join(f"  {host.name:8} {host.address}" for host in hosts)
    ssh = f"{{user: root, key: {hosts.key}, config: {hosts.ssh_config}, known_hosts: {hosts.known_hosts}}}"
    return f"""\
{table}

In a shell:      {" ".join(hosts.ssh(hosts[0], "hostname"))}
In a hosts file: ssh: {ssh}

Running until Ctrl-C."""


def _down() -> int:
    removed = sweep()
    print("\n".join(f"removed {folder}" for folder in removed) or "nothing was left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
