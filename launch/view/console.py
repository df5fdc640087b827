"""Lines for a person on stdout, and hosts folded into ranges."""

import shutil
import sys
import termios
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Optional, TextIO

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from launch.agent.text.plain_text import without_controls

WIDE = 400  # characters of a line where nothing is cut


def say(*lines: str) -> None:
    """Print human lines on stdout."""
    for line in lines:
        click.echo(without_controls(line))


def note(*lines: str) -> None:
    """Print human lines on stderr, beside data on stdout."""
    for line in lines:
        click.echo(without_controls(line), err=True)


def make_console(wide: bool = False) -> Any:
    """Return rich's console on stdout; outside a terminal, or if ``wide``, wide enough that nothing is cut."""
    from rich.console import Console  # its callers have loaded it; most verbs need no rich, and nor does the Tab key

    return Console(width=WIDE) if wide or not sys.stdout.isatty() else Console()


def width() -> Optional[int]:
    """Return the characters of a line on stdout; None outside a terminal, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def unechoed(terminal: TextIO) -> Iterator[None]:
    """Keep a terminal from printing ``^C`` and ``^Z`` where the cursor is, when these keys are pressed."""
    try:
        before = termios.tcgetattr(terminal)
    except (termios.error, ValueError):  # no terminal, or closed
        yield
        return
    quiet = [*before[:3], before[3] & ~termios.ECHOCTL, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def fold(hosts: Iterable[str]) -> str:
    """Return hosts as ranges: ``gpu[01-03,07]``."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))
