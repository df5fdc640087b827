"""The contents of ``/proc``: small files and folders, the threads and work of a process, and this machine's resources.

A missing file, or an unreadable file of another user, counts as empty.

A task that waits for a processor, or for a slow disk, is not frozen. The elapsed time does not show whether a task
waits or hangs; the work that it has done meanwhile does.
"""

import os
import platform
import re
import resource
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

LONGEST = 1 << 20  # characters
MOST = 256  # threads of one process


def text_of(path: Path) -> str:
    """Return the text of a file, at most ``LONGEST`` characters; "" where the file is unreadable."""
    try:
        with open(str(path), errors="replace") as file:
            return file.read(LONGEST)
    except OSError:
        return ""


def names_in(folder: Path) -> List[str]:
    """Return the names in a folder; an empty list where the folder cannot be read."""
    try:
        return os.listdir(str(folder))
    except OSError:
        return []


def threads(pid: int) -> List[Path]:
    """Return the folders ``/proc/PID/task/THREAD``, at most ``MOST``; an empty list for an ended process."""
    folder = Path(f"/proc/{pid}/task")
    return [folder / name for name in names_in(folder)[:MOST]]


def waits_in(place: Path) -> str:
    """Return the kernel function that a thread, or a process, waits in.

    ``place`` is the folder of the thread, or ``/proc/PID``. The result is "" where the kernel reports no wait.
    """
    return text_of(place / "wchan").strip("0")


IDLE = 0.05  # of a processor: the use of a task whose threads only wait
TRICKLE = 64 << 10  # bytes a second: a task's signs of life and lines of progress are less
SLOWEST = 0.1  # of the time: a task that does nearly nothing must not last forever


class Work(NamedTuple):
    """The work of a process so far: its processor time, and the bytes that it has read and written, pipes included."""

    processor_s: float
    bytes: int


def work_of(pid: int, children: bool = False) -> Optional[Work]:
    """Return the work that a process has done so far; None where the process does not exist.

    With ``children``, the result includes the processor time of its ended children. It always includes their bytes.
    """
    text = text_of(Path(f"/proc/{pid}/stat"))
    if not text:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    ticks = sum(map(int, fields[11 : 15 if children else 13]))
    moved = dict(line.split(": ") for line in text_of(Path(f"/proc/{pid}/io")).splitlines())
    return Work(ticks / os.sysconf("SC_CLK_TCK"), int(moved.get("rchar", 0)) + int(moved.get("wchar", 0)))


def pace(earlier: Work, later: Work, seconds: float) -> float:
    """Return the fraction of ``seconds`` in which a process had a processor, at least ``SLOWEST`` and at most 1.

    ``earlier`` and ``later`` are its work up to the beginning and the end of these seconds. The result for an idle
    process is 1.
    """
    if seconds <= 0:
        return 1.0
    part = (later.processor_s - earlier.processor_s) / seconds
    if part < IDLE and (later.bytes - earlier.bytes) / seconds < TRICKLE:
        return 1.0
    return min(1.0, max(SLOWEST, part))


LIMITS = ("NOFILE", "NPROC", "AS", "CORE", "MEMLOCK", "STACK", "FSIZE", "CPU")
_GROUP_FILES = (
    "memory.max", "memory.high", "memory.current", "memory.events", "cpu.max", "cpu.stat", "pids.max", "pids.current",
    "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "cpu.cfs_quota_us", "cpuset.cpus.effective",
)  # fmt: skip
_MOST = ("memory.max", "memory.limit_in_bytes")
_MEMORY = ("MemTotal", "MemFree", "MemAvailable", "SwapTotal", "SwapFree", "Dirty", "Writeback", "Shmem")


