"""The shipped code that nothing uses: no run that lives, no process that works in it, and no launcher for a week.

It can always go: the next verb that needs it sends it again.
"""

import os
import re
from pathlib import Path
from typing import Collection, Iterator, List, NamedTuple, Set

from launch.agent.retention.measure import BLOCK
from launch.agent.tasks.work_folder import MANIFEST

UNUSED_S = 7 * 24 * 3600.0
_HASH = re.compile(r"[0-9a-f]{16}")


class Unused(NamedTuple):
    """A bundle of code that nothing uses."""

    path: Path
    bytes: int


def unused_code(workdir: Path, used: Collection[str], now: float) -> List[Unused]:
    """Return the bundles that nothing uses; ``used`` are the hashes of those that living runs have."""
    worked_in = _worked_in()
    return [
        Unused(path, sum(os.lstat(each).st_blocks * BLOCK for each in _files(path)))
        for path in sorted((workdir / "code").glob("*"))
        if _HASH.fullmatch(path.name) and path.name not in used and not path.is_symlink()
        and is_old(path, now) and not any(_is_below(each, path) for each in worked_in)
    ]  # fmt: skip


def is_old(path: Path, now: float) -> bool:
    """Return whether no verb and no agent has used a bundle for a week; each renews the bundle's times."""
    times = [os.lstat(str(each)).st_mtime for each in (path, path / MANIFEST) if os.path.lexists(str(each))]
    return now - max(times, default=now) > UNUSED_S


def _worked_in() -> Set[str]:
    """Return the working folders of this user's processes: a verb of an agent works in its code."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.add(os.readlink(f"/proc/{name}/cwd"))
            except OSError:  # of another user, or gone
                continue
    return found


def _is_below(path: str, folder: Path) -> bool:
    real = os.path.realpath(str(folder))
    return path == real or path.startswith(f"{real}/")


def _files(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(str(folder)):
        yield from (os.path.join(parent, name) for name in names)
