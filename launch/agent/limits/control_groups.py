"""Control groups with a memory limit: one group for each attempt, which is one start of a task.

The agent creates and removes a group. If a group remains, the agent's keeper or ``down`` removes it. A group is
identified by its name, which contains the run and the host. groups.json records the folder of a run's groups.

The kernel kills only the group that exceeds its limit. Version 2 and version 1 of control groups differ in their files'
names, and in where this process can create a group:

    version 2   below the nearest group above this process that has no processes itself, and enables the memory
                controller for its subgroups
    version 1   below the group of this process

A user without privileges may create groups only below a group that was delegated to that user. The limit includes
swapped-out memory, where the kernel counts swap.
"""

import contextlib
import os
import re
import time
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from launch.agent.linux.procfs import groups_up, names_in, own_groups, text_of
from launch.agent.state.run_folder import RunFolder

RECORD = "groups.json"
REMOVED_S = 2.0  # a killed process leaves its group a little after its end
POLL_S = 0.02
HUGE_PAGE = 2 << 20  # bytes that the kernel charges at once


class Files(NamedTuple):
    """The names of a group's files.

    Attributes:
      memory: the file of the memory limit.
      swap: the file of the limit of swap, or of memory and swap together.
      swap_is_apart: whether the limit in the file ``swap`` is for swap alone.
      kills: the file that counts killed processes, also when the whole host ran out of memory.
      peak: the file of the highest memory use; None where ``kills`` also counts how often the group reached its limit.
    """

    memory: str
    swap: str
    swap_is_apart: bool
    kills: str
    peak: Optional[str]


V2 = Files("memory.max", "memory.swap.max", True, "memory.events", None)
V1 = Files(
    "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", False, "memory.oom_control", "memory.max_usage_in_bytes"
)


class GroupPlace(NamedTuple):
    """A control group below which this process can create groups."""

    folder: Path
    files: Files

    def make(self, name: str, limit: int) -> "Group":
        """Create a group with a memory limit in bytes. If this raises OSError, no group is left behind."""
        group = Group(self.folder / name, self.files)
        group.folder.mkdir()
        try:
            group.bound(limit)
        except OSError:
            group.folder.rmdir()
            raise
        return group


class Group(NamedTuple):
    """A control group. A process enters the group by itself, and its children start in the group."""

    folder: Path
    files: Files

    def bound(self, limit: int) -> None:
        """Limit the group's memory, including swap, to ``limit`` bytes. Raises OSError.

        When the group exceeds the limit, the kernel kills all of its processes at once.
        """
        (self.folder / self.files.memory).write_text(str(limit))
        more = {self.files.swap: "0" if self.files.swap_is_apart else str(limit), "memory.oom.group": "1"}
        for name, value in more.items():
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap, or an older one
                _rewrite(self.folder / name, value)

    def enter(self) -> None:
        """Put this process into the group. Raises OSError."""
        _rewrite(self.folder / "cgroup.procs", "0")

    def kills(self) -> int:
        """Return the number of processes that the kernel has killed because the group reached its limit."""
        return self._count(self.files.kills, "oom_kill ") if self._was_full() else 0

    def _was_full(self) -> bool:
        if self.files.peak is None:
            return self._count(self.files.kills, "oom ") > 0
        return self._count(self.files.peak) + HUGE_PAGE >= self._count(self.files.memory)

    def _count(self, file: str, name: str = "") -> int:
        found = re.search(rf"^{name}(\d+)$", text_of(self.folder / file), re.MULTILINE)
        return int(found.group(1)) if found else 0

    def remove(self, within_s: float = REMOVED_S) -> bool:
        """Try for ``within_s`` seconds to remove the group; return whether it is gone.

        A group with a process in it stays.
        """
        return remove(self.folder, within_s)


def _rewrite(file: Path, text: str) -> None:
    """Write an existing file: a folder of the kernel allows no new one."""
    with open(str(file), "r+") as opened:
        opened.write(text)


def find(root: Path = Path("/")) -> GroupPlace:
    """Return the nearest control group below which this process can create groups.

    Raises:
      OSError: no such group exists; the text has the reason.
    """
    refused = OSError("this kernel cannot limit memory by control groups")
    for place in _places(root):
        try:
            _try(place)
        except OSError as error:
            refused = OSError(f"{place.folder}: {os.strerror(error.errno or 0)}")
        else:
            return place
    raise refused


def _try(place: GroupPlace) -> None:
    """Create a group in a place, and let a child of this process enter the group. Raises OSError."""
    group = place.make(f"launch.trial.{os.getpid()}", 1 << 30)
    try:
        _enter_as_child(group)
    finally:
        group.remove()


def _enter_as_child(group: Group) -> None:
    """Raise the OSError that a child of this process meets when it enters a group."""
    child = os.fork()
    if child == 0:
        try:
            group.enter()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError(os.WEXITSTATUS(status), "", str(group.folder / "cgroup.procs"))


def _places(root: Path) -> Iterator[GroupPlace]:
    """Yield the groups below which this process may be able to create groups, the nearest first."""
    for controllers, path in own_groups(root):
        if "memory" in controllers:
            top = root / "sys/fs/cgroup/memory"  # in a container, the group of this process itself
            yield from (GroupPlace(folder, V1) for folder in dict.fromkeys((top / path, top)))
        elif not controllers:
            yield from (GroupPlace(folder, V2) for folder in _that_hand_down(root / "sys/fs/cgroup", path))


def _that_hand_down(top: Path, path: str) -> List[Path]:
    """Return the groups, from this process's group upwards, that hand the memory controller down.

    The function makes a group that was delegated to this user hand the controller down. Root's groups belong to
    systemd, which may undo a change.
    """
    above = groups_up(top, path)
    return [each for each in above if "memory" in text_of(each / "cgroup.subtree_control").split() or _ask(each)]


def _ask(folder: Path) -> bool:
    """Make a group of this user, but not of root, hand the memory controller down; return whether it does."""
    try:
        if os.geteuid() == 0 or os.stat(str(folder)).st_uid != os.geteuid():
            return False
        _rewrite(folder / "cgroup.subtree_control", "+memory")
    except OSError:  # the group has processes, or no memory controller
        return False
    return True


def name(folder: RunFolder, which: str = "") -> str:
    """Return the name of the group ``which`` of a run; without ``which``, the prefix of all of the run's groups."""
    return f"launch.{folder.run}@{folder.host}@{which}"


def write_place(folder: RunFolder, place: GroupPlace) -> None:
    """Record the folder of a run's groups, before any group exists. Raises OSError."""
    folder.write(RECORD, {"folder": str(place.folder)})


def left(folder: RunFolder) -> List[Path]:
    """Return the existing groups of a run."""
    recorded = (folder.read_whole(RECORD) or {}).get("folder")
    if not isinstance(recorded, str):
        return []
    place = Path(recorded)
    return [place / each for each in sorted(names_in(place)) if each.startswith(name(folder))]


def remove_left(folder: RunFolder) -> None:
    """Remove every group of a run that has no process."""
    for group in left(folder):
        remove(group)


def remove(folder: Path, within_s: float = REMOVED_S) -> bool:
    """Remove a group once its last process has ended; return False if that takes longer than ``within_s`` seconds."""
    until = time.monotonic() + within_s
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_S)
        else:
            return True
