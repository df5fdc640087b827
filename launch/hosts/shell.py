"""A command for a shell on a host."""

import shlex
from typing import Sequence


def command_line(argv: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return argv as one line for a shell.

    A leading ``~/`` still means home.

    Args:
      before: commands that the shell runs first, each only after the success of the one before it. Standard input
        is the program's, so that they read nothing of it.
    """
    words = [shlex.quote(word) for word in argv]
    if argv[0].startswith("~/"):
        words[0] = "~/" + shlex.quote(argv[0][2:])
    return " && ".join([*(f"{command} </dev/null" for command in before), "exec " + " ".join(words)])
