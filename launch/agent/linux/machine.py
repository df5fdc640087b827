"""The resources of a machine, and their shortage: memory, load, limits; a clock that counts suspension."""

import os
import platform
import resource
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List

from launch.agent.linux.procfs import text_of

LIMITS = ("NOFILE", "NPROC", "AS", "CORE", "MEMLOCK", "STACK", "FSIZE", "CPU")
_GROUP_FILES = (
    "memory.max", "memory.high", "memory.current", "memory.events", "cpu.max", "cpu.stat", "pids.max", "pids.current",
    "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "cpu.cfs_quota_us", "cpuset.cpus.effective",
)  # fmt: skip
_MOST = ("memory.max", "memory.limit_in_bytes")
_MEMORY = ("MemTotal", "MemFree", "MemAvailable", "SwapTotal", "SwapFree", "Dirty", "Writeback", "Shmem")


def machine() -> Dict[str, Any]:
    """Return the resources of this machine; sizes are bytes, times seconds.

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
    """``/proc/meminfo``, in bytes."""
    rows = (line.split() for line in text_of(root / "proc/meminfo").splitlines())
    return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows if row[0].rstrip(":") in _MEMORY}


def memory_for_us(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: those of the machine, or fewer in a container."""
    limits = (int(text) for file, text in control_groups(root).items() if file.endswith(_MOST) and text.isdigit())
    return min([memory(root).get("MemTotal", 0), *limits])


def control_groups(root: Path = Path("/")) -> Dict[str, str]:
    """Return the limits and the use of this process's control groups, {path: text}.

    The groups are those of this process and all above, up to the topmost group.
    """
    found: Dict[str, str] = {}
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        names = [name for name in controllers.split(",") if not name.startswith("name=")]
        for top in [root / "sys/fs/cgroup" / name for name in names] or [root / "sys/fs/cgroup"]:
            found.update(_of_group(top, top / path.lstrip("/")))
    return found


def _of_group(top: Path, group: Path) -> Dict[str, str]:
    places = [place for place in (group, *group.parents) if place == top or top in place.parents]
    files = [place / name for place in places for name in _GROUP_FILES]
    return {str(file): text_of(file).strip() for file in files if file.is_file()}


def mounts(folders: Iterable[Path]) -> List[str]:
    """The lines of the mount table that these folders are on."""
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
    """Return the seconds since this machine booted, those of its suspension included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
