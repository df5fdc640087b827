"""A command for a shell on a host."""

import shlex
from typing import Sequence


def command_line(argv: Sequence[str]) -> str:
    """Return argv as one line for a shell.

    A leading ``~/`` still means home.
    """
    words = [shlex.quote(word) for word in argv]
    if argv[0].startswith("~/"):
        words[0] = "~/" + shlex.quote(argv[0][2:])
    return "exec " + " ".join(words)