def machine() -> Dict[str, Any]:
    """Return the resources of this machine; sizes are in bytes, times in seconds.

    A value that this kernel does not report is left out.
    """
    return {
        "host_name": platform.node(),
        "kernel": platform.release(),
        "system": _system(),
        "user_id": os.getuid(),
        "time": time.time(),
        "time_zone": time.strftime("%Z"),
        "up_s": time.clock_gettime(time.CLOCK_MONOTONIC),
        "cores": os.cpu_count(),
        "cores_for_us": len(os.sched_getaffinity(0)),
        "load": list(os.getloadavg()),
        "memory": memory(),
        "pressure": {path.name: text_of(path) for path in sorted(Path("/proc/pressure").glob("*"))},
        "limits": {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in LIMITS},
        "control_groups": control_groups(),
    }


def memory(root: Path = Path("/")) -> Dict[str, int]:
    """Return the values of ``/proc/meminfo``, in bytes."""
    rows = (line.split() for line in text_of(root / "proc/meminfo").splitlines())
    return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows if row[0].rstrip(":") in _MEMORY}


def memory_for_us(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: all of the machine's memory, or less in a container."""
    limits = (int(text) for file, text in control_groups(root).items() if file.endswith(_MOST) and text.isdigit())
    return min([memory(root).get("MemTotal", 0), *limits])


def control_groups(root: Path = Path("/")) -> Dict[str, str]:
    """Return the limits and the use of this process's control groups: {path of a file: its text}.

    The result covers the groups of this process and all groups above, up to the topmost.
    """
    found: Dict[str, str] = {}
    for controllers, path in own_groups(root):
        names = [name for name in controllers if not name.startswith("name=")]
        for top in [root / "sys/fs/cgroup" / name for name in names] or [root / "sys/fs/cgroup"]:
            files = [group / name for group in groups_up(top, path) for name in _GROUP_FILES]
            found.update({str(file): text_of(file).strip() for file in files if file.is_file()})
    return found


def own_groups(root: Path) -> List[Tuple[List[str], str]]:
    """Return (controllers, path) of each control group of this process; version 2 has no controllers."""
    lines = (line.split(":", 2) for line in text_of(root / "proc/self/cgroup").splitlines())
    return [(list(filter(None, controllers.split(","))), path.lstrip("/")) for _, controllers, path in lines]


def groups_up(top: Path, path: str) -> List[Path]:
    """Return a control group and all groups above it, up to the topmost."""
    group = top / path
    return [each for each in (group, *group.parents) if each == top or top in each.parents]


def mounts(folders: Iterable[Path]) -> List[str]:
    """Return the lines of the mount table for the file systems that these folders are on."""
    lines = [line.split() for line in text_of(Path("/proc/self/mounts")).splitlines()]
    found = []
    for folder in folders:
        under = [row for row in lines if Path(row[1]) == folder or Path(row[1]) in folder.parents]
        found += [" ".join(max(under, key=lambda row: len(row[1]))[:4])] if under else []
    return sorted(set(found))


def _system() -> str:
    lines = dict(line.split("=", 1) for line in text_of(Path("/etc/os-release")).splitlines() if "=" in line)
    return lines.get("PRETTY_NAME", platform.system()).strip('"')


def since_boot() -> float:
    """Return the seconds since this machine booted, including the time in sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MOUNTS = Path("/proc/self/mountinfo")  # also folders of the same disk, which no file's status shows
LONGEST_TABLE = 1 << 24  # characters
_MOUNT_POINT = 4  # the field of the folder, in which a space is \040


def mounts_in(folder: Path, table: Optional[Path] = None) -> List[str]:
    """Return the paths at which something is mounted in a folder, or at the folder itself. Raises OSError."""
    whole = os.path.realpath(str(folder))
    with open(str(table or MOUNTS), errors="surrogateescape") as file:
        lines = file.read(LONGEST_TABLE).split("\n")
    points = [_unescaped(line.split(" ")[_MOUNT_POINT]) for line in lines if line.count(" ") > _MOUNT_POINT]
    return sorted(point for point in points if point == whole or point.startswith(whole + os.sep))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
