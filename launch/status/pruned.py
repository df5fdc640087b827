"""Past runs and code that a host removes, or would: the host's answer to prune, and parts of ``prune --json``."""

from dataclasses import dataclass, field
from typing import List

from launch.status.meanings import means, means_parts


@dataclass(frozen=True)
class Removable:
    """A folder that goes."""

    what: str = field(
        metadata=means("Kind of the folder: run, code, or rest for what an interrupted removal has left.")
    )
    name: str = field(metadata=means("Full name of the run, hash of the code, or name of the rest."))
    bytes: int = field(
        metadata=means("Room that it takes, in bytes. A file that several runs share counts for each in equal parts.")
    )
    why: str = field(metadata=means("Bound that it is beyond, in words."))


@dataclass(frozen=True)
class Spared:
    """A run that is beyond a bound and stays."""

    run: str = field(metadata=means("Full name of a run that is beyond a bound and stays."))
    why: str = field(metadata=means("Bound that it is beyond, in words."))
    needed: str = field(metadata=means("Reason for which it stays, in words."))


@dataclass(frozen=True)
class NotRemoved:
    """A folder of which something could not be removed."""

    name: str = field(metadata=means("Name of the run, the code or the rest, as in going."))
    why: str = field(metadata=means("Path that could not be removed, and the reason."))


@dataclass(frozen=True)
class PruneAnswer:
    """The answer to prune."""

    runs: int = field(metadata=means("Number of runs on the host, before the removal."))
    bytes: int = field(metadata=means("Room that these runs take, in bytes."))
    going: List[Removable] = field(metadata=means_parts())
    spared: List[Spared] = field(metadata=means_parts())
    failed: List[NotRemoved] = field(metadata=means_parts())
