"""Lines for a person on stdout, and hosts folded into ranges."""

import sys
from typing import Iterable

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from rich.console import Console

from launch.agent.text.plain_text import without_controls


def say(*lines: str) -> None:
    """Print human lines on stdout."""
    for line in lines:
        click.echo(without_controls(line))


def make_console() -> Console:
    """Return a console on stdout; outside a terminal, wide enough that nothing is cut."""
    return Console() if sys.stdout.isatty() else Console(width=400)


def fold(hosts: Iterable[str]) -> str:
    """Return hosts as ranges: ``gpu[01-03,07]``."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))
