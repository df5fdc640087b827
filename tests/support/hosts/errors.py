"""What can go wrong with fake hosts.

HostError
└── MissingError    this machine lacks something that fake hosts need
"""

from typing import Sequence


class HostError(Exception):
    """A fake host did not do what it was told. Not for commands that fail inside a host."""


class MissingError(HostError):
    """This machine cannot have fake hosts. Lists everything that is missing."""

    def __init__(self, missing: Sequence[str]):
        self.missing = tuple(missing)
        super().__init__("fake hosts need, and this machine lacks: " + "; ".join(missing))
